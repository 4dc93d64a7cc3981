"""Who holds the pointer to a table's current metadata file."""
