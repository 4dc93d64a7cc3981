"""Iceberg tables in a Hive metastore: its client, the commit protocol, and the catalog on top."""
