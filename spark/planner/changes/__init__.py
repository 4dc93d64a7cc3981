"""What commits inserted and deleted, row by row."""
