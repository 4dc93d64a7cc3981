"""Arrow arrays taken apart and put together, whatever they mean."""
