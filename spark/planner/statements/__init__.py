"""ALTER TABLE statements of Iceberg's SQL extensions: their grammar and execution.

One grammar serves all Spark versions: the bridge sends the text after the table's name.
"""
