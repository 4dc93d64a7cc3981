"""Bytes of a connection to a metastore: frames, SASL, replies."""
