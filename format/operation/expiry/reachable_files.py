"""All files that metadata reaches, as hashed keys: those of every snapshot, referenced or not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from icecomb.format.errors import (
    CorruptFileError,
    IcecombError,
    NoSuchFileError,
    UnsupportedError,
)
from icecomb.format.manifests.manifest_union import each_new_manifests
from icecomb.format.manifests.reader import read_each_columns
from icecomb.format.operation.expiry.location_keys import Keys, LocationKeys, Mask, Spelling

if TYPE_CHECKING:
    from icecomb.format.manifests.manifest import ManifestFile
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.snapshot import Snapshot
    from icecomb.format.storage.file_io import FileIO

_AT_ONCE: Final = 8
"""The number of manifests to decode at a time."""
_TOGETHER: Final = 50_000
"""The number of locations to compare at a time: for a few the calls of Arrow take longest."""
_UNREADABLE: Final = (CorruptFileError, NoSuchFileError, UnsupportedError)


class ReachableFiles:
    """The files that may not be deleted: those that any snapshot or the metadata log needs.

    Args:
        told: A function that is called with the locations of needed files.
        root: A folder, for `elsewhere`.
    """

    def __init__(
        self,
        io: FileIO,
        spelling: Spelling,
        told: Callable[[pa.Array], None] | None = None,
        *,
        root: str | None = None,
    ) -> None:
        self._root = None
        if root is not None:
            self._root = spelling.paths(pa.array([root], pa.string()))[0].rstrip("/") + "/"
        self._names_elsewhere = _Numbers()
        self._io = io
        self._told = told
        self._spelling = spelling
        self._seen: set[str] = set()
        self._paths = _Numbers()
        self._schemes = _Numbers()
        self._wholes = _Numbers()
        self._any_scheme = _Numbers()
        self._any_authority = _Numbers()

    def add(self, locations: Iterable[str] | pa.Array) -> None:
        """Add locations that are needed."""
        texts = locations if isinstance(locations, pa.Array) else pa.array(locations, pa.string())
        if not len(texts):
            return
        if self._told is not None:
            self._told(texts)
        keys = self._spelling.keys(texts)
        self._spelling.check_resolved(texts, keys)
        if self._root is not None:
            self._names_elsewhere.add(
                _names([path for path in keys.paths if not path.startswith(self._root)])
            )
        self._paths.add(keys.path)
        self._schemes.add(keys.scheme)
        self._wholes.add(keys.whole)
        self._any_scheme.add(keys.path[keys.unnamed])
        self._any_authority.add(keys.scheme[keys.open])

    def add_table(
        self,
        metadata: TableMetadata,
        location: str | None,
        *,
        damaged: bool = False,
    ) -> None:
        """Add all files that a table's metadata reaches, reading each manifest only once.

        Args:
            damaged: Whether to skip files that are missing or unreadable instead of failing.
        """
        files = [] if location is None else [location]
        statistics = (*metadata.statistics, *metadata.partition_statistics)
        files += [str(one["statistics-path"]) for one in statistics if "statistics-path" in one]
        files += [entry.metadata_file for entry in metadata.metadata_log]
        lists = [s.manifest_list for s in metadata.snapshots if s.manifest_list]
        self.add([*files, *lists])
        self._add_manifests(metadata, damaged=damaged)

    def skip(self, manifests: Iterable[str]) -> None:
        """Skip manifests when reading: neither they nor the files they name will be looked up."""
        self._seen.update(manifests)

    def sort(self, keys: LocationKeys) -> tuple[Mask, Mask]:
        """Return masks of files that are needed, and may be, having a path under another prefix."""
        needed = (
            self._wholes.has(keys.whole)
            | self._any_scheme.has(keys.path)
            | self._any_authority.has(keys.scheme)
        )
        return needed, self._paths.has(keys.path) & ~needed

    def elsewhere(self, keys: LocationKeys) -> Mask:
        """Return a mask of files that are not needed, but share their name with one that is.

        Only needed files outside of the root count: a table may know the folder by another path,
        such as a mount point's, which a location does not tell.
        """
        if not self._names_elsewhere:
            return np.zeros(len(keys.paths), np.bool_)
        needed, _ = self.sort(keys)
        return self._names_elsewhere.has(_names(keys.paths)) & ~needed

    def unneeded(self, locations: Sequence[str]) -> list[str]:
        """Return the files that are not needed under any scheme or authority."""
        if not locations:
            return []
        keys = self._spelling.keys(pa.array(locations, pa.string()))
        needed, doubtful = self.sort(keys)
        return [locations[row] for row in (~(needed | doubtful)).nonzero()[0].tolist()]

    def _add_manifests(self, metadata: TableMetadata, *, damaged: bool) -> None:
        def pass_over(_: Snapshot | ManifestFile, error: IcecombError) -> None:
            if not (damaged and isinstance(error, _UNREADABLE)):
                raise error

        snapshots = [s for s in metadata.snapshots if s.manifest_list not in self._seen]
        manifests: list[ManifestFile] = []
        for snapshot, new in each_new_manifests(
            self._io, snapshots, self._seen, unreadable=pass_over
        ):
            manifests += new
            if snapshot.manifest_list:
                self._seen.add(snapshot.manifest_list)
        found: list[pa.Array] = []
        count = 0
        for columns in read_each_columns(
            self._io,
            manifests,
            lambda _: None,
            cache=None,
            unreadable=pass_over,
            threads=_AT_ONCE,
        ):
            found.append(columns.column("file_path").filter(columns.live))
            count += len(found[-1])
            if count >= _TOGETHER:
                self.add(pa.concat_arrays(found))
                found, count = [], 0
        if found:
            self.add(pa.concat_arrays(found))
        locations = [manifest.manifest_path for manifest in manifests]
        self.add(locations)
        self._seen.update(locations)


def _names(paths: Sequence[str]) -> Keys:
    return np.fromiter((hash(path.rpartition("/")[2]) for path in paths), np.int64, len(paths))


class _Numbers:
    """A set of many integers, for lookups of whole arrays."""

    def __init__(self) -> None:
        self._sorted: Keys = np.empty(0, np.int64)
        self._new: list[Keys] = []

    def __bool__(self) -> bool:
        return bool(len(self._sorted) or self._new)

    def add(self, numbers: Keys) -> None:
        if len(numbers):
            self._new.append(numbers)

    def has(self, numbers: Keys) -> Mask:
        if self._new:
            self._sorted = np.unique(np.concatenate([self._sorted, *self._new]))
            self._new = []
        if not len(self._sorted):
            return np.zeros(len(numbers), np.bool_)
        at = np.searchsorted(self._sorted, numbers)
        at[at == len(self._sorted)] = 0
        found: Mask = self._sorted[at] == numbers
        return found
