"""The nouns of the specification: their values, their JSON, their Arrow types."""
