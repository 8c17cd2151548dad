"""The trace as tables with documented columns: numpy, Arrow, pandas, Polars, and SQL over them."""
