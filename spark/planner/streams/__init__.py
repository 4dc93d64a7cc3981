"""Structured streaming: the appends of a table, batch by batch."""
