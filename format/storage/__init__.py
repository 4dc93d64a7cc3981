"""Files, wherever they lie: local folders, HDFS, and who may open them."""
