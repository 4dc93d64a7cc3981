"""Findings and progress, as values."""
