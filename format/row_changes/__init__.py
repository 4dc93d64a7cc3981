"""Changes of a table's rows: delete, overwrite, upsert, merge, files taken in."""
