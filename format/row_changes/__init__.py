"""Changes of a table's rows: append, delete, overwrite, upsert, merge, and adding files."""
