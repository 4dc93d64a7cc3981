"""Entries of many small manifests as one set of columns: they are what they are one by one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from icecomb.format.errors import CorruptFileError
from icecomb.format.manifests.columns import joined
from icecomb.format.manifests.entry_encoder import EntryEncoder
from icecomb.format.manifests.manifest import (
    DataFile,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
)
from icecomb.format.manifests.reader import read_each_columns
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.transform import IdentityTransform
from icecomb.format.spec.types import LongType, NestedField, StringType
from icecomb.format.storage.file_io import FileIO
from tests.format.manifests.written_manifest import write_manifest

IO = FileIO()
SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "day", StringType()))
SPEC = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "day"), spec_id=3)


def data_file(number, **changes):
    file = DataFile(
        file_path=f"/lake/{number}.parquet",
        partition=(None if number % 7 == 0 else f"d{number % 3}",),
        record_count=number,
        file_size_in_bytes=number + 100,
        value_counts={1: number, 2: number},
        lower_bounds={1: number.to_bytes(8, "little")},
        spec_id=3,
    )
    return replace(file, **changes)


def manifests(folder, counts):
    """One manifest a count, with so many entries."""
    number = iter(range(1, 100_000))
    made = []
    for at, count in enumerate(counts):
        entries = [
            ManifestEntry(
                status=ManifestEntryStatus.EXISTING,
                snapshot_id=at + 1,
                sequence_number=at + 2,
                file_sequence_number=at + 2,
                data_file=data_file(
                    next(number), **({} if at % 2 else {"nan_value_counts": {1: 0}})
                ),
            )
            for _ in range(count)
        ]
        made.append(
            write_manifest(
                IO,
                str(folder / f"{at}.avro"),
                entries,
                format_version=2,
                spec=SPEC,
                schema=SCHEMA,
                snapshot_id=99,
                content=ManifestContent.DATA,
            )
        )
    return made


def columns_of(made):
    return list(read_each_columns(IO, made, {3: SPEC}.get, None, cache=None))


def encoded(columns):
    encoder = EntryEncoder(2, SPEC, SCHEMA, 99)
    rows = np.arange(len(columns))
    statuses = np.full(len(columns), ManifestEntryStatus.EXISTING.value, np.int32)
    return encoder.encode(columns, rows, statuses)


@pytest.mark.parametrize(
    ("counts", "rows", "groups"),
    [
        ([1] * 30, 10_000, [30]),
        ([1, 5, 0, 3], 10_000, [9]),
        ([4, 4, 4], 8, [8, 4]),
        ([20, 1, 1], 8, [20, 2]),
        ([], 8, []),
    ],
)
def test_joined_entries_encode_to_the_bytes_that_each_has_alone(tmp_path, counts, rows, groups):
    each = columns_of(manifests(tmp_path, counts))
    together = list(joined(each, rows))
    assert [len(columns) for columns in together] == groups
    alone = [entry for columns in each for entry in encoded(columns)]
    assert [entry for columns in together for entry in encoded(columns)] == alone
    files = [file for columns in each for file in columns.data_files()]
    assert [file for columns in together for file in columns.data_files()] == files


def test_manifests_of_other_types_are_not_joined(tmp_path):
    first, other = columns_of(manifests(tmp_path, [2, 2]))
    other._columns = {**other._columns, "record_count": other.column("record_count").cast("int32")}
    assert [len(columns) for columns in joined([first, other, other])] == [2, 4]


def test_an_entry_knows_the_manifest_it_came_from(tmp_path):
    made = manifests(tmp_path, [2, 0, 3])
    [columns] = joined(columns_of(made))
    found = [columns.manifest_of(row).manifest_path for row in range(5)]
    assert found == [made[0].manifest_path] * 2 + [made[2].manifest_path] * 3


def test_a_damaged_entry_is_told_with_its_own_manifest(tmp_path):
    made = manifests(tmp_path, [2, 2, 2])
    each = columns_of(made)
    import pyarrow as pa

    each[1]._columns = {**each[1]._columns, "record_count": pa.array([7, None], pa.int64())}
    [columns] = joined(each)
    with pytest.raises(CorruptFileError, match=made[1].manifest_path):
        encoded(columns)
