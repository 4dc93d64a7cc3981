"""Position and equality delete files: reading, applying and writing."""
