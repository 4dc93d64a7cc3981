"""Changes of schema, partition spec, sort order and properties."""
