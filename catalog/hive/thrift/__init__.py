"""The Hive metastore's Thrift interface: connections, calls, and the values they carry."""
