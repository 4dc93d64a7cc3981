"""The SQL of a changelog view."""

from __future__ import annotations

import pyarrow as pa

from icecomb.catalog import load_catalog
from icecomb.format.manifests.manifest import DataFile
from icecomb.format.operation.append import FastAppend
from icecomb.spark.planner.procedures import PROCEDURES
from icecomb.spark.planner.procedures.call import Call


def test_files_are_named_as_spark_has_them_in_the_column_file(tmp_path):
    properties = {
        "type": "hadoop",
        "warehouse": f"file:{tmp_path}",
        "dfs.namenode.rpc-address": "nn:8020",
        "dfs.namenode.http-address": "nn:9870",
    }
    catalog = load_catalog("lake", **properties)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", pa.schema([("id", pa.int64())]))
    file = DataFile(
        file_path="webhdfs://nn:9870/t/a.parquet", record_count=1, file_size_in_bytes=500
    )
    table.commit(FastAppend(table.io).append_data_file(file))
    call = Call(catalog, ("db",), session=None, query=iter)
    view = PROCEDURES["create_changelog_view"]
    view.run(call, **view.bind([("table", "db.t")]))
    [sql] = call.views.values()
    assert "WHERE _icecomb_t._file IN ('hdfs://nn:8020/t/a.parquet')" in sql
