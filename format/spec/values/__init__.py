"""Values below the types: decimals, times, JSON objects and sequences."""
