"""A file that its writer finds there already: its own, if something sent the request twice, or another's."""

from __future__ import annotations

from pathlib import Path

import pytest

from icecomb.format.errors import FileAlreadyExistsError
from icecomb.format.manifests.manifest import DataFile, DataFileContent, FileFormat
from icecomb.format.manifests.manifest_list import read_manifests, write_manifest_list
from icecomb.format.manifests.reader import read_manifest
from icecomb.format.manifests.writer import ManifestWriter, assign_sequence_number
from icecomb.format.spec.metadata import new_table_metadata
from icecomb.format.spec.metadata_file import read_metadata, write_metadata
from icecomb.format.spec.partition import PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.snapshot import Snapshot
from icecomb.format.spec.sort import SortOrder
from icecomb.format.spec.types import IntegerType, NestedField
from icecomb.format.spec.view import (
    ViewDefinition,
    new_view_metadata,
    read_view_metadata,
    write_view_metadata,
)
from icecomb.format.storage.file_io import FileIO
from icecomb.format.storage.file_system import create_own

SCHEMA = Schema(NestedField(1, "n", IntegerType()))


class RepeatingStorage(FileIO):
    """Does what it is asked for, and says that it was done before."""

    def create(self, location: str, data: bytes) -> None:
        super().create(location, data)
        super().create(location, data)


def test_our_bytes_are_ours_and_others_stay(tmp_path: Path) -> None:
    place = str(tmp_path / "x")
    create_own(RepeatingStorage(), place, b"ours")
    create_own(FileIO(), place, b"ours")
    with pytest.raises(FileAlreadyExistsError):
        create_own(FileIO(), place, b"theirs")
    assert (tmp_path / "x").read_bytes() == b"ours"


def test_metadata_of_tables_and_views_whose_request_was_repeated_is_written(tmp_path: Path) -> None:
    """The names have a uuid: nobody else has them."""
    io = RepeatingStorage()
    table = new_table_metadata(SCHEMA, PartitionSpec(), SortOrder(0), str(tmp_path / "t"))
    write_metadata(io, table, f"{tmp_path}/t.metadata.json")
    assert read_metadata(io, f"{tmp_path}/t.metadata.json") == table
    view = new_view_metadata(
        ViewDefinition(SCHEMA, {"spark": "SELECT 1"}, ("db",)), str(tmp_path / "v"), {}
    )
    write_view_metadata(io, view, f"{tmp_path}/v.gz.metadata.json")
    assert read_view_metadata(io, f"{tmp_path}/v.gz.metadata.json").view_uuid == view.view_uuid


def test_manifests_and_their_lists_whose_request_was_repeated_are_written(tmp_path: Path) -> None:
    io = RepeatingStorage()
    writer = ManifestWriter(1, PartitionSpec(), SCHEMA, 7)
    writer.add(
        DataFile(
            content=DataFileContent.DATA,
            file_path="s3://w/t/data/a.parquet",
            file_format=FileFormat.PARQUET,
            partition=(),
            record_count=3,
            file_size_in_bytes=100,
        )
    )
    manifest = assign_sequence_number(writer.finish(io, f"{tmp_path}/m0.avro"), 7, 0)
    location = f"{tmp_path}/snap.avro"
    write_manifest_list(
        io, location, [manifest], format_version=1, snapshot_id=7, parent_snapshot_id=None
    )
    (found,) = read_manifests(io, Snapshot(7, None, 0, 0, location))
    assert [entry.data_file.record_count for entry in read_manifest(io, found)] == [3]
