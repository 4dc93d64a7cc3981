"""Changelogs: the rows that commits inserted and deleted."""
