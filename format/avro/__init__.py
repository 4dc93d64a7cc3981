"""Avro as Iceberg uses it: schemas with field ids, blocks, codecs."""
