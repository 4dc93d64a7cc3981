"""Building blocks for Arrow arrays, whatever they mean."""
