"""Changes of a table's files: each operation makes a snapshot out of a base and its own files."""
