"""Data files and delete files: Arrow data read and written."""
