"""Predicates: written, parsed, bound, projected, and judged on columns of metrics."""
