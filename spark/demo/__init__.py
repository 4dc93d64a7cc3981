"""The command `icecomb demo` and its data."""
