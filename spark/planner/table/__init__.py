"""Catalogs, tables and views that the session names."""
