"""Changes of a snapshot: files it added and removed, and files whose rows it deleted."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from icecomb.format.expressions.expression import AlwaysTrue
from icecomb.format.manifests.manifest import ManifestContent, ManifestEntryStatus
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.manifests.reader import read_each_columns
from icecomb.format.scan.scan_planner import ScanPlanner

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from icecomb.format.manifests.manifest import FileIdentity, ManifestFile
    from icecomb.format.rows.values.scan_task import FileScanTask
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.snapshot import Snapshot
    from icecomb.format.storage.file_io import FileIO


@dataclass(frozen=True, slots=True)
class SnapshotChanges:
    """The data files that a snapshot added and removed, by location.

    Attributes:
        deletes: The `DataFile.identity` of the delete files added or removed.
    """

    added: tuple[str, ...]
    removed: tuple[str, ...]
    deletes: tuple[FileIdentity, ...]


def snapshot_changes(io: FileIO, metadata: TableMetadata, snapshot: Snapshot) -> SnapshotChanges:
    """Read what a snapshot changed from the manifests that it wrote."""
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
    """Yield the files of a snapshot to which any of these delete files may apply."""
    planner = ScanPlanner(metadata, io, metadata.schema(), AlwaysTrue(), read=())
    for task in planner.plan(snapshot):
        if any(file.identity in deletes for file in task.delete_files):
            yield task


def repeated_files(
    io: FileIO, metadata: TableMetadata, snapshots: Iterable[Snapshot], paths: Iterable[str]
) -> dict[int, set[str]]:
    """Return those of some data files that snapshots have more than once, by snapshot id.

    Manifests that several snapshots have are read once.
    """
    wanted = frozenset(paths)
    known: dict[str, int] = {}
    manifests: list[ManifestFile] = []
    places: dict[int, list[int]] = {}
    for snapshot in snapshots:
        places[snapshot.snapshot_id] = own = []
        for one in read_manifests(io, snapshot) if wanted else ():
            if one.content is ManifestContent.DATA and one.has_live_files():
                place = known.setdefault(one.manifest_path, len(manifests))
                if place == len(manifests):
                    manifests.append(one)
                own.append(place)
    named: list[list[str]] = []
    for columns in read_each_columns(io, manifests, metadata.spec_by_id):
        files = columns.column("file_path").filter(columns.live).to_pylist()
        named.append([path for path in files if path in wanted])
    # a file of several manifests may be in different snapshots, or be repeated in one
    several = _repeated(chain.from_iterable(named))
    named = [[path for path in each if path in several] for each in named]
    return {
        snapshot_id: _repeated(path for place in own for path in named[place])
        for snapshot_id, own in places.items()
    }


def _repeated(paths: Iterable[str]) -> set[str]:
    return {path for path, count in Counter(paths).items() if count > 1}
