"""HDFS as one kind of storage of `icecomb.format.file_io`, over WebHDFS: no Java in the process."""
