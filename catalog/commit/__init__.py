"""Commits: the pointer to the current metadata and how it moves."""
