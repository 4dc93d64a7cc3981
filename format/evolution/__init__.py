"""Changes of schema, partition spec, sort order, properties, branches and tags."""
