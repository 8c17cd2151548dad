"""Why a thread ran or waited: causes of an interval, the chain to its root, what all threads did at a moment."""
