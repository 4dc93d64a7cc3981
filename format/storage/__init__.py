"""File storage: local folders, HDFS and object stores, with their credentials."""
