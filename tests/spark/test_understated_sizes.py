"""Data files that are longer than their manifest says: Spark reads all of their rows."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.operation.append import FastAppend
from tests.rings import sampled

COUNT = 9_000
ROWS = pa.table(
    {
        "id": pa.array(range(COUNT), pa.int64()),
        "s": [f"{n * 7919 % 1_000_003:06}" * 12 for n in range(COUNT)],
    }
)
SMALL_PARTS = {
    "write.parquet.row-group-size-bytes": "65536",
    "write.orc.stripe-size-bytes": "65536",
}


@pytest.fixture(scope="module")
def namespace(catalog):
    catalog.create_namespace("understated")
    yield "understated"
    for identifier in catalog.list_tables("understated"):
        catalog.drop_table(identifier)
    catalog.drop_namespace("understated")


@pytest.mark.parametrize("minor", sampled(["4.3", "3.5", "4.1"], keep=1))
def test_rows_behind_the_stated_size_are_read_counted_and_kept(sql_on, catalog, namespace, minor):
    sql = sql_on(minor)
    for kind in ("parquet", "orc", "avro"):
        name = f"{kind}_{minor.replace('.', '_')}"
        properties = {"write.format.default": kind, **SMALL_PARTS}
        right = catalog.create_table(
            (namespace, f"{name}_right"), ROWS.schema, properties=properties
        )
        right.append(ROWS)
        [manifest] = read_manifests(right.io, right.current_snapshot())
        [entry] = manifest.fetch_manifest_entry(right.io)
        half = entry.data_file.file_size_in_bytes // 2
        wrong = replace(entry.data_file, file_size_in_bytes=half, split_offsets=None)
        made = catalog.create_table((namespace, name), right.schema(), properties=properties)
        made.commit(FastAppend(made.io).append_data_file(wrong))
        table = f"lake.{namespace}.{name}"
        total = COUNT * (COUNT - 1) // 2
        assert sql(f"SELECT sum(id), count(s) FROM {table}") == [[total, COUNT]]
        assert sql(f"SELECT count(*) FROM {table} WHERE id >= 8990") == [[10]]
        # in parts, each row once
        sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('read.split.target-size'='65536')")
        assert sql(f"SELECT sum(id), count(s) FROM {table}") == [[total, COUNT]]
        sql(f"DELETE FROM {table} WHERE id = 1")
        assert sql(f"SELECT sum(id), count(s) FROM {table}") == [[total - 1, COUNT - 1]]
