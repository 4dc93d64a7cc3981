"""Writes: layout, rows, files, commits."""
