"""Which files a query must read."""
