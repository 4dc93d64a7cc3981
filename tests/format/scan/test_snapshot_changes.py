"""What a snapshot changed."""

from __future__ import annotations

import io
from pathlib import Path

import fastavro
import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog
from icecomb.format.errors import ValidationError
from icecomb.format.expressions.expression import EqualTo
from icecomb.format.operation.overwrite import OverwriteFiles
from icecomb.format.operation.snapshot_producer import staged_snapshot
from icecomb.format.scan.snapshot_changes import reached_files, snapshot_changes


@pytest.mark.parametrize("told", [True, False])
def test_a_list_of_version_1_need_not_say_who_added_a_manifest(tmp_path, told):
    """The specification lets version 1 leave `added_snapshot_id` out; entries say it themselves."""
    catalog = load_catalog("lake", type="hadoop", warehouse=f"file:{tmp_path}")
    catalog.create_namespace("db")
    schema = pa.schema([("id", pa.int64())])
    table = catalog.create_table("db.t", schema, properties={"format-version": "1"})
    for number in range(2):
        table.append(pa.table({"id": [number]}, schema))
    expected = {}
    for snapshot in table.metadata.snapshots:
        if not told:
            discard_who_added(Path(snapshot.manifest_list.removeprefix("file:")))
        expected[snapshot.snapshot_id] = snapshot_changes(table.io, table.metadata, snapshot)
    first, second = (expected[s.snapshot_id] for s in table.metadata.snapshots)
    files = {task.file.file_path for task in table.scan().plan_files()}
    assert {*first.added, *second.added} == files
    assert [len(each.added) for each in (first, second)] == [1, 1]
    assert not first.removed + second.removed


def test_a_vector_that_is_replaced_reaches_its_own_file_among_those_of_its_puffin_file(tmp_path):
    catalog = load_catalog("lake", type="hadoop", warehouse=f"file:{tmp_path}")
    catalog.create_namespace("db")
    schema = pa.schema([("id", pa.int64())])
    on_read = {"format-version": "3", "write.delete.mode": "merge-on-read"}
    table = catalog.create_table("db.t", schema, properties=on_read)
    for first in (0, 10):
        table.append(pa.table({"id": range(first, first + 10)}, schema))
    table.delete("id = 1 or id = 11")
    before = {task.file_path: task.delete_files for task in table.scan().plan_files()}
    [(one,), (other,)] = before.values()
    assert one.file_path == other.file_path
    table.delete("id = 2")
    after = {task.file_path: task.delete_files for task in table.scan().plan_files()}
    [changed] = [path for path in before if before[path] != after[path]]
    *_, parent, last = table.snapshots()
    found = snapshot_changes(table.io, table.metadata, last)
    replaced = [before[changed][0].identity, after[changed][0].identity]
    assert sorted(found.deletes) == sorted(replaced)
    for snapshot in (parent, last):
        reached = reached_files(table.io, table.metadata, snapshot, found.deletes)
        assert [task.file_path for task in reached] == [changed]


@pytest.mark.parametrize("told", [True, False])
def test_neither_conflicts_nor_cherry_picks_need_the_list_to_say_it(tmp_path, told):
    catalog = load_catalog("lake", type="hadoop", warehouse=f"file:{tmp_path}")
    catalog.create_namespace("db")
    schema = pa.schema([("id", pa.int64())])
    properties = {"format-version": "1", "write.wap.enabled": "true"}
    table = catalog.create_table("db.t", schema, properties=properties)

    def append(number, **summary):
        table.append(pa.table({"id": [number]}, schema), summary)

    def discard():
        for snapshot in [] if told else table.metadata.snapshots:
            path = Path(snapshot.manifest_list.removeprefix("file:"))
            if b"added_snapshot_id" in path.read_bytes():
                discard_who_added(path)

    append(1)
    append(2, **{"wap.id": "x"})
    begin = table.current_snapshot().snapshot_id
    append(3)
    discard()
    overwrite = OverwriteFiles(table.io).overwrite_by_row_filter(EqualTo("id", 3))
    overwrite.validate_from_snapshot(begin).validate_no_conflicting_data()
    with pytest.raises(ValidationError, match="onflict"):
        table.commit(overwrite)
    with table.manage_snapshots() as manage:
        manage.cherry_pick(staged_snapshot(table.metadata, "x").snapshot_id)
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2, 3]


def discard_who_added(path):
    reader = fastavro.reader(io.BytesIO(path.read_bytes()))
    records, schema = list(reader), reader.writer_schema
    metadata = {k: v for k, v in reader.metadata.items() if not k.startswith("avro.")}
    fields = [field for field in schema["fields"] if field["name"] != "added_snapshot_id"]
    assert len(fields) == len(schema["fields"]) - 1
    out = io.BytesIO()
    fastavro.writer(out, {**schema, "fields": fields}, records, metadata=metadata)
    path.write_bytes(out.getvalue())
