"""ALTER TABLE statements of Iceberg's SQL extensions: their grammar, and what each does to a table.

One grammar serves all Spark versions: the bridge sends the text behind the table's name.
"""
