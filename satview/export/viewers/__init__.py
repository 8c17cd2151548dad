"""A trace, or its tables, in files for other programs: Perfetto, Chrome, flame graphs, Parquet, Arrow, CSV."""
