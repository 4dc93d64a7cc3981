"""What no reader could read is not written, even if no value refused it."""

from __future__ import annotations

import json
from dataclasses import replace
from types import MappingProxyType

import pytest

from icecomb.format.errors import ValidationError
from icecomb.format.spec import metadata_file
from icecomb.format.spec.change.update import (
    AddPartitionSpecUpdate,
    AddSnapshotUpdate,
    SetDefaultSpecUpdate,
    SetSnapshotRefUpdate,
    update_table_metadata,
)
from icecomb.format.spec.metadata import TableMetadata, new_table_metadata
from icecomb.format.spec.metadata_file import check_table, metadata_bytes, write_metadata
from icecomb.format.spec.partition import (
    UNPARTITIONED_PARTITION_SPEC,
    PartitionField,
    PartitionSpec,
)
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.snapshot import Snapshot
from icecomb.format.spec.sort import UNSORTED_SORT_ORDER
from icecomb.format.spec.transform import DayTransform
from icecomb.format.spec.types import NestedField, TimestampType
from icecomb.format.spec.view import ViewDefinition, new_view_metadata, write_view_metadata
from icecomb.format.storage.file_io import FileIO

SCHEMA = Schema((NestedField(1, "ts", TimestampType()),))
SUMMARY = {"operation": "append"}


def table():
    return new_table_metadata(
        SCHEMA, UNPARTITIONED_PARTITION_SPEC, UNSORTED_SORT_ORDER, "/t", {}, now_ms=1000
    )


def snapshot(number, **changes):
    parent = number - 1 or None
    made = Snapshot(number, parent, number, 1000 + number, f"/t/{number}.avro", SUMMARY, 0)
    return replace(made, **changes)


def appended(base, *snapshots):
    for added in snapshots:
        head = SetSnapshotRefUpdate("main", "branch", added.snapshot_id)
        base = update_table_metadata(base, (AddSnapshotUpdate(added), head), base_location="/m")
    return base


def broken(value, name, content):
    """The value with something in it that its constructor refuses."""
    object.__setattr__(value, name, content)
    return value


def with_field(**changes):
    field = NestedField(1, "ts", TimestampType())
    for name, content in changes.items():
        broken(field, name, content)
    return replace(table(), schemas=(Schema((field,)),))


def with_partition(name, content):
    field = PartitionField(1, 1000, DayTransform(), "d")
    spec = PartitionSpec(0, (broken(field, name, content),))
    return replace(table(), partition_specs=(spec,))


BROKEN = {
    "a doc": lambda: with_field(doc=5),
    "required": lambda: with_field(required="x"),
    "a field id": lambda: with_field(field_id=True),
    "a partition's name": lambda: with_partition("name", 5),
    "a partition's id": lambda: with_partition("field_id", 1000.0),
    "a count in a summary": lambda: appended(
        table(), snapshot(1, summary={"operation": "append", "batch": 5})
    ),
    "NaN in a summary": lambda: appended(table(), snapshot(1, summary={"x": float("nan")})),
    "an object in a summary": lambda: appended(table(), snapshot(1, summary={"x": object()})),
    "half a character": lambda: appended(table(), snapshot(1, summary={"x": "\ud800"})),
    "a list of manifests": lambda: appended(table(), snapshot(1, manifest_list=5)),
    "a limit": lambda: replace(
        appended(table(), snapshot(1)),
        refs={
            "main": broken(appended(table(), snapshot(1)).refs["main"], "max_ref_age_ms", 1e9),
        },
    ),
    "a property": lambda: replace(table(), properties=MappingProxyType({"k": 5})),
    "a location": lambda: replace(table(), location=5),
    "a version": lambda: replace(table(), format_version=2.0),
    "an id": lambda: replace(table(), current_schema_id=True),
    "a uuid": lambda: replace(table(), table_uuid="x"),
    "an operation": lambda: appended(table(), snapshot(1, summary={"operation": "nightly"})),
    "statistics": lambda: replace(table(), statistics=({"snapshot-id": 1, "x": float("inf")},)),
}


@pytest.mark.parametrize("part", BROKEN)
def test_metadata_that_nobody_could_read_is_not_written(tmp_path, part):
    with pytest.raises(ValidationError):
        write_metadata(FileIO(), BROKEN[part](), str(tmp_path / "v1.metadata.json"))
    assert list(tmp_path.iterdir()) == []


def test_what_is_whole_is_written_and_read_back_as_it_was(tmp_path):
    metadata = appended(table(), snapshot(1), snapshot(2))
    spec = PartitionSpec(0, (PartitionField(1, 1000, DayTransform(), "d"),))
    updates = (AddPartitionSpecUpdate(spec), SetDefaultSpecUpdate())
    changed = update_table_metadata(metadata, updates, base_location="/m")
    assert TableMetadata.from_json(metadata_bytes(changed, "x", metadata)) == changed


def test_only_what_a_commit_changed_is_read_back(monkeypatch):
    base = appended(table(), *(snapshot(number) for number in range(1, 200)))
    read = []

    def counting(name, decode):
        return lambda raw: read.append(name) or decode(raw)

    for table_of in (metadata_file._SHORT, metadata_file._LONG):
        for name, decode in dict(table_of).items():
            monkeypatch.setitem(table_of, name, counting(name, decode))
    check_table(appended(base, snapshot(200)), base)
    assert sorted(read) == ["metadata_log", "snapshot_log", "snapshots"]
    read.clear()
    check_table(base, base)
    assert read == []
    check_table(TableMetadata.from_json(base.to_json()), None)
    assert "snapshots" not in read  # they were read from a file, and checked there


def test_a_view_that_nobody_could_read_is_not_written(tmp_path):
    definition = ViewDefinition(SCHEMA, {"spark": "SELECT 1"}, ("db",))
    metadata = new_view_metadata(definition, str(tmp_path), {})
    [version] = metadata.versions
    whole = str(tmp_path / "whole.metadata.json")
    write_view_metadata(FileIO(), metadata, whole)
    for changed in (
        replace(metadata, versions=(replace(version, default_catalog=5),)),
        replace(metadata, versions=(replace(version, summary={"by": 5}),)),
        replace(metadata, properties={"k": 5}),
        replace(metadata, properties={"k": "\ud800"}),
        replace(metadata, properties={5: "k"}),
        replace(metadata, current_version_id=7),
    ):
        with pytest.raises(ValidationError, match="could not be read again"):
            write_view_metadata(FileIO(), changed, str(tmp_path / "broken.metadata.json"))
    assert [file.name for file in tmp_path.iterdir()] == ["whole.metadata.json"]


def test_what_another_writer_committed_is_read_and_only_its_change_is_refused():
    # PyIceberg knows no ints and longs, and writes half a character as an escape
    base = appended(table(), snapshot(1))
    raw = json.loads(base.to_json())
    raw["refs"]["main"]["min-snapshots-to-keep"] = 2**40
    raw["schemas"][0]["fields"][0]["doc"] = "\ud800"
    metadata = TableMetadata.from_json(json.dumps(raw))
    assert metadata.refs["main"].min_snapshots_to_keep == 2**40
    head = metadata.refs["main"]
    check_table(replace(metadata, refs={"main": replace(head, max_ref_age_ms=5)}), metadata)
    for changed in ({"min_snapshots_to_keep": 2**41}, {"max_ref_age_ms": 2**63}):
        with pytest.raises(ValidationError, match="must be 1 to"):
            check_table(replace(metadata, refs={"main": replace(head, **changed)}), metadata)
