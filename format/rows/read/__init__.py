"""Data files become rows: projected, filtered, without those that are deleted."""
