"""The Hive table that is migrated: types, partitions, files, footers."""
