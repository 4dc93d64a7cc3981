"""The nouns of the specification: their values, JSON and Arrow types."""
