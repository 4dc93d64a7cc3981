"""Small manifests are decoded together: each has a slice of the columns, and its own statistics."""

from __future__ import annotations

import pytest

from icecomb.format.manifests.manifest import DataFile, ManifestEntry, ManifestEntryStatus
from icecomb.format.manifests.reader import read_each_columns
from icecomb.format.manifests.writer import assign_sequence_number
from icecomb.format.spec.partition import PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import LongType, NestedField
from icecomb.format.storage.file_io import FileIO
from tests.format.manifests.written_manifest import write_manifest

IO = FileIO()
SCHEMA = Schema(NestedField(1, "a", LongType()), NestedField(2, "b", LongType()))
SPEC = PartitionSpec()


def entry(number: int) -> ManifestEntry:
    file = DataFile(
        file_path=f"/lake/{number}.parquet",
        partition=(),
        record_count=number,
        file_size_in_bytes=100,
        # one file in three has no counts of the first column, so that lists differ in length
        value_counts={2: number} if number % 3 == 0 else {1: 10 * number, 2: number},
        spec_id=0,
    )
    return ManifestEntry(status=ManifestEntryStatus.ADDED, snapshot_id=5, data_file=file)


@pytest.fixture
def manifests(tmp_path):
    """Three, with the files 1, 2, ... of which the first has one, the next two, the last three."""
    found = []
    for number, files in enumerate(((1,), (2, 3), (4, 5, 6))):
        written = write_manifest(
            IO,
            f"{tmp_path}/{number}.avro",
            map(entry, files),
            format_version=2,
            spec=SPEC,
            schema=SCHEMA,
            snapshot_id=5,
        )
        found.append(assign_sequence_number(written, 5, 1))
    return found


def test_statistics_of_a_slice_are_those_of_its_own_files(manifests):
    read = list(read_each_columns(IO, manifests, lambda _: SPEC, None, cache=None))
    assert [each.is_shared for each in read[1:]] == [True, True]
    first = [each.statistic("value_counts", 1).to_pylist() for each in read]
    second = [each.statistic("value_counts", 2).to_pylist() for each in read]
    assert first == [[10], [20, None], [40, 50, None]]
    assert second == [[1], [2, 3], [4, 5, 6]]
