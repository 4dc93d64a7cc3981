from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from icecomb.format.errors import CorruptFileError, ValidationError
from icecomb.format.manifests.encoded_file import DataFileForm, EncodedFile
from icecomb.format.manifests.manifest import DataFile, DataFileContent, FileFormat
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.operation.append import FastAppend
from icecomb.format.spec.change.update import update_table_metadata
from icecomb.format.spec.metadata import TableMetadata, new_table_metadata
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.sort import UNSORTED_SORT_ORDER
from icecomb.format.spec.transform import parse_transform
from icecomb.format.spec.types import IntegerType, LongType, NestedField
from icecomb.format.storage.file_io import FileIO
from tests.format.manifests.test_entry_encoder import VALUES

IO = FileIO()


@dataclass
class Encoded:
    """Files in a list; counts how often they were gone through."""

    form: DataFileForm
    files: Sequence[EncodedFile]
    rounds: int = 0

    def __iter__(self) -> Iterator[EncodedFile]:
        self.rounds += 1
        return iter(self.files)


def partitioned(values: Sequence[tuple[Any, Any]]) -> tuple[Schema, PartitionSpec]:
    """A column of each type, and the spec that is identity on all of them."""
    fields = [NestedField(1, "id", LongType())]
    fields += [NestedField(at + 2, f"c{at}", kind) for at, (kind, _) in enumerate(values)]
    identity = parse_transform("identity")
    parts = [PartitionField(f.field_id, 998 + f.field_id, identity, f.name) for f in fields[1:]]
    return Schema(tuple(fields)), PartitionSpec(*parts)


def data_files(values: Sequence[tuple[Any, Any]]) -> list[DataFile]:
    full = DataFile(
        file_path="/t/a=1/é.parquet",
        file_format=FileFormat.ORC,
        partition=tuple(some[0] for _, some in values),
        record_count=7,
        file_size_in_bytes=70,
        column_sizes={1: 5},
        value_counts={1: 7},
        null_value_counts={1: 0},
        nan_value_counts={},
        lower_bounds={1: b"\x01" + b"\0" * 7},
        upper_bounds={1: b"\x09" + b"\0" * 7},
        split_offsets=(4, 50),
        sort_order_id=0,
    )
    bare = DataFile(
        file_path="/t/b.parquet",
        partition=tuple(None for _ in values),
        record_count=0,
        file_size_in_bytes=3,
    )
    other = replace(bare, file_path="/t/c", partition=tuple(some[1] for _, some in values))
    return [full, bare, other]


def made(folder: Path, schema: Schema, spec: PartitionSpec, **properties: str) -> TableMetadata:
    return new_table_metadata(schema, spec, UNSORTED_SORT_ORDER, folder.as_uri(), properties)


def appended(base: TableMetadata, append: FastAppend) -> tuple[list[Any], Any]:
    """The entries of the snapshot, but for its id, and the snapshot's summary."""
    snapshot = update_table_metadata(base, append.apply(base).updates).current_snapshot()
    assert snapshot is not None
    entries = [
        replace(entry, snapshot_id=None)
        for manifest in read_manifests(IO, snapshot)
        for entry in manifest.fetch_manifest_entry(IO)
    ]
    return entries, snapshot.summary


@pytest.mark.parametrize("version", ["1", "2"])
@pytest.mark.parametrize("limit", ["0", "2", "3"])
def test_encoded_files_become_the_same_manifests_as_objects(
    tmp_path: Path, version: str, limit: str
) -> None:
    schema, spec = partitioned(VALUES)
    files = data_files(VALUES)
    settings = {"format-version": version, "write.summary.partition-limit": limit}
    base = made(tmp_path / "t", schema, spec, **settings)
    spec, schema = base.spec(), base.schema()
    form = DataFileForm(spec, schema)
    objects, encoded = FastAppend(IO), FastAppend(IO)
    for file in files:
        objects.append_data_file(file)
    encoded.append_encoded_files(Encoded(form, [form.encode(file) for file in files]))
    expected, summary = appended(base, objects)
    assert [entry.data_file for entry in expected] == [
        replace(file, spec_id=spec.spec_id) for file in files
    ]
    assert appended(base, encoded) == (expected, summary)


def test_manifests_of_encoded_files_are_not_written_again_for_a_retry(tmp_path: Path) -> None:
    schema, spec = partitioned([(IntegerType(), (1, 2))])
    base = made(tmp_path / "t", schema, spec)
    form = DataFileForm(base.spec(), base.schema())
    append = FastAppend(IO)
    append.append_encoded_files(
        Encoded(form, [form.encode(file) for file in data_files([(IntegerType(), (1, 2))])])
    )
    first, _ = appended(base, append)
    written = sorted(path.name for path in (tmp_path / "t").rglob("*-m*.avro"))
    assert appended(base, append)[0] == first
    assert sorted(path.name for path in (tmp_path / "t").rglob("*-m*.avro")) == written
    with pytest.raises(ValidationError, match="applied already"):
        append.append_encoded_files(Encoded(form, []))


def test_a_record_decodes_to_what_was_encoded(tmp_path: Path) -> None:
    schema, spec = partitioned(VALUES)
    form = DataFileForm(spec, schema)
    for file in data_files(VALUES):
        assert form.decode(form.encode(file)) == file
    damaged = form.encode(file)._replace(record=b"\0\1")
    with pytest.raises(CorruptFileError, match="does not decode"):
        form.decode(damaged)


def test_files_of_another_spec_are_refused(tmp_path: Path) -> None:
    schema, spec = partitioned([(IntegerType(), (1, 2))])
    base = made(tmp_path / "t", schema, spec)
    other_schema, other = partitioned([(LongType(), (1, 2))])
    append = FastAppend(IO)
    append.append_encoded_files(Encoded(DataFileForm(other, other_schema), []))
    with pytest.raises(ValidationError, match="described for the partition spec"):
        append.apply(base)
    assert not list((tmp_path / "t").rglob("*.avro"))


def test_only_data_files_of_the_spec_are_encoded() -> None:
    schema, spec = partitioned([(IntegerType(), (1, 2))])
    form = DataFileForm(spec, schema)
    file = data_files([(IntegerType(), (1, 2))])[0]
    with pytest.raises(ValidationError, match="partition values"):
        form.encode(replace(file, partition=()))
    with pytest.raises(ValidationError, match="POSITION_DELETES"):
        form.encode(replace(file, content=DataFileContent.POSITION_DELETES))
