"""Data and delete files in Parquet."""
