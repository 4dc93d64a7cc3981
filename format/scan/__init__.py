"""Planning of scans: the files that a query must read."""
