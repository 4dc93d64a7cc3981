"""Statistics of tables in files of their own (spec: Table Statistics)."""
