"""Files of many batches: the next batch is decoded while the rows of the last are chosen."""

from __future__ import annotations

import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icecomb.catalog import load_catalog
from icecomb.format.errors import CorruptFileError
from icecomb.format.rows.read import arrow_scan
from icecomb.format.rows.read.arrow_scan import ArrowScan

ROWS = 2000
PROPERTIES = {
    "format-version": "3",
    "write.delete.mode": "merge-on-read",
    "write.parquet.row-group-limit": "500",
    "write.parquet.compression-codec": "uncompressed",
}


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.setattr(arrow_scan, "LARGE_BATCH", 1)
    catalog = load_catalog("lake", type="hadoop", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    rows = pa.table({"id": range(ROWS), "s": [f"s{i % 10}" for i in range(ROWS)]})
    table = catalog.create_table("db.t", rows.schema, properties=PROPERTIES)
    table.append(rows)
    yield table
    catalog.close()


def batches(table, where=None, limit=None):
    scan = table.scan(where) if where else table.scan()
    reader = ArrowScan(table.metadata, table.io, table.schema(), batch_size=50, limit=limit)
    return reader.to_record_batches(scan.plan_files())


def ids(table, where=None, limit=None):
    return [i for batch in batches(table, where, limit) for i in batch["id"].to_pylist()]


def test_rows_are_those_that_are_left_in_the_order_of_the_file(table):
    assert ids(table, "id >= 77 and s != 's3'") == [i for i in range(77, ROWS) if i % 10 != 3]
    table.delete("s in ('s1', 's7') or id between 400 and 1100")
    left = [i for i in range(ROWS) if i % 10 not in {1, 7} and not 400 <= i <= 1100]
    assert ids(table) == left
    assert ids(table, "s != 's3'") == [i for i in left if i % 10 != 3]


def test_who_reads_no_further_leaves_no_thread(table):
    rows = batches(table, "s != 's3'")
    assert next(rows)["id"][0].as_py() == 0
    rows.close()
    for thread in threading.enumerate():
        if thread.name.startswith("icecomb-ahead"):
            thread.join(10)
            assert not thread.is_alive()


def test_a_limit_that_is_reached_before_the_damage_is_an_answer(table):
    (task,) = table.scan().plan_files()
    path = Path(task.file.file_path.removeprefix("file://"))
    chunk = pq.read_metadata(path).row_group(1).column(0)
    damaged = bytearray(path.read_bytes())
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    damaged[start : start + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
    path.write_bytes(damaged)
    assert ids(table, "s != 's3'", limit=440)[:3] == [0, 1, 2]
    with pytest.raises(CorruptFileError, match=path.name):
        ids(table, "s != 's3'")
