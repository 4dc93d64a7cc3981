"""Files that a table no longer needs: reachable before a change, but not after it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.errors import CorruptFileError, IcecombError, NoSuchFileError
from icecomb.format.manifests.manifest import DataFileContent, ManifestContent
from icecomb.format.manifests.manifest_union import distinct_manifests
from icecomb.format.manifests.reader import read_each_columns
from icecomb.format.operation.expiry.location_keys import Spelling

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from icecomb.format.manifests.columns import ManifestColumns
    from icecomb.format.manifests.manifest import ManifestFile
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.snapshot import Snapshot
    from icecomb.format.storage.file_io import FileIO

_UNREADABLE: Final = (CorruptFileError, NoSuchFileError)
_THREADS: Final = 8
"""The number of manifests to decode at a time."""


@dataclass(frozen=True, slots=True)
class UnreachableFiles:
    """Files that nothing in the table refers to any more, by kind.

    Attributes:
        delete_files: Files of position and equality deletes.
        equality_delete_files: The delete files that hold equality deletes.
        unreadable: Manifests and lists of removed snapshots that could not be read; files that
            only they name are not included.
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
        """All files, each before the files that name it."""
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
    """Return the files that `before` reaches and `after`, without some snapshots, does not.

    Args:
        known: A set to add the manifests and lists of kept snapshots to, which name no such
            file.
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
    def pass_over(snapshot: Snapshot, error: IcecombError) -> None:
        if not isinstance(error, _UNREADABLE):
            raise error
        unreadable.append(snapshot.manifest_list or f"snapshot {snapshot.snapshot_id}")

    return distinct_manifests(io, snapshots, pass_over)


def _contents(
    io: FileIO, manifests: Iterable[ManifestFile], unreadable: list[str], equality: set[str]
) -> dict[ManifestContent, dict[str, None]]:
    def pass_over(manifest: ManifestFile, error: IcecombError) -> None:
        if not isinstance(error, _UNREADABLE):
            raise error
        unreadable.append(manifest.manifest_path)

    found: dict[ManifestContent, dict[str, None]] = {content: {} for content in ManifestContent}
    for columns in _columns(io, manifests, pass_over):
        paths = columns.column("file_path").filter(columns.live)
        found[columns.manifest.content].update(dict.fromkeys(paths.to_pylist()))
        if columns.manifest.content is ManifestContent.DELETES:
            content = columns.column("content").filter(columns.live)
            is_equality = pc.equal(content, DataFileContent.EQUALITY_DELETES.value)
            equality.update(paths.filter(is_equality).to_pylist())
    return found


def _remove_live(
    io: FileIO,
    manifests: Iterable[ManifestFile],
    paths: dict[ManifestContent, dict[str, None]],
) -> None:
    # one file may have been added under several spellings of its location, or through a link
    spelled: dict[str, list[str]] = {}
    spelling = Spelling(io.properties)
    everything = [path for candidates in paths.values() for path in candidates]
    for path, plain in zip(
        everything, spelling.paths(pa.array(everything, pa.string())), strict=True
    ):
        spelled.setdefault(plain, []).append(path)
    if not everything:
        return
    for columns in _columns(io, manifests):
        live = columns.column("file_path").filter(columns.live)
        keys = spelling.keys(live)
        spelling.check_resolved(live, keys)
        for plain in keys.paths:
            for path in spelled.pop(plain, ()):
                for candidates in paths.values():
                    candidates.pop(path, None)
        if not any(paths.values()):
            return


def _columns(
    io: FileIO,
    manifests: Iterable[ManifestFile],
    unreadable: Callable[[ManifestFile, IcecombError], None] | None = None,
) -> Iterator[ManifestColumns]:
    # without their specs, which the table may no longer have
    return read_each_columns(
        io, manifests, lambda _: None, cache=None, unreadable=unreadable, threads=_THREADS
    )


def _statistics(metadata: TableMetadata) -> set[str]:
    files = (*metadata.statistics, *metadata.partition_statistics)
    return {str(file["statistics-path"]) for file in files if "statistics-path" in file}
