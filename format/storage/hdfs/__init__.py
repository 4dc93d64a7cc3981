"""HDFS storage for `file_io` over WebHDFS, without Java in the process."""
