"""The live files of a snapshot for maintenance: delete files, and the ages of data files."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.arrow.array_build import integers
from icecomb.format.errors import REPEATED_FILE, ValidationError
from icecomb.format.manifests.manifest import DataFile, ManifestContent, ManifestFile
from icecomb.format.manifests.reader import read_each_columns
from icecomb.format.scan.delete_index import DELETE_STATISTICS, PartitionKey, partition_keys

if TYPE_CHECKING:
    from icecomb.format.manifests.columns import ManifestColumns
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.storage.file_io import FileIO

Ages = npt.NDArray[np.int64]
"""Data sequence numbers; -1 if there is no such file."""
_NONE: Final = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class LiveDelete:
    """A delete file of a snapshot, with its data sequence number.

    Attributes:
        is_global: Whether equality deletes of its spec apply to all partitions.
    """

    file: DataFile
    number: int
    is_global: bool

    @property
    def file_path(self) -> str:
        """The location of the file."""
        return self.file.file_path

    @property
    def file_size_in_bytes(self) -> int:
        """The size of the file in bytes."""
        return self.file.file_size_in_bytes

    @property
    def record_count(self) -> int:
        """The number of deletes in the file."""
        return self.file.record_count


def live_deletes(
    io: FileIO, metadata: TableMetadata, manifests: Iterable[ManifestFile]
) -> Iterator[LiveDelete]:
    """Yield the delete files of manifests, with the bounds of the paths they name."""
    chosen = _alive(manifests, ManifestContent.DELETES)
    decoded = read_each_columns(io, chosen, metadata.spec_by_id, DELETE_STATISTICS)
    for manifest, columns in zip(chosen, decoded, strict=True):
        spec = metadata.spec_by_id(manifest.partition_spec_id)
        rows = _live(columns)
        numbers = _ages(columns, rows).tolist()
        for file, number in zip(columns.data_files(rows.to_pylist()), numbers, strict=True):
            yield LiveDelete(file, number, spec.is_unpartitioned)


def _alive(manifests: Iterable[ManifestFile], content: ManifestContent) -> list[ManifestFile]:
    return [each for each in manifests if each.content is content and each.has_live_files()]


@dataclass(frozen=True, slots=True)
class LiveData:
    """The live data files of one manifest; their ages are data sequence numbers."""

    keys: list[PartitionKey]
    paths: pa.Array
    ages: Ages

    def chosen(self, mask: pa.BooleanArray) -> LiveData:
        """Return the files that a mask selects."""
        places = np.flatnonzero(mask.to_numpy(zero_copy_only=False))
        keys = [self.keys[place] for place in places]
        return LiveData(keys, self.paths.filter(mask), self.ages[places])


def live_data(
    io: FileIO, metadata: TableMetadata, manifests: Iterable[ManifestFile]
) -> Iterator[LiveData]:
    """Yield the data files of each manifest; see `live_deletes`."""
    chosen = _alive(manifests, ManifestContent.DATA)
    for columns in read_each_columns(io, chosen, metadata.spec_by_id):
        rows = _live(columns)
        yield LiveData(
            list(partition_keys(columns, rows)),
            columns.column("file_path").take(rows),
            _ages(columns, rows),
        )


class DataFileAges:
    """The ages of the data files in some partitions, and of named data files in any partition.

    Args:
        targets: The paths of the named files.
        wide: Whether other files of these partitions will be looked up, too.
    """

    def __init__(
        self,
        io: FileIO,
        metadata: TableMetadata,
        manifests: Iterable[ManifestFile],
        partitions: Collection[PartitionKey],
        targets: pa.Array,
        *,
        wide: bool,
    ) -> None:
        numbers: list[Ages] = []
        parts: dict[PartitionKey, list[tuple[pa.Array, Ages]]] = {}
        self._elsewhere: dict[str, PartitionKey] = {}
        for data in live_data(io, metadata, manifests):
            named = data.chosen(pc.is_in(data.paths, value_set=targets))
            for path, key in zip(named.paths.to_pylist(), named.keys, strict=True):
                # for each of its partitions, a file of several partitions is elsewhere
                self._elsewhere[path] = key if self._elsewhere.get(path, key) == key else ()
            if wide:
                numbers.append(_numbers(data.paths))
            rows: dict[PartitionKey, list[int]] = {}
            for row, key in enumerate(data.keys):
                if key in partitions:
                    rows.setdefault(key, []).append(row)
            for key, chosen in rows.items():
                part = data.paths.take(integers(chosen)), data.ages[chosen]
                parts.setdefault(key, []).append(part)
        self._of = {key: _joined(found) for key, found in parts.items()}
        every, counts = np.unique(np.concatenate(numbers or [_NONE]), return_counts=True)
        self._repeated = every[counts > 1]

    def is_elsewhere(self, path: str, key: PartitionKey) -> bool:
        """Return whether a named file is in another partition than this."""
        return self._elsewhere.get(path, key) != key

    def of(self, key: PartitionKey, paths: pa.Array) -> Ages:
        """Return the data sequence numbers of files in a partition."""
        known = self._of.get(key)
        if known is None:
            return np.full(len(paths), -1, np.int64)
        names, ages = known
        here = names.filter(pc.is_in(names, value_set=paths))
        _refuse_repeated(here)
        if len(self._repeated):
            twice = np.isin(_numbers(here), self._repeated)
            if twice.any():
                _refuse(here[int(twice.argmax())].as_py())
        places = pc.index_in(paths, value_set=names).fill_null(-1)
        first = places.to_numpy(zero_copy_only=False).astype(np.int64)
        return np.where(first < 0, -1, ages[np.maximum(first, 0)])


def check_once(
    io: FileIO, metadata: TableMetadata, manifests: Iterable[ManifestFile], paths: pa.Array
) -> None:
    """Refuse data files that the table has several times, in whatever partitions."""
    if repeated := repeated_files(io, metadata, manifests, paths):
        _refuse(min(repeated))


def repeated_files(
    io: FileIO, metadata: TableMetadata, manifests: Iterable[ManifestFile], paths: pa.Array
) -> set[str]:
    """Return those of these data files that the table has several times."""
    found = [
        data.paths.filter(pc.is_in(data.paths, value_set=paths))
        for data in live_data(io, metadata, manifests if len(paths) else ())
    ]
    return _repeated(pa.concat_arrays(found)) if found else set()


def changed_ages(
    io: FileIO,
    metadata: TableMetadata,
    manifests: Iterable[ManifestFile],
    known: Mapping[str, int],
) -> set[str]:
    """Return the data files whose age differs from the known one (-1: the file did not exist)."""
    names = pa.array(list(known), pa.string())
    changed: set[str] = set()
    for data in live_data(io, metadata, manifests):
        found = data.chosen(pc.is_in(data.paths, value_set=names))
        ages = zip(found.paths.to_pylist(), found.ages.tolist(), strict=True)
        changed.update(path for path, age in ages if known[path] != age)
    return changed


def _repeated(paths: pa.Array) -> set[str]:
    if len(paths) == len(paths.unique()):
        return set()
    return {row["values"] for row in paths.value_counts().to_pylist() if row["counts"] > 1}


def _refuse_repeated(paths: pa.Array) -> None:
    if repeated := _repeated(paths):
        _refuse(min(repeated))


def _refuse(path: str) -> NoReturn:
    raise ValidationError(
        f"The table has data file {path} more than once: delete files that name it "
        "may apply to some of its rows only, and cannot be rewritten",
        hint=REPEATED_FILE,
        path=path,
    )


def _numbers(paths: pa.Array) -> Ages:
    """Hash each path to eight bytes; a collision can only make icecomb refuse more files."""
    return np.fromiter(map(hash, paths.to_pylist()), np.int64, len(paths))


def _joined(parts: Iterable[tuple[pa.Array, Ages]]) -> tuple[pa.Array, Ages]:
    paths, ages = zip(*parts, strict=True)
    return pa.concat_arrays(paths), np.concatenate(ages)


def _live(columns: ManifestColumns) -> pa.Array:
    return pc.indices_nonzero(columns.live)


def _ages(columns: ManifestColumns, rows: pa.Array) -> Ages:
    numbers = columns.column("sequence_number").take(rows).fill_null(0)
    return np.asarray(numbers.to_numpy(zero_copy_only=False), np.int64)
