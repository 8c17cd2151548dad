"""Reading files for a window: loading, following, the cache, the preview."""
