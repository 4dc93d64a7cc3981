"""A file whose partition is known is looked for where its partition is."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest
from hypothesis import given, settings, strategies as st

from icecomb.format.errors import ValidationError
from icecomb.format.manifests.manifest import DataFile, ManifestFile, PartitionFieldSummary
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.manifests.reader import read_manifest
from icecomb.format.manifests.writer import ManifestWriter
from icecomb.format.operation.append import FastAppend
from icecomb.format.operation.conflict import PartitionPlaces
from icecomb.format.operation.overwrite import DeleteFiles, OverwriteFiles
from icecomb.format.spec.change.update import update_table_metadata
from icecomb.format.spec.metadata import new_table_metadata
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.sort import UNSORTED_SORT_ORDER
from icecomb.format.spec.transform import parse_transform
from icecomb.format.spec.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    LongType,
    NestedField,
    StringType,
    UUIDType,
)
from icecomb.format.storage.file_io import FileIO

KINDS = {
    LongType(): st.integers(-(2**63), 2**63 - 1),
    DoubleType(): st.floats(),
    StringType(): st.text(st.characters(exclude_categories=("Cs",)), max_size=3),
    BinaryType(): st.binary(max_size=3),
    BooleanType(): st.booleans(),
    DateType(): st.integers(-9, 9),
    DecimalType(5, 2): st.integers(-999, 999).map(lambda n: Decimal(n).scaleb(-2)),
    UUIDType(): st.uuids(),
}
TEXT = StringType()
NEVER = {"commit.manifest-merge.enabled": "false"}


class CountingIO(FileIO):
    """Counts the manifests that are read."""

    def __init__(self) -> None:
        super().__init__({"io.manifest.cache-enabled": "false"})
        self.manifests: set[str] = set()

    def read(self, location, *arguments):
        """See `FileIO.read`."""
        if "-m" in location.rpartition("/")[2]:
            self.manifests.add(location)
        return super().read(location, *arguments)


def table(folder, kind=TEXT):
    schema = Schema((NestedField(1, "p", kind), NestedField(2, "v", LongType())))
    spec = PartitionSpec(0, (PartitionField(1, 1000, parse_transform("identity"), "p"),))
    return new_table_metadata(
        schema, spec, UNSORTED_SORT_ORDER, str(folder), {"format-version": "2", **NEVER}
    )


def data_file(name, value) -> DataFile:
    path = f"/t/{name}"
    return DataFile(file_path=path, partition=(value,), record_count=1, file_size_in_bytes=1)


def commit(base, operation):
    return update_table_metadata(base, operation.apply(base).updates)


def days(io, folder):
    """A table of a manifest a day."""
    base = table(folder)
    for day in ("mon", "tue", "wed", None):
        base = commit(base, FastAppend(io).append_data_file(data_file(f"{day}", day)))
    io.manifests.clear()
    return base


def live(io, metadata) -> set[str]:
    found = read_manifests(io, metadata.current_snapshot())
    entries = [e for manifest in found for e in read_manifest(io, manifest) if e.is_live]
    return {e.data_file.file_path.rpartition("/")[2] for e in entries}


@pytest.mark.parametrize("day", ["tue", None])
def test_only_manifests_of_the_partition_are_read(tmp_path, day):
    io = CountingIO()
    base = days(io, tmp_path)
    after = commit(base, DeleteFiles(io).delete_data_file(data_file(f"{day}", day)))
    assert len(io.manifests) == 1
    assert live(io, after) == {"mon", "tue", "wed", "None"} - {f"{day}"}


def test_a_file_whose_partition_is_told_wrong_is_removed_all_the_same(tmp_path):
    io = CountingIO()
    base = days(io, tmp_path)
    change = OverwriteFiles(io).delete_data_file(data_file("tue", "mon"))
    change.validate_from_snapshot(base.current_snapshot_id)
    after = commit(base, change.validate_no_conflicting_data())
    assert live(io, after) == {"mon", "wed", "None"}
    missing = OverwriteFiles(io).delete_data_file(data_file("tue", "mon"))
    missing.validate_from_snapshot(after.current_snapshot_id)
    with pytest.raises(ValidationError, match="not in the table any more: /t/tue"):
        missing.validate_no_conflicting_data().apply(after)


def test_a_path_alone_is_looked_for_everywhere(tmp_path):
    io = CountingIO()
    base = days(io, tmp_path)
    change = DeleteFiles(io).delete_data_file(data_file("mon", "mon")).delete_data_file("/t/wed")
    assert live(io, commit(base, change)) == {"tue", "None"}


def test_a_file_of_another_spec_is_in_no_manifest_of_this_one(tmp_path):
    summary = PartitionFieldSummary(contains_null=True)
    manifest = ManifestFile(manifest_path="m", manifest_length=1, partitions=(summary,))
    assert PartitionPlaces(table(tmp_path), [(0, (None,))]).may_hold(manifest)
    assert not PartitionPlaces(table(tmp_path), [(1, (None,))]).may_hold(manifest)


def test_a_manifest_without_summaries_may_hold_anything(tmp_path):
    manifest = ManifestFile(manifest_path="m", manifest_length=1)
    assert PartitionPlaces(table(tmp_path), [(0, ("mon",))]).may_hold(manifest)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("places")


@settings(max_examples=100, deadline=None)
@given(st.data(), st.sampled_from(list(KINDS)))
def test_a_manifest_that_holds_a_partition_is_never_passed_over(folder, drawn, kind):
    held = drawn.draw(st.lists(st.none() | KINDS[kind], min_size=1, max_size=5))
    base = table(folder, kind)
    writer = ManifestWriter(2, base.spec(), base.schema(), 1)
    for number, value in enumerate(held):
        writer.add(data_file(str(number), value))
    path = folder / f"{dt.datetime.now(dt.timezone.utc).timestamp()}.avro"
    manifest = writer.finish(FileIO(), str(path))
    path.unlink()
    for value in held:
        assert PartitionPlaces(base, [(0, (value,))]).may_hold(manifest)
    other = drawn.draw(KINDS[kind])
    present = [v for v in held if v is not None and v == v]  # noqa: PLR0124 - NaN is in no range
    if other == other and present and not min(present) <= other <= max(present):  # noqa: PLR0124
        assert not PartitionPlaces(base, [(0, (other,))]).may_hold(manifest)
