"""Changes of a table's rows: delete, overwrite, upsert, files taken in."""
