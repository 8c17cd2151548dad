"""Many traces as one data set of Parquet, partitioned by trace: made by several processes, read by one query."""
