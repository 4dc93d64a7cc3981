"""The migration itself: a Hive table becomes an Iceberg table."""
