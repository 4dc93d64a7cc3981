"""Changes of a snapshot: files it added and removed, and files whose rows it deleted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from icecomb.format.expressions.expression import AlwaysTrue
from icecomb.format.manifests.manifest import ManifestContent, ManifestEntryStatus
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.manifests.reader import read_each_columns
from icecomb.format.scan.scan_planner import ScanPlanner

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from icecomb.format.manifests.manifest import FileIdentity
    from icecomb.format.rows.values.scan_task import FileScanTask
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.snapshot import Snapshot
    from icecomb.format.storage.file_io import FileIO


@dataclass(frozen=True, slots=True)
class SnapshotChanges:
    """The data files that a snapshot added and removed.

    Attributes:
        added: Locations of the data files added.
        removed: Locations of the data files removed.
        deletes: The `DataFile.identity` of the delete files added or removed.
    """

    added: tuple[str, ...]
    removed: tuple[str, ...]
    deletes: tuple[FileIdentity, ...]


def snapshot_changes(io: FileIO, metadata: TableMetadata, snapshot: Snapshot) -> SnapshotChanges:
    """Read what a snapshot changed from the manifests that it wrote.

    Raises:
        CorruptFileError: If a manifest cannot be read.
        NoSuchFileError: If a manifest is missing.
    """
    found: dict[int, list[str]] = {status.value: [] for status in ManifestEntryStatus}
    deletes: list[FileIdentity] = []
    # a list of format version 1 may not say which snapshot added a manifest
    added = {None, snapshot.snapshot_id}
    manifests = [m for m in read_manifests(io, snapshot) if m.added_snapshot_id in added]
    decoded = read_each_columns(io, manifests, metadata.spec_by_id)
    for manifest, columns in zip(manifests, decoded, strict=True):
        status, path = columns.column("status"), columns.column("file_path")
        own = pc.equal(columns.column("snapshot_id"), snapshot.snapshot_id)
        for changed in (ManifestEntryStatus.ADDED, ManifestEntryStatus.DELETED):
            chosen = pc.and_(own, pc.equal(status, changed.value))
            if manifest.content is ManifestContent.DELETES:
                deletes += columns.identities(chosen)
            else:
                found[changed.value] += path.filter(chosen).to_pylist()
    return SnapshotChanges(
        tuple(found[ManifestEntryStatus.ADDED.value]),
        tuple(found[ManifestEntryStatus.DELETED.value]),
        tuple(deletes),
    )


def reached_files(
    io: FileIO, metadata: TableMetadata, snapshot: Snapshot, deletes: Collection[FileIdentity]
) -> Iterator[FileScanTask]:
    """Yield the files of a snapshot to which any of these delete files may apply.

    Args:
        io: File system that holds the manifests.
        metadata: Metadata of the table.
        snapshot: The snapshot to plan.
        deletes: The `DataFile.identity` of delete files.
    """
    planner = ScanPlanner(metadata, io, metadata.schema(), AlwaysTrue(), read=())
    for task in planner.plan(snapshot):
        if any(file.identity in deletes for file in task.delete_files):
            yield task
