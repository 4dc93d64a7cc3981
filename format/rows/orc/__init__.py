"""Data and delete files in ORC."""
