"""Scans: filters, options, tasks, metrics."""
