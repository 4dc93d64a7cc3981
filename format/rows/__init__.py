"""Reading and writing of data files and delete files as Arrow data."""
