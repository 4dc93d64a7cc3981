"""A file with another number of rows than its manifest states: it is named, and nothing is made of it."""

from __future__ import annotations

import uuid
from dataclasses import replace

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog
from icecomb.format.errors import CorruptFileError
from icecomb.format.manifests.manifest import DataFileContent
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.operation.row_delta import RowDelta
from tests.catalog.metadata_of_others import UNKNOWN, with_its_file
from tests.format.rows.equality_delete_writer import EqualityDeleteWriter
from tests.rings import sampled

COUNT = 100
ROWS = pa.table({"id": pa.array(range(COUNT), pa.int64())})
FORMATS = ["parquet", "orc", "avro"]


@pytest.fixture(params=FORMATS)
def lake(request, tmp_path):
    catalog = load_catalog("files", type="hadoop", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    properties = {"write.format.default": request.param}
    right = catalog.create_table("db.right", ROWS.schema, properties=properties)
    right.append(ROWS)
    yield catalog
    catalog.close()


def files(table):
    return [
        entry.data_file
        for manifest in read_manifests(table.io, table.current_snapshot())
        for entry in manifest.fetch_manifest_entry(table.io)
    ]


def stating(catalog, rows, **properties):
    """A table with the file of another, of which the manifest states so many rows."""
    right, wrong = catalog.load_table("db.right"), {"record_count": rows, **UNKNOWN}
    return with_its_file(catalog, right, "db.t", lambda _: wrong, **properties)


CHANGES = {
    "scan": lambda t: t.scan().to_arrow(),
    "filter": lambda t: t.scan("id >= 98").to_arrow(),
    "delete": lambda t: t.delete("id = 1"),
    "upsert": lambda t: t.upsert(ROWS.slice(98), join_cols=["id"]),
    "compaction": lambda t: t.maintenance.rewrite_data_files(options={"rewrite-all": "true"}),
}


@pytest.mark.parametrize(
    ("change", "stated"),
    sampled([(change, stated) for change in CHANGES for stated in (99, 101)], keep=5),
)
def test_the_file_is_named_with_both_numbers(lake, change, stated):
    table = stating(lake, stated)
    before = table.metadata_location
    with pytest.raises(CorruptFileError, match=rf"has {COUNT} rows, its manifest says {stated}"):
        CHANGES[change](table)
    assert table.refresh().metadata_location == before


def deleted_by_position(table):
    table.delete("id < 3")
    return next(f for f in files(table) if f.content is DataFileContent.POSITION_DELETES)


def deleted_by_value(table):
    writer = EqualityDeleteWriter(table.io, table.metadata, uuid.uuid4().hex, ["id"])
    for batch in ROWS.slice(0, 3).to_batches():
        writer.write(batch)
    [file] = writer.close()
    return file


@pytest.mark.parametrize("stated", [2, 4])
@pytest.mark.parametrize("made", [deleted_by_position, deleted_by_value])
def test_delete_files_are_compared_likewise(lake, made, stated):
    table = stating(lake, COUNT, **{"write.delete.mode": "merge-on-read"})
    file = made(table)
    if made is deleted_by_position:
        table.manage_snapshots().rollback_to_snapshot(table.snapshots()[0].snapshot_id).commit()
    table.commit(RowDelta(table.io).add_deletes(replace(file, record_count=stated, **UNKNOWN)))
    with pytest.raises(CorruptFileError, match=f"has 3 rows, its manifest says {stated}"):
        table.scan().to_arrow()
