"""Operations on a table's files: each makes a snapshot from a base and its own files."""
