"""Exports many traces into one Parquet data set, partitioned by trace, and queries all of them at once."""
