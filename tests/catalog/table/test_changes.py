"""What changed between two snapshots of a table, by the ids of its rows."""

from __future__ import annotations

import pyarrow as pa
import pytest

from icecomb.format.errors import (
    NoSuchSnapshotError,
    UnsupportedError,
    ValidationError,
)
from icecomb.format.spec.types import LongType

SCHEMA = pa.schema([("id", pa.int64()), ("s", pa.string())])


def frame(*rows) -> pa.Table:
    numbers, texts = zip(*rows, strict=True)
    return pa.table([pa.array(numbers, pa.int64()), pa.array(texts, pa.string())], schema=SCHEMA)


def new_table(lake, version="3", **properties):
    given = {name.replace("_", "."): value for name, value in properties.items()}
    table = lake.create_table("db.t", SCHEMA, properties={"format-version": version, **given})
    table.append(frame((0, "a"), (1, "b"), (2, "c"), (3, "d")))
    return table


def changes(table, start=None, end=None):
    found = table.changes(start, end).to_arrow().to_pydict()
    return sorted(zip(found["_change_type"], found["id"], found["s"], strict=True))


def now(table):
    return table.current_snapshot().snapshot_id


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_rows_are_inserted_updated_and_deleted_by_their_ids(lake, mode):
    table = new_table(lake, write_delete_mode=mode, write_merge_mode=mode)
    first = now(table)
    table.append(frame((4, "e"), (5, "f")))
    table.upsert(frame((1, "B"), (4, "E"), (6, "g")), ["id"])
    second = now(table)
    table.delete("id in (2, 5)")
    table.upsert(frame((1, "BB"), (3, "d")), ["id"])
    third = now(table)
    table.maintenance.rewrite_data_files(options={"rewrite-all": "true"})
    table = table.refresh()
    assert changes(table, first, second) == [
        ("INSERT", 4, "E"),
        ("INSERT", 5, "f"),
        ("INSERT", 6, "g"),
        ("UPDATE_AFTER", 1, "B"),
        ("UPDATE_BEFORE", 1, "b"),
    ]
    net = [
        ("DELETE", 2, "c"),
        ("INSERT", 4, "E"),
        ("INSERT", 6, "g"),
        ("UPDATE_AFTER", 1, "BB"),
        ("UPDATE_BEFORE", 1, "b"),
    ]
    assert changes(table, first, third) == net
    assert changes(table, first) == net
    # a rewrite moves rows and changes none
    assert changes(table, third) == []
    assert changes(table, first, first) == []
    everything = [("INSERT", n, s) for n, s in ((0, "a"), (1, "b"), (2, "c"), (3, "d"))]
    assert changes(table, None, first) == everything


def test_columns_are_chosen_and_come_in_batches(lake):
    table = new_table(lake)
    first = now(table)
    table.upsert(frame((3, "D")), ["id"])
    scan = table.changes(first, selected_fields=("s", "_row_id"))
    reader = scan.to_arrow_batch_reader()
    assert reader.schema == scan.schema
    assert scan.schema.names == ["s", "_row_id", "_change_type"]
    assert reader.read_all().to_pylist() == [
        {"s": "d", "_row_id": 3, "_change_type": "UPDATE_BEFORE"},
        {"s": "D", "_row_id": 3, "_change_type": "UPDATE_AFTER"},
    ]


def test_an_added_column_is_null_before(lake):
    table = new_table(lake)
    first = now(table)
    with table.update_schema() as update:
        update.add_column("x", LongType())
    table.upsert(frame((3, "D")).append_column("x", pa.array([7])), ["id"])
    assert table.changes(first).to_arrow().select(["x", "_change_type"]).to_pylist() == [
        {"x": None, "_change_type": "UPDATE_BEFORE"},
        {"x": 7, "_change_type": "UPDATE_AFTER"},
    ]


def test_without_ids_or_a_common_line_changes_are_refused(lake):
    table = new_table(lake, version="2")
    older = now(table)
    with pytest.raises(UnsupportedError, match="its format version is 2"):
        table.changes()
    with table.update_properties() as update:
        update.set("format-version", "3")
    with pytest.raises(UnsupportedError, match=f"Rows of snapshot {older} have no ids"):
        table.changes()
    table.append(frame((4, "e")))
    with pytest.raises(UnsupportedError, match=f"Rows of snapshot {older} have no ids"):
        table.changes(older)
    first = now(table)
    assert len(changes(table, None, first)) == 5
    table.append(frame((5, "f")), branch="work")
    side = table.refs()["work"].snapshot_id
    table.append(frame((6, "g")))
    with pytest.raises(ValidationError, match=f"{side} is not an ancestor of {now(table)}"):
        table.changes(side)
    with pytest.raises(NoSuchSnapshotError, match="There is no snapshot 7"):
        table.changes(7)
    with pytest.raises(NoSuchSnapshotError, match="There is no snapshot 7"):
        table.changes(first, 7)
