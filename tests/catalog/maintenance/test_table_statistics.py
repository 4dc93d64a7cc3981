"""Statistics of columns are those of the snapshot's rows, whatever was read again for them."""

from __future__ import annotations

import json
import struct
import time
from contextlib import contextmanager
from pathlib import Path

import datasketches
import pyarrow as pa
import pytest
import zstandard
from maintained_table import delete_by_value, interrupting
from pyiceberg.table import StaticTable

from icecomb.catalog.cli import main
from icecomb.format.errors import (
    IcecombError,
    NoSuchSnapshotError,
    UnsupportedError,
    ValidationError,
)
from icecomb.format.rows.deletes.puffin_file import PuffinReader
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import (
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
    UUIDType,
)
from icecomb.format.statistics.column_sketches import ColumnSketches
from tests.peers.other_user import give_away

SCHEMA = Schema(
    NestedField(1, "id", IntegerType()),
    NestedField(2, "s", StringType()),
    NestedField(3, "in", StructType(NestedField(4, "x", LongType()))),
    NestedField(5, "l", ListType(6, LongType())),
)
BY_VECTOR = {"format-version": "3", "write.delete.mode": "merge-on-read"}
BY_FILE = {"write.delete.mode": "merge-on-read"}


class RowsRead:
    """Progress that counts rows."""

    def __init__(self):
        self.rows, self.said = 0, []

    @contextmanager
    def task(self, *_):
        def advance(count):
            self.rows += count

        yield advance

    def say(self, message):
        self.said.append(message)


def frame(begin, end):
    numbers = range(begin, end)
    inner = pa.struct([("x", pa.int64())])
    return pa.table(
        {
            "id": pa.array(numbers, pa.int32()),
            "s": pa.array([f"s{n % 7}" if n % 3 else None for n in numbers], pa.string()),
            "in": pa.array([{"x": n % 5} if n % 2 else None for n in numbers], inner),
            "l": pa.array([[n] for n in numbers], pa.list_(pa.int64())),
        }
    )


def new_table(lake, *parts, schema=SCHEMA, **properties):
    table = lake.create_table("db.t", schema, properties=properties)
    for begin, end in parts:
        table.append(frame(begin, end))
    return table


def compute(table, **arguments):
    """Compute; return the numbers of rows that were read."""
    progress = RowsRead()
    result = table.maintenance.compute_table_stats(progress=progress, **arguments)
    assert result.statistics_file is not None
    assert Path(result.statistics_file.removeprefix("file://")).exists()
    return progress.rows


def distinct(table, snapshot_id=None):
    """The numbers of distinct values of a snapshot, by column."""
    wanted = snapshot_id or table.metadata.current_snapshot().snapshot_id
    (file,) = [f for f in table.metadata.statistics if f["snapshot-id"] == wanted]
    numbers = {}
    reader = PuffinReader(table.io.read(file["statistics-path"]), file["statistics-path"])
    for told, blob in zip(file["blob-metadata"], reader.blobs, strict=True):
        (field_id,) = told["fields"]
        shown = (told["type"], tuple(told["fields"]), told["snapshot-id"], told["properties"])
        assert shown == (blob.type, blob.fields, blob.snapshot_id, dict(blob.properties))
        sketch = datasketches.compact_theta_sketch.deserialize(reader.content(blob))
        assert str(int(sketch.get_estimate())) == told["properties"]["ndv"]
        assert told["sequence-number"] == blob.sequence_number
        name = table.metadata.schema().find_column_name(field_id)
        numbers[name] = int(told["properties"]["ndv"])
    return numbers


def in_rows(table, *names):
    """The same numbers, by counting."""
    found = table.scan().to_arrow().flatten()
    return {name: len(set(found[name].to_pylist()) - {None}) for name in names}


@pytest.mark.parametrize("properties", [{}, BY_FILE, BY_VECTOR], ids=["rewrite", "v2", "v3"])
def test_deleted_rows_do_not_count(lake, properties):
    table = new_table(lake, (0, 40), (30, 90), **properties)
    assert compute(table) == 100
    assert distinct(table) == in_rows(table, "id", "s") == {"id": 90, "s": 7}
    table.delete("id < 20 or s = 's1'")
    assert compute(table) == len(table.scan().to_arrow())
    assert distinct(table) == in_rows(table, "id", "s")


def test_rows_deleted_by_their_values_do_not_count(lake):
    table = new_table(lake, (0, 40), (30, 90))
    compute(table)
    delete_by_value(table, "s1", "s")
    compute(table.refresh())
    assert distinct(table) == in_rows(table, "id", "s") == {"id": 81, "s": 6}


def test_all_columns_of_primitive_types_are_the_default_and_fields_of_structs_are_named(lake):
    table = new_table(lake, (0, 40))
    compute(table)
    assert list(distinct(table)) == ["id", "s"]
    assert compute(table, columns=["in.x", "in.x"]) == 40
    assert distinct(table) == in_rows(table, "in.x", "id", "s") == {"in.x": 5, "id": 40, "s": 7}
    location = table.metadata_location
    assert compute(table, columns=["s"]) == 0
    assert table.metadata_location == location


def test_only_appended_rows_are_read_and_the_bytes_are_those_of_reading_all(lake):
    table = new_table(lake, (0, 6000))
    assert compute(table, columns=["id"]) == 6000
    table.append(frame(5000, 9000))
    table.append(frame(8000, 9000))
    assert compute(table) == 5000 + 11_000  # of id, and of s
    onward = sketches(table)
    table.maintenance.compute_table_stats(columns=["s"])
    with table.transaction() as change:
        change.set_properties({"a": "b"})
    again = lake.create_table("db.again", SCHEMA)
    again.append(table.scan().to_arrow())
    compute(again)
    assert onward == sketches(again)
    assert abs(distinct(table)["id"] - 9000) < 300


def sketches(table):
    path = table.metadata.statistics[-1]["statistics-path"]
    reader = PuffinReader(table.io.read(path), path)
    return {blob.fields: reader.content(blob) for blob in reader.blobs}


def test_all_rows_are_read_after_a_delete_a_rewrite_and_a_change_of_the_type(lake):
    table = new_table(lake, (0, 40), (40, 80))
    compute(table)
    table.maintenance.rewrite_data_files(options={"min-input-files": "2"})
    table.append(frame(80, 90))
    assert compute(table) == 90
    table.delete("id = 3")
    table.append(frame(90, 95))
    assert compute(table) == 94
    with table.update_schema() as update:
        update.update_column("id", LongType())
    table.append(frame(95, 100))
    assert compute(table) == 5 + 99  # of s, and of id, whose values have other bytes now
    assert distinct(table) == in_rows(table, "id", "s") == {"id": 99, "s": 7}


def test_a_uuid_never_goes_on_from_other_statistics(lake):
    schema = Schema(NestedField(1, "u", UUIDType()))
    table = lake.create_table("db.t", schema)
    for n in range(2):
        table.append(pa.table({"u": pa.array([bytes([n] * 16)] * 3, pa.binary(16))}))
        assert compute(table) == 3 * (n + 1)
    assert distinct(table) == {"u": 2}


@pytest.mark.parametrize("damage", [b"PFA1", None, "a folder"])
def test_without_the_older_file_all_rows_are_read(lake, damage):
    """Damaged, missing, or not to be had from its store."""
    table = new_table(lake, (0, 40))
    compute(table)
    older = Path(table.metadata.statistics[0]["statistics-path"].removeprefix("file://"))
    older.unlink()
    if damage == "a folder":
        older.mkdir()
    elif damage is not None:
        older.write_bytes(damage)
    table.append(frame(40, 50))
    progress = RowsRead()
    table.maintenance.compute_table_stats(progress=progress)
    assert progress.rows == 50
    assert "older statistics are not used" in progress.said[0]
    assert distinct(table)["id"] == 50


def with_blobs(table, *blobs):
    """A table's statistics file made anew: blobs of a type unknown here, over the same bytes."""
    told = table.metadata.statistics[0]
    path = Path(told["statistics-path"].removeprefix("file://"))
    content = zstandard.ZstdCompressor().compress(b"not icecomb's")
    shown = [
        {
            "type": "x",
            "fields": [99],
            "snapshot-id": told["snapshot-id"],
            "sequence-number": 1,
            "offset": offset,
            "length": len(content),
            "compression-codec": "zstd",
        }
        for offset in blobs
    ]
    footer = json.dumps({"blobs": shown}).encode()
    tail = b"PFA1" + footer + struct.pack("<i", len(footer)) + bytes(4) + b"PFA1"
    path.write_bytes(b"PFA1" + content * 2 + tail)
    return path, content


def kept(table):
    """The bytes of the blobs that a new computation takes over, and what it says."""
    progress = RowsRead()
    made = table.maintenance.compute_table_stats(progress=progress).statistics_file
    reader = PuffinReader(table.io.read(made), made)
    own = [blob for blob in reader.blobs if blob.type == "x"]
    return [(blob.codec, reader.stored(blob), reader.content(blob)) for blob in own], progress.said


def test_blobs_of_others_are_taken_over_as_they_are_stored(lake):
    table = new_table(lake, (0, 4))
    compute(table)
    _, content = with_blobs(table, 4)
    assert kept(table) == ([("zstd", content, b"not icecomb's")], [])


def test_blobs_that_overlap_are_not_taken_over(lake):
    """A small file could otherwise stand for any number of bytes."""
    table = new_table(lake, (0, 4))
    compute(table)
    with_blobs(table, 4, 5)
    found, [said] = kept(table)
    assert found == []
    assert "its blobs overlap" in said


@pytest.mark.parametrize("by", ["path", "link"])
def test_a_private_statistics_file_is_not_taken_over(lake, tmp_path, monkeypatch, by):
    """Whoever writes to the table's folder names it there, or links to it."""
    table = new_table(lake, (0, 4))
    compute(table)
    path, _ = with_blobs(table, 4)
    path.rename(tmp_path / "private.stats")
    if by == "link":
        path.symlink_to(tmp_path / "private.stats")
        give_away(path, monkeypatch)
    else:
        told = {**table.metadata.statistics[0], "statistics-path": f"{tmp_path}/private.stats"}
        table.update_statistics().set_statistics(told).commit()
    found, [said] = kept(table)
    assert found == []
    assert ("outside of the table's folders" if by == "path" else "Cannot copy") in said


def test_an_older_snapshot_has_its_own_columns(lake):
    table = new_table(lake, (0, 40))
    first = table.metadata.current_snapshot().snapshot_id
    with table.update_schema() as update:
        update.rename_column("s", "text")
    table.append(frame(40, 50).rename_columns(["id", "text", "in", "l"]))
    compute(table, columns=["s"], snapshot=first)
    assert distinct(table, first) == {"text": 7}
    compute(table)
    assert [f["snapshot-id"] for f in table.metadata.statistics] == [
        first,
        table.metadata.current_snapshot().snapshot_id,
    ]


def test_a_table_without_snapshots_has_no_statistics(lake):
    table = new_table(lake)
    location = table.metadata_location
    assert table.maintenance.compute_table_stats().statistics_file is None
    assert table.refresh().metadata_location == location


def test_a_table_without_columns_of_primitive_types_has_no_statistics(lake):
    table = lake.create_table("db.nested", pa.schema([("l", pa.list_(pa.int64()))]))
    table.append(pa.table({"l": [[1]]}, schema=pa.schema([("l", pa.list_(pa.int64()))])))
    location = table.metadata_location
    assert table.maintenance.compute_table_stats().statistics_file is None
    assert table.refresh().metadata_location == location
    with pytest.raises(ValidationError, match="no column to compute statistics of"):
        table.maintenance.compute_table_stats(columns=[])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"columns": ["l"]}, "column 'l' cannot be computed: values of type list<long>"),
        ({"columns": ["l.element"]}, "column 'l.element' cannot be computed"),
        ({"columns": ["in"]}, "column 'in' cannot be computed"),
        ({"columns": ["ID"]}, "has no column 'ID'"),
        ({"columns": []}, "no column to compute statistics of"),
        ({"columns": "id"}, "Columns must be a sequence"),
        ({"snapshot": 5}, "no snapshot 5"),
        ({"engine": "spark"}, "only where a session calls"),
    ],
)
def test_what_has_no_statistics_is_refused_by_name(lake, arguments, said):
    table = new_table(lake, (0, 10))
    with pytest.raises(IcecombError, match=said) as caught:
        table.maintenance.compute_table_stats(**arguments)
    assert caught.value.hint
    assert table.refresh().metadata.statistics == ()


def test_statistics_go_with_their_snapshot_and_are_orphans_only_then(lake):
    table = new_table(lake, (0, 10), (10, 20))
    first, second = (snapshot.snapshot_id for snapshot in table.metadata.snapshots)
    for snapshot in (first, second):
        compute(table, snapshot=snapshot)
    paths = {
        file["snapshot-id"]: Path(file["statistics-path"].removeprefix("file://"))
        for file in table.metadata.statistics
    }
    in_an_hour = int(time.time() * 1000) + 3_600_000
    found = table.maintenance.remove_orphan_files(
        older_than=in_an_hour, any_age=True, dry_run=False
    )
    assert not [path for path in found.orphan_file_location if path.endswith(".stats")]
    expired = table.maintenance.expire_snapshots().by_id(first).commit()
    assert expired.deleted_statistics_files_count == 1
    assert (paths[first].exists(), paths[second].exists()) == (False, True)
    assert [file["snapshot-id"] for file in table.metadata.statistics] == [second]


def test_of_a_snapshot_that_expires_meanwhile_nothing_is_kept(lake, monkeypatch):
    table = new_table(lake, (0, 10), (10, 20))
    first = table.metadata.snapshots[0].snapshot_id

    def expire():
        lake.load_table("db.t").maintenance.expire_snapshots().by_id(first).commit()

    interrupting(monkeypatch, ColumnSketches, "read")(expire)
    with pytest.raises(NoSuchSnapshotError, match="it has expired meanwhile"):
        table.maintenance.compute_table_stats(snapshot=first)
    folder = Path(table.location().removeprefix("file://"))
    assert list(folder.rglob("*.stats")) == []
    assert lake.load_table("db.t").metadata.statistics == ()


def test_pyiceberg_reads_the_metadata(lake):
    table = new_table(lake, (0, 10))
    compute(table)
    (file,) = StaticTable.from_metadata(table.metadata_location).metadata.statistics
    assert [blob.properties["ndv"] for blob in file.blob_metadata] == ["10", "5"]
    assert file.statistics_path == table.metadata.statistics[0]["statistics-path"]


def test_the_command_prints_the_file(lake, capsys, tmp_path):
    table = new_table(lake, (0, 10))
    folder = table.location()
    command = ["maintain", "compute-table-stats", folder, "--columns", "id, in.x"]
    assert main(command) == 0
    table.refresh()
    assert table.metadata.statistics[0]["statistics-path"] in capsys.readouterr().out
    assert list(distinct(table)) == ["id", "in.x"]
    with pytest.raises(UnsupportedError):
        table.maintenance.compute_table_stats(columns=["in"])


def test_statistics_that_others_computed_are_set_and_removed(lake):
    table = lake.create_table("db.t", SCHEMA)
    table.append(frame(0, 3))
    first = table.metadata.current_snapshot_id
    table.maintenance.compute_table_stats(columns=["id"])
    (theirs,) = StaticTable.from_metadata(table.refresh().metadata_location).metadata.statistics
    (own,) = table.metadata.statistics
    table.append(frame(3, 5))
    second = table.metadata.current_snapshot_id
    with table.update_statistics() as update:
        update.set_statistics({**own, "snapshot-id": second}).remove_statistics(first)
    assert table.metadata.statistics == ({**own, "snapshot-id": second},)
    with table.transaction() as both:
        both.update_statistics().set_statistics(theirs).remove_statistics(second).commit()
    assert table.metadata.statistics == (own,)
    assert StaticTable.from_metadata(table.metadata_location).metadata.statistics == [theirs]
    version = table.metadata_location
    table.update_statistics().remove_statistics(second).commit()
    with table.update_statistics():
        pass
    assert table.metadata.statistics == (own,)
    assert table.metadata_location == version
    with pytest.raises(
        NoSuchSnapshotError, match=r"Cannot set statistics: the table at .* has no snapshot 5"
    ):
        table.update_statistics().set_statistics({**own, "snapshot-id": 5}).commit()
    asked = table.update_statistics()
    for given, problem in (
        ({**own, "snapshot-id": "5"}, "The snapshot-id of a statistics file cannot be '5'"),
        ({"snapshot-id": first}, "The statistics-path of a statistics file cannot be None"),
        ("/a/path", "is a mapping, not str"),
        ({**own, "blob-metadata": [{b"k"}]}, "that JSON does not have"),
    ):
        with pytest.raises(ValidationError, match=problem):
            asked.set_statistics(given)
    with pytest.raises(ValidationError, match="Snapshot id must be a whole number"):
        asked.remove_statistics("all")
