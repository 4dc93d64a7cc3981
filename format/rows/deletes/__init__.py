"""Delete files, by position and by equality: read, applied and written."""
