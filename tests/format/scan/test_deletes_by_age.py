"""Which rows a delete file reaches by their age, with and without partitions (spec: Scan Planning)."""

from __future__ import annotations

import pytest

from icecomb.format.manifests.manifest import (
    DataFile,
    DataFileContent,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
)
from icecomb.format.manifests.reader import read_each_columns
from icecomb.format.manifests.writer import assign_sequence_number
from icecomb.format.operation.conflict import index_key
from icecomb.format.scan.delete_index import DELETE_STATISTICS, DeleteFileIndex
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.transform import IdentityTransform
from icecomb.format.spec.types import LongType, NestedField
from icecomb.format.storage.file_io import FileIO
from tests.format.manifests.written_manifest import write_manifest

IO = FileIO()
SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "day", LongType()))
SPECS = {
    "no partitions": PartitionSpec(),
    "partitions": PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "day"), spec_id=1),
}
AGE = 7
DATA = "/lake/data.parquet"
BY_POSITION, BY_VALUE = DataFileContent.POSITION_DELETES, DataFileContent.EQUALITY_DELETES


def found(folder, spec, content, age, *, target=None):
    """Whether a delete file of AGE reaches a data file of another age."""
    partition = (3,) if spec.fields else ()
    file = DataFile(
        file_path="/lake/deletes.parquet",
        partition=partition,
        record_count=1,
        file_size_in_bytes=10,
        content=content,
        equality_ids=(1,) if content is BY_VALUE else None,
        referenced_data_file=target,
        spec_id=spec.spec_id,
    )
    written = write_manifest(
        IO,
        f"{folder}/deletes.avro",
        [ManifestEntry(status=ManifestEntryStatus.ADDED, snapshot_id=5, data_file=file)],
        format_version=2,
        spec=spec,
        schema=SCHEMA,
        snapshot_id=5,
        content=ManifestContent.DELETES,
    )
    manifest = assign_sequence_number(written, 5, AGE)
    [columns] = read_each_columns(IO, [manifest], lambda _: spec, DELETE_STATISTICS, cache=None)
    index = DeleteFileIndex()
    index.add(columns, unpartitioned=spec.is_unpartitioned)
    index.settle()
    data = DataFile(
        file_path=DATA,
        partition=partition,
        record_count=1,
        file_size_in_bytes=10,
        spec_id=spec.spec_id,
    )
    return bool(index.files_for_data_file(age, index_key(data), DATA))


@pytest.mark.parametrize("spec", SPECS)
def test_an_equality_delete_reaches_older_rows_and_none_of_its_own_commit(tmp_path, spec):
    reached = {
        age: found(tmp_path / str(age), SPECS[spec], BY_VALUE, age) for age in range(AGE - 1, AGE + 2)
    }  # fmt: skip
    assert reached == {AGE - 1: True, AGE: False, AGE + 1: False}


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("target", [None, DATA])
def test_a_position_delete_reaches_rows_of_its_own_commit_and_no_newer_ones(tmp_path, spec, target):
    """Whether it names one data file or may name any."""
    reached = {
        age: found(tmp_path / str(age), SPECS[spec], BY_POSITION, age, target=target)
        for age in range(AGE - 1, AGE + 2)
    }
    assert reached == {AGE - 1: True, AGE: True, AGE + 1: False}
