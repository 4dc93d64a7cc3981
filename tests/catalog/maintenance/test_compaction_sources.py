"""Data files are rewritten whose names, ages or columns mean something else by the commit."""

from __future__ import annotations

import uuid
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icecomb.catalog.hadoop.pointer import HadoopPointer
from icecomb.format.errors import ValidationError
from icecomb.format.maintenance.dangling_deletes import DanglingDeletesRemoval
from icecomb.format.operation.append import FastAppend
from icecomb.format.operation.rewrite_manifests import RewriteManifests
from icecomb.format.operation.row_delta import RowDelta
from icecomb.format.spec.name_mapping import MappedField, NameMapping
from icecomb.format.spec.types import StringType
from tests.format.rows.equality_delete_writer import EqualityDeleteWriter

SCHEMA = pa.schema([("id", pa.int64()), ("s", pa.string())])
ALL = {"rewrite-all": "true"}


def frame(*values: int) -> pa.Table:
    return pa.table([pa.array(values, pa.int64()), [f"s{value}" for value in values]], SCHEMA)


def new_table(lake, *parts, version="2"):
    mode = "copy-on-write" if version == "1" else "merge-on-read"
    given = {"format-version": version, "write.delete.mode": mode}
    table = lake.create_table("db.t", SCHEMA, properties=given)
    for part in parts:
        table.append(part)
    return table


def ids(table) -> list[int]:
    return sorted(table.refresh().scan(selected_fields=("id",)).to_arrow()["id"].to_pylist())


def first_file(table):
    files = [task.file for task in table.refresh().scan().plan_files()]
    return min(files, key=lambda file: file.record_count)


def largest_file(table):
    files = [task.file for task in table.refresh().scan().plan_files()]
    return max(files, key=lambda file: file.record_count)


def table_with_a_file_twice(lake):
    table = new_table(lake, frame(1, 2, 3))
    again = FastAppend(table.io)
    again.append_data_file(first_file(table))
    table.commit(again)
    return table


@pytest.mark.parametrize("most", ["1", "100"])
def test_rows_of_a_file_that_the_table_has_twice_stay_twice(lake, most):
    table = table_with_a_file_twice(lake)
    options = {**ALL, "max-file-group-input-files": most}
    assert table.maintenance.rewrite_data_files(options=options).rewritten_data_files_count == 2
    assert ids(table) == [1, 1, 2, 2, 3, 3]


def test_only_one_of_them_is_not_replaced(lake):
    table = table_with_a_file_twice(lake)
    with pytest.raises(ValidationError, match="the table has it 2 times"):
        table.maintenance.rewrite_data_files(options={**ALL, "max-files-to-rewrite": "1"})
    options = {
        **ALL,
        "max-file-group-input-files": "1",
        "partial-progress.enabled": "true",
    }
    assert table.maintenance.rewrite_data_files(options=options).failed_data_files_count == 2
    assert ids(table) == [1, 1, 2, 2, 3, 3]


def test_a_file_that_others_remove_and_add_again_keeps_the_rows_it_has_then(lake, meanwhile):
    table = new_table(lake, frame(1, 2, 3), frame(*range(10, 30)))
    table.delete("id = 1")
    location = first_file(table).file_path
    other = lake.load_table("db.t")

    def change() -> None:
        other.refresh().delete("id < 10")
        Path(location.removeprefix("file:")).unlink()
        pq.write_table(frame(1, 7), location.removeprefix("file:"))
        other.add_files([location])

    meanwhile(change)
    table.maintenance.rewrite_data_files(options=ALL)
    assert ids(table) == [1, 7, *range(10, 30)]


def test_a_file_that_others_add_once_more_is_there_twice(lake, meanwhile):
    table = new_table(lake, frame(1, 2, 3), frame(*range(10, 30)))
    other = lake.load_table("db.t")

    def change() -> None:
        again = FastAppend(other.io)
        again.append_data_file(first_file(other))
        other.commit(again)

    meanwhile(change)
    table.maintenance.rewrite_data_files(options=ALL)
    assert ids(table) == [1, 1, 2, 2, 3, 3, *range(10, 30)]


def test_a_group_is_rewritten_again_where_no_delete_file_can_be(lake, meanwhile):
    table = new_table(lake, frame(*range(100)), frame(200), frame(201), version="1")
    other = lake.load_table("db.t")
    meanwhile(lambda: other.refresh().delete("id = 200"))
    assert table.maintenance.rewrite_data_files(options=ALL).rewritten_data_files_count == 2
    assert ids(table) == [*range(100), 201]


def test_values_that_others_delete_after_an_upgrade_stay_deleted(lake, overtaken, monkeypatch):
    def no_queue(_self, _held, _base=None):
        return False

    # others of this process are to be first while it commits
    monkeypatch.setattr(HadoopPointer, "queue", no_queue)
    table = new_table(lake, frame(1, 2), frame(3, 4), version="1")
    other = lake.load_table("db.t")

    def change() -> None:
        with other.update_properties() as update:
            update.set("format-version", "2")
        kept = other.refresh().metadata
        writer = EqualityDeleteWriter(other.io, kept, uuid.uuid4().hex, ["id"])
        writer.write(pa.record_batch({"id": pa.array([3])}))
        delta = RowDelta(other.io)
        for file in writer.close():
            delta.add_deletes(file)
        other.commit(delta)

    overtaken(change)
    table.maintenance.rewrite_data_files(options=ALL)
    assert ids(table) == [1, 2, 4]


def test_a_column_that_others_find_in_the_files_is_not_lost(lake, meanwhile):
    """As Iceberg Java's UpdateSchema maps the name of a column it adds."""
    table = lake.create_table("db.t", pa.schema([("id", pa.int64())]))
    folder = Path(table.location().removeprefix("file:")) / "data"
    folder.mkdir()
    paths = [folder / f"{n}.parquet" for n in range(2)]
    for n, path in enumerate(paths):
        pq.write_table(frame(n), path)
    table.add_files(list(map(str, paths)))

    def map_names(given, **names: int) -> None:
        mapping = NameMapping(tuple(MappedField(n, (name,)) for name, n in names.items()))
        with given.update_properties() as update:
            update.set("schema.name-mapping.default", mapping.to_json())

    def change() -> None:
        other = lake.load_table("db.t")
        with other.update_schema() as update:
            update.add_column("s", StringType())
        map_names(other.refresh(), id=1, s=other.schema().find_field("s").field_id)

    map_names(table, id=1)
    meanwhile(change)
    table.maintenance.rewrite_data_files(options=ALL)
    found = table.refresh().scan().to_arrow().to_pylist()
    assert sorted(tuple(row.values()) for row in found) == [(0, "s0"), (1, "s1")]


def test_deletes_of_the_older_of_two_entries_are_not_dangling(lake):
    table = new_table(lake, frame(1, 2, 3), frame(60))
    table.delete("id = 1")
    again = FastAppend(table.io)
    again.append_data_file(largest_file(table))
    table.commit(again)
    newest = table.current_snapshot().snapshot_id
    rewriting = RewriteManifests(table.io).rewrite_if(
        lambda manifest: manifest.added_snapshot_id != newest
    )
    table.commit(rewriting)
    before = ids(table)
    table.commit(DanglingDeletesRemoval(table.io))
    assert ids(table) == before == [1, 2, 2, 3, 3, 60]


def test_a_delete_file_that_is_there_twice_stays_while_one_of_them_deletes(lake):
    table = new_table(lake, frame(0, 1))
    writer = EqualityDeleteWriter(table.io, table.metadata, uuid.uuid4().hex, ["id"])
    writer.write(pa.record_batch({"id": pa.array([1])}))
    (deletes,) = writer.close()
    for part in (frame(1, 3), frame(1, 4)):
        table.commit(RowDelta(table.io).add_deletes(deletes))
        table.append(part)
    table.maintenance.rewrite_data_files(where="id = 0", options=ALL)
    before = ids(table)
    table.commit(DanglingDeletesRemoval(table.io))
    assert ids(table) == before == [0, 1, 3, 4]
