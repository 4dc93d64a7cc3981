"""Reading of rows from data files: projection, filtering and application of deletes."""
