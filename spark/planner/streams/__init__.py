"""Structured streaming: a table's appends in batches, and batches written to a table."""
