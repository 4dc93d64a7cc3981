"""Predicates as Arrow and Polars expressions and as JSON."""
