"""Rows become data files: checked, sorted, split into partitions, rolled."""
