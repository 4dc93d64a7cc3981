"""Tables of Apache Paimon: schema files, their evolution, snapshots, and their form in Iceberg.

files = SchemaFiles(io, "hdfs://nn/warehouse/sales.db/orders")
files.latest()                          # a TableSchema
differences(files.read(0), files.read(3))
files.evolve([RenameColumn(("name",), "customer")])
iceberg_schema(files.latest())
"""
