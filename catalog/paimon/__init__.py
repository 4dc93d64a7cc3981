"""Apache Paimon's tables: schema files, their evolution, snapshots, and import into Iceberg.

files = SchemaFiles(io, "hdfs://nn/warehouse/sales.db/orders")
files.latest()                          # a TableSchema
differences(files.read(0), files.read(3))
files.evolve([RenameColumn(("name",), "customer")])
run_import(plan_import(find_table(lake, "sales.orders")), lake, "sales.orders_iceberg")
"""
