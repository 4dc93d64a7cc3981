"""Writing of rows to data files: checks, sorting, partitioning and rolling."""
