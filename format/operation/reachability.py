"""Which files a table needs no more: reachable before a change, and not after it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.errors import CorruptFileError, FileMissingError
from icecomb.format.manifests.manifest import DataFileContent, ManifestContent
from icecomb.format.manifests.manifest_list import distinct_manifests, read_manifests
from icecomb.format.manifests.reader import read_each, read_manifest_columns
from icecomb.format.storage.location import plain_locations

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from icecomb.format.manifests.manifest import ManifestFile
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.snapshot import Snapshot
    from icecomb.format.storage.file_io import FileIO


@dataclass(frozen=True, slots=True)
class UnreachableFiles:
    """Files that nothing of the table refers to any more, by their kind.

    Attributes:
        data_files: Data files.
        delete_files: Files of position and equality deletes.
        equality_delete_files: Those of them that hold equality deletes.
        manifests: Manifests.
        manifest_lists: Manifest lists.
        statistics_files: Statistics of snapshots and partitions.
        unreadable: Manifests and lists of removed snapshots that could not be read; files that
            only they name are not among these.
    """

    data_files: tuple[str, ...] = ()
    delete_files: tuple[str, ...] = ()
    manifests: tuple[str, ...] = ()
    manifest_lists: tuple[str, ...] = ()
    statistics_files: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    equality_delete_files: frozenset[str] = frozenset()

    @property
    def files(self) -> tuple[str, ...]:
        """All of them, contents before what names them."""
        return (
            *self.data_files,
            *self.delete_files,
            *self.manifests,
            *self.manifest_lists,
            *self.statistics_files,
        )


def unreachable_files(
    io: FileIO, before: TableMetadata, after: TableMetadata, known: set[str] | None = None
) -> UnreachableFiles:
    """The files that `after` does not reach and `before` did.

    Only manifests of snapshots that went are read, and those of the snapshots that stayed as long
    as a file of the former may be among them.

    Args:
        io: Reads manifests and their lists.
        before: The table.
        after: The table without some snapshots.
        known: Gets the manifests and lists of the snapshots that stayed: they name none of them.

    Raises:
        CorruptFileError: A manifest of a snapshot that stayed cannot be read: then it is unknown
            what is needed.
        FileMissingError: Such a manifest is lost.
    """
    gone = [s for s in before.snapshots if not after.has_snapshot(s.snapshot_id)]
    lists = {s.manifest_list for s in gone if s.manifest_list}
    lists -= {s.manifest_list for s in after.snapshots if s.manifest_list}
    unreadable: list[str] = []
    manifests = _manifests_of(io, gone, unreadable)
    kept = distinct_manifests(io, after.snapshots) if manifests else {}
    manifests = {path: m for path, m in manifests.items() if path not in kept}
    if known is not None:
        known.update(kept)
        known.update(s.manifest_list for s in after.snapshots if s.manifest_list)
    equality: set[str] = set()
    paths = _contents(io, manifests.values(), unreadable, equality)
    _remove_live(io, kept.values(), paths)
    return UnreachableFiles(
        tuple(paths[ManifestContent.DATA]),
        tuple(paths[ManifestContent.DELETES]),
        tuple(manifests),
        tuple(sorted(lists)),
        tuple(sorted(_statistics(before) - _statistics(after))),
        tuple(unreadable),
        frozenset(equality.intersection(paths[ManifestContent.DELETES])),
    )


def _manifests_of(
    io: FileIO, snapshots: Iterable[Snapshot], unreadable: list[str]
) -> dict[str, ManifestFile]:
    def read(snapshot: Snapshot, known: Container[str]) -> tuple[ManifestFile, ...]:
        try:
            return read_manifests(io, snapshot, known)
        except (CorruptFileError, FileMissingError):
            unreadable.append(snapshot.manifest_list or f"snapshot {snapshot.snapshot_id}")
            return ()

    return distinct_manifests(io, snapshots, read)


def _contents(
    io: FileIO, manifests: Iterable[ManifestFile], unreadable: list[str], equality: set[str]
) -> dict[ManifestContent, dict[str, None]]:
    def read(manifest: ManifestFile) -> pa.RecordBatch | None:
        try:
            return _live(io, manifest)
        except (CorruptFileError, FileMissingError):
            unreadable.append(manifest.manifest_path)
            return None

    found: dict[ManifestContent, dict[str, None]] = {content: {} for content in ManifestContent}
    chosen = list(manifests)
    for manifest, live in zip(chosen, read_each(io, chosen, read), strict=True):
        if live is None:
            continue
        paths = live.column("file_path")
        found[manifest.content].update(dict.fromkeys(paths.to_pylist()))
        is_equality = pc.equal(live.column("content"), DataFileContent.EQUALITY_DELETES.value)
        equality.update(paths.filter(is_equality).to_pylist())
    return found


def _remove_live(
    io: FileIO,
    manifests: Iterable[ManifestFile],
    paths: dict[ManifestContent, dict[str, None]],
) -> None:
    # one file may have been added by several spellings of its location
    spelled: dict[str, list[str]] = {}
    everything = [path for candidates in paths.values() for path in candidates]
    for path, plain in zip(everything, _plain(io, pa.array(everything, pa.string())), strict=True):
        spelled.setdefault(plain, []).append(path)
    if not everything:
        return
    for live in read_each(io, manifests, partial(_live, io)):
        for plain in _plain(io, live.column("file_path")):
            for path in spelled.pop(plain, ()):
                for candidates in paths.values():
                    candidates.pop(path, None)
        if not any(paths.values()):
            return


def _plain(io: FileIO, locations: pa.Array) -> list[str]:
    found: list[str] = plain_locations(locations, io.properties, any_cluster=True).to_pylist()
    return found


def _live(io: FileIO, manifest: ManifestFile) -> pa.RecordBatch:
    columns = read_manifest_columns(io, manifest, (), cache=None)
    names = ("file_path", "content")
    rows = pa.RecordBatch.from_arrays([columns.column(name) for name in names], names=names)
    return rows.filter(columns.live)


def _statistics(metadata: TableMetadata) -> set[str]:
    files = (*metadata.statistics, *metadata.partition_statistics)
    return {str(file["statistics-path"]) for file in files if "statistics-path" in file}
