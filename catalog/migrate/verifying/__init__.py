"""The comparison of a migrated table with its Hive table."""
