"""Manifests of any entries."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from icecomb.format.manifests.manifest import ManifestContent, ManifestEntry, ManifestFile
from icecomb.format.manifests.writer import ManifestWriter
from icecomb.format.spec.partition import PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.storage.file_io import FileIO


def write_manifest(
    io: FileIO,
    location: str,
    entries: Iterable[ManifestEntry],
    *,
    format_version: int,
    spec: PartitionSpec,
    schema: Schema,
    snapshot_id: int,
    content: ManifestContent = ManifestContent.DATA,
    codec: str = "gzip",
) -> ManifestFile:
    """Write entries as one manifest; see `ManifestWriter` and `ManifestWriter.add_entry`."""
    writer = ManifestWriter(format_version, spec, schema, snapshot_id, content=content, codec=codec)
    for entry in entries:
        writer.add_entry(entry)
    return writer.finish(io, location)


def state_fewer(path: Path) -> None:
    """Make a block of two records say that it has one."""
    data = path.read_bytes()
    at = data.index(data[-16:]) + 16
    assert data[at] == 4
    path.write_bytes(data[:at] + b"\x02" + data[at + 1 :])
