"""Variants: values that carry their type (Parquet: Variant Binary Encoding, version 1)."""
