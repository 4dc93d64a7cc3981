"""Properties: their values, and those that tables have."""
