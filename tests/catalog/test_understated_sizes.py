"""A data file that is longer than its manifest says: all of its rows are read."""

from __future__ import annotations

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog
from icecomb.format.rows.read.arrow_scan import ArrowScan
from tests.catalog.metadata_of_others import half_its_size, with_its_file

COUNT = 9_000
ROWS = pa.table(
    {
        "id": pa.array(range(COUNT), pa.int64()),
        "s": [f"{n * 7919 % 1_000_003:06}" * 12 for n in range(COUNT)],
    }
)
SETTINGS = {
    # several row groups or stripes
    "parquet": {"write.parquet.row-group-size-bytes": "65536"},
    "orc": {"write.orc.stripe-size-bytes": "65536"},
    "avro": {},
}


@pytest.fixture(params=SETTINGS)
def table(request, tmp_path):
    """A file of which the manifest states half of the size."""
    catalog = load_catalog("files", type="hadoop", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    properties = {"write.format.default": request.param, **SETTINGS[request.param]}
    right = catalog.create_table("db.right", ROWS.schema, properties=properties)
    right.append(ROWS)
    return with_its_file(catalog, right, "db.t", half_its_size)


def ids(table):
    return sorted(table.refresh().scan().to_arrow()["id"].to_pylist())


def test_all_rows_are_read(table):
    assert ids(table) == list(range(COUNT))
    assert table.scan("id >= 8990").to_arrow().num_rows == 10
    assert table.scan().count() == COUNT
    assert table.scan("id >= 0").count() == COUNT


def test_parts_of_the_file_have_each_row_once(table):
    [task] = table.scan().plan_files()
    parts = list(task.split(task.length // 3))
    scan = ArrowScan(table.metadata, table.io, table.schema())
    found = [n for part in parts for batch in scan.read(part) for n in batch["id"].to_pylist()]
    assert sorted(found) == list(range(COUNT))


def test_a_delete_by_copy_keeps_the_others(table):
    table.delete("id = 1")
    assert ids(table) == [n for n in range(COUNT) if n != 1]


def test_an_upsert_finds_every_key(table):
    table.upsert(ROWS.slice(COUNT - 5).set_column(1, "s", pa.array(["new"] * 5)), join_cols=["id"])
    assert ids(table) == list(range(COUNT))


def test_a_compaction_keeps_all(table):
    table.maintenance.rewrite_data_files(options={"rewrite-all": "true"})
    assert ids(table) == list(range(COUNT))
