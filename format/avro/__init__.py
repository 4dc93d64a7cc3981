"""Avro as used by Iceberg: schemas with field ids, blocks, codecs."""
