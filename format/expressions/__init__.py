"""Predicates: building, parsing, binding, projection, and evaluation on metrics and rows."""
