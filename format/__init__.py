"""Bytes to table state and back: the Iceberg specification as code."""
