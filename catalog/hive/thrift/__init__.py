"""The Hive metastore's Thrift interface: connections, calls, and what they carry as our values."""
