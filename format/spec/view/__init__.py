"""View metadata and its JSON."""
