"""The origin of each row of a new file: its source file and its position there.

Deletes that other writers add to a source file while it is rewritten name its rows by position. The
source and position of a row are kept as one number, and runs of consecutive numbers as one entry,
so that rows which stay together take almost no memory. Large amounts are spilled to disk.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import IO, Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icecomb.format.arrow.number_view import array_of, numbers_of
from icecomb.format.errors import ValidationError
from icecomb.format.manifests.manifest import DataFile
from icecomb.format.rows.deletes.position_delete import Positions, distinct
from icecomb.format.rows.write.file_settings import FileSettings
from icecomb.format.rows.write.partition_writer import OpenDataFile
from icecomb.format.spec.partition import PartitionSpec
from icecomb.format.storage.file_io import FileIO
from icecomb.format.storage.temporary_file import keeping

Numbers: TypeAlias = npt.NDArray[np.int64]

_POSITION_BITS: Final = 40
MOST_SOURCES: Final = 1 << 22
"""The number of source files that can be distinguished."""
IN_MEMORY: Final = 64 << 20


def row_key(source: int, position: int) -> int:
    """Encode the origin of a row, the number of its file and its position there, as a number."""
    if source >= MOST_SOURCES or position >> _POSITION_BITS:
        raise ValidationError(
            f"Cannot number row {position} of file {source} of a group",
            hint="Set option max-file-group-input-files to make smaller groups.",
        )
    return source << _POSITION_BITS | position


def with_origins(rows: pa.RecordBatch, source: int, positions: pa.Array) -> pa.RecordBatch:
    """Append a column with the origin of each row; `source` is the number of their file."""
    own = numbers_of(positions)
    first = row_key(source, 0)
    row_key(source, int(own.max(initial=0)))
    column = array_of(own | first)
    schema = rows.schema.append(pa.field("", pa.int64()))
    return pa.RecordBatch.from_arrays([*rows.columns, column], schema=schema)


@dataclass(frozen=True, slots=True)
class _Runs:
    """The runs of consecutive rows in a new file that were consecutive in a source.

    Attributes:
        keys: The key of the first row of each run, in the order of the new file.
    """

    keys: Numbers
    lengths: Numbers

    def positions(self, removed: Numbers, deleted: Numbers) -> Positions:
        """Return the positions in the new file of rows from removed files, or deleted in others."""
        first = np.cumsum(self.lengths) - self.lengths
        found = []
        if len(removed):
            of_removed = np.isin(self.keys >> _POSITION_BITS, removed)
            found.append(_ranges(first[of_removed], self.lengths[of_removed]))
        if len(deleted) and len(self.keys):
            order = np.argsort(self.keys, kind="stable")
            at = np.searchsorted(self.keys[order], deleted, side="right") - 1
            run = order[at[at >= 0]]
            within = deleted[at >= 0] - self.keys[run]
            held = within < self.lengths[run]
            found.append(first[run[held]] + within[held])
        return distinct(found) if found else np.empty(0, np.int64)


class RowOrigins:
    """The origins of the rows of some new files; `close` frees their space on disk."""

    def __init__(self) -> None:
        self._files: list[tuple[DataFile, _Runs | tuple[int, int]]] = []
        self._bytes = 0
        self._spilled: IO[bytes] | None = None

    def open_file(
        self,
        io: FileIO,
        location: str,
        settings: FileSettings,
        spec: PartitionSpec,
        partition: tuple[Any, ...],
    ) -> OpenDataFile:
        """Begin a file; see `OpenDataFile`."""
        return _OriginFile(self, io, location, settings, spec, partition)

    def keep(self, file: DataFile, keys: Numbers, lengths: Numbers) -> None:
        """Keep the runs of a complete file."""
        self._bytes += keys.nbytes + lengths.nbytes
        if self._bytes <= IN_MEMORY:
            self._files.append((file, _Runs(keys, lengths)))
            return
        self._bytes -= keys.nbytes + lengths.nbytes
        with keeping("origins of rows"):
            if self._spilled is None:
                self._spilled = tempfile.TemporaryFile(prefix="icecomb-origins-")  # noqa: SIM115 - `close`
            offset = self._spilled.seek(0, 2)
            self._spilled.write(keys.tobytes())
            self._spilled.write(lengths.tobytes())
        self._files.append((file, (offset, len(keys))))

    def affected(
        self, removed: Collection[int], deleted: Mapping[int, Positions]
    ) -> Iterator[tuple[DataFile, Positions]]:
        """Yield the new files that have deleted rows, with the positions of these, ascending.

        Args:
            removed: The numbers of sources all of whose rows are gone.
            deleted: The positions of rows that are gone, by the number of their source; rows that
                are in no new file are ignored.
        """
        gone = np.array(sorted(removed), np.int64)
        # a position with more bits, which no file has, would name a row of another source
        keys = [
            positions[positions >> _POSITION_BITS == 0] | (source << _POSITION_BITS)
            for source, positions in deleted.items()
        ]
        wanted = np.sort(np.concatenate(keys)) if keys else np.empty(0, np.int64)
        for file, runs in self._files:
            loaded = runs if isinstance(runs, _Runs) else self._load(*runs)
            positions = loaded.positions(gone, wanted)
            if len(positions):
                yield file, positions

    def close(self) -> None:
        """Discard all origins."""
        self._files = []
        if self._spilled is not None:
            self._spilled.close()
            self._spilled = None

    def _load(self, offset: int, count: int) -> _Runs:
        assert self._spilled is not None  # noqa: S101 - there are such runs
        with keeping("origins of rows"):
            self._spilled.seek(offset)
            raw = np.frombuffer(self._spilled.read(2 * 8 * count), np.int64)
        return _Runs(raw[:count], raw[count:])


class _OriginFile(OpenDataFile):
    """A file being written, whose rows come `with_origins`."""

    def __init__(  # noqa: PLR0917 - what `OpenDataFile` takes, too
        self,
        origins: RowOrigins,
        io: FileIO,
        location: str,
        settings: FileSettings,
        spec: PartitionSpec,
        partition: tuple[Any, ...],
    ) -> None:
        super().__init__(io, location, settings, spec, partition)
        self._origins = origins
        self._keys: list[Numbers] = []
        self._lengths: list[Numbers] = []

    def write(self, batches: list[pa.RecordBatch]) -> None:
        own = [batch.select(range(batch.num_columns - 1)) for batch in batches]
        super().write(own)
        for batch in batches:
            self._note(numbers_of(batch.column(batch.num_columns - 1)))

    def close(self) -> DataFile:
        file = super().close()
        self._origins.keep(file, _joined(self._keys), _joined(self._lengths))
        return file

    def _note(self, keys: Numbers) -> None:
        if not len(keys):
            return
        starts = np.concatenate(([0], np.flatnonzero(np.diff(keys) != 1) + 1))
        lengths = np.diff(np.append(starts, len(keys)))
        firsts = keys[starts]
        if self._keys and int(self._keys[-1][-1] + self._lengths[-1][-1]) == int(firsts[0]):
            self._lengths[-1][-1] += lengths[0]
            firsts, lengths = firsts[1:], lengths[1:]
        if len(firsts):
            self._keys.append(firsts)
            self._lengths.append(lengths.astype(np.int64))


def _joined(parts: list[Numbers]) -> Numbers:
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def _ranges(first: Numbers, lengths: Numbers) -> Numbers:
    """Return the numbers in ranges that have these first numbers and lengths."""
    total = int(lengths.sum())
    before = np.cumsum(lengths) - lengths
    return np.repeat(first - before, lengths) + np.arange(total, dtype=np.int64)
