"""Paimon tables beside Iceberg's: found in the metastore, compared with it, brought over."""
