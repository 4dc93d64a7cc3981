"""Tables of a catalog: scans, operations, transactions, creation."""
