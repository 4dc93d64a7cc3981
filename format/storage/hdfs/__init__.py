"""HDFS as one kind of storage of `file_io`, over WebHDFS: no Java in the process."""
