"""Data and delete files in Avro."""
