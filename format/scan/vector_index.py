"""An index of deletion vectors by the data files that they name (spec: Scan Planning).

A table may have a vector for each data file: vectors are looked up many at a time, and become
`DataFile` objects when a task is asked for its deletes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Sequence
from itertools import repeat
from threading import Lock
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from icecomb.format.arrow.array_build import ZERO
from icecomb.format.arrow.number_view import Longs, numbers_of
from icecomb.format.rows.deletes.vector_reader import damaged_vector, several_vectors

if TYPE_CHECKING:
    from icecomb.format.errors import CorruptFileError
    from icecomb.format.manifests.columns import ManifestColumns
    from icecomb.format.manifests.manifest import DataFile

_NONE: Final = -1
_BLOCK: Final = 1024
"""The number of vectors whose `DataFile` objects are built together."""


class VectorIndex:
    """The deletion vectors of a snapshot, numbered from 0."""

    def __init__(self) -> None:
        self._indices: dict[str, int] = {}
        self._parts: list[_Part] = []
        self._starts: list[int] = []
        self._keys: dict[Hashable, int] = {}
        self._numbers: Longs = np.empty(0, np.int64)
        self._partitions: Longs = np.empty(0, np.int64)
        self._pending: list[tuple[Longs, Longs]] = []

    def __len__(self) -> int:
        return len(self._indices)

    def add(
        self, columns: ManifestColumns, rows: Sequence[int], codes: Longs, keys: Sequence[Hashable]
    ) -> None:
        """Add the vectors among a delete manifest's rows.

        Args:
            codes: For each of these rows, the index of its partition in `keys`.
            keys: Distinct partitions, as `partition_keys` returns them.
        """
        start, part = len(self._indices), _Part(columns, rows)
        targets = part.column("referenced_data_file")
        paths = targets.to_pylist()
        if targets.null_count:
            raise damaged_vector(part.file(paths.index(None)), "does not name its data file")
        self._parts.append(part)
        self._starts.append(start)
        self._indices.update(zip(paths, range(start, start + len(paths)), strict=True))
        if len(self._indices) < start + len(paths):
            raise self._repeated()
        known = [self._keys.setdefault(key, len(self._keys)) for key in keys]
        numbers = numbers_of(part.column("sequence_number").fill_null(ZERO))
        self._pending.append((numbers, np.array(known, np.int64)[codes]))

    def settle(self) -> None:
        """Prepare look-ups, so that several threads may do them afterwards."""
        if self._pending:
            numbers, partitions = zip(*self._pending, strict=True)
            self._numbers = np.concatenate([self._numbers, *numbers])
            self._partitions = np.concatenate([self._partitions, *partitions])
            self._pending = []

    def index(self, path: str) -> int | None:
        """Return the index of a data file's vector; None if it has none."""
        return self._indices.get(path)

    def indices(
        self, paths: Sequence[str], numbers: Longs, codes: Longs, keys: Sequence[Hashable]
    ) -> Longs:
        """Return the indices of data files' vectors, -1 for those that have none.

        Args:
            numbers: Their data sequence numbers.
            codes: For each of them, the index of its partition in `keys`.
            keys: Distinct partitions, as `partition_keys` returns them.
        """
        self.settle()
        places = map(self._indices.get, paths, repeat(_NONE))
        found: Longs = np.fromiter(places, np.int64, len(paths))
        there = np.flatnonzero(found != _NONE)
        known = np.array([self._keys.get(key, _NONE) for key in keys], np.int64)
        own = found[there]
        older = self._numbers[own] < numbers[there]
        elsewhere = self._partitions[own] != known[codes[there]]
        for at in np.flatnonzero(older | elsewhere)[:1]:
            row = int(there[at])
            self.check(int(own[at]), int(numbers[row]), keys[int(codes[row])])
        return found

    def check(self, index: int, sequence_number: int, key: Hashable) -> None:
        """Check that a vector is not older than its data file, nor of another partition."""
        self.settle()
        number = int(self._numbers[index])
        if number < sequence_number:
            problem = f"has sequence number {number}, less than {sequence_number} of its data file"
            raise damaged_vector(self.vector(index), problem)
        partition = int(self._partitions[index])
        if self._keys.get(key) != partition:
            own = list(self._keys)[partition]
            problem = f"has spec and partition {own}, and its data file has {key}"
            raise damaged_vector(self.vector(index), problem)

    def vector(self, index: int) -> DataFile:
        """Return a vector by its index, always the same object."""
        number = bisect_right(self._starts, index) - 1
        return self._parts[number].file(index - self._starts[number])

    def _repeated(self) -> CorruptFileError:
        seen: dict[str, DataFile] = {}
        for part in self._parts:
            for at, path in enumerate(part.column("referenced_data_file").to_pylist()):
                if path in seen:
                    return several_vectors(path, seen[path], part.file(at))
                seen[path] = part.file(at)
        raise AssertionError


class _Part:
    """The vectors of one manifest."""

    def __init__(self, columns: ManifestColumns, rows: Sequence[int]) -> None:
        self._columns = columns
        self._rows = rows
        self._lock = Lock()
        self._blocks: dict[int, list[DataFile]] = {}

    def column(self, name: str) -> pa.Array:
        found = self._columns.column(name)
        return found if len(self._rows) == len(found) else found.take(pa.array(self._rows))

    def file(self, at: int) -> DataFile:
        block, within = divmod(at, _BLOCK)
        files = self._blocks.get(block)
        if files is None:
            with self._lock:
                files = self._blocks.get(block)
                if files is None:
                    rows = self._rows[block * _BLOCK : (block + 1) * _BLOCK]
                    files = self._blocks[block] = self._columns.data_files(rows)
        return files[within]
