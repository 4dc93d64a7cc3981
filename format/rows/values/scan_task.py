"""Scan tasks: files to read, parts of files, and groups of parts of similar size."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any, Final, Protocol

from icecomb.format.expressions.expression import AlwaysTrue, BooleanExpression
from icecomb.format.manifests.manifest import DataFile, FileFormat
from icecomb.format.property.table_property import (
    SPLIT_LOOKBACK,
    SPLIT_OPEN_FILE_COST,
    SPLIT_TARGET_SIZE,
)
from icecomb.format.spec.partition import UNPARTITIONED_PARTITION_SPEC, PartitionSpec

SPLITTABLE = frozenset((FileFormat.PARQUET, FileFormat.ORC, FileFormat.AVRO))
"""The formats of which parts can be read separately."""
MOST_PARTS: Final = 10_000
"""The maximum number of parts of a file: its size may be stated wrong, the target be tiny."""


class DataFileSource(Protocol):
    """A source of `DataFile` objects that are built on demand."""

    def data_file(self, row: int) -> DataFile:
        """Return the file of a row."""

    def number(self, row: int, name: str) -> int:
        """Return a numeric attribute of the file of a row, without building the file."""

    def path(self, row: int) -> str:
        """Return the location of the file of a row, without building the file."""


class VectorSource(Protocol):
    """A source of deletion vectors that are built on demand."""

    def vector(self, index: int) -> DataFile:
        """Return the vector with an index."""


class FileScanTask:
    """A data file to read, or a part of one, with its delete files and its residual filter.

    Args:
        file: The data file.
        delete_files: The delete files that may delete rows of it.
        residual: The part of the filter to check on its rows, bound to the scan's schema.
        spec: The partition spec of the file.
        start: The offset of the part, in bytes.
        length: The length of the part, in bytes; the rest of the file by default.
    """

    __slots__ = (
        "_deletes",
        "_file",
        "_length",
        "_row",
        "_vector",
        "residual",
        "spec",
        "start",
    )

    def __init__(  # noqa: PLR0917 - the names are the contract, in this order
        self,
        file: DataFile,
        delete_files: tuple[DataFile, ...] = (),
        residual: BooleanExpression = AlwaysTrue(),  # noqa: B008 - a constant value
        spec: PartitionSpec = UNPARTITIONED_PARTITION_SPEC,
        start: int = 0,
        length: int | None = None,
    ) -> None:
        self._file: DataFile | DataFileSource = file
        self._row = -1
        self._deletes = delete_files
        self._vector: tuple[VectorSource, int] | None = None
        self.residual = residual
        self.spec = spec
        self.start = start
        self._length = length

    @classmethod
    def lazy(  # noqa: PLR0917 - called for each file of a plan
        cls,
        source: DataFileSource,
        row: int,
        delete_files: tuple[DataFile, ...],
        residual: BooleanExpression,
        spec: PartitionSpec,
        vector: tuple[VectorSource, int] | None = None,
    ) -> FileScanTask:
        """Return a task for a whole file, whose `DataFile` is built on first use.

        Args:
            source: The source of the file.
            row: The row of the file in its source.
            delete_files: The delete files that may delete rows of it.
            residual: See `FileScanTask`.
            spec: See `FileScanTask`.
            vector: The source of its deletion vector and its index there; None if it has none.
        """
        task = object.__new__(cls)
        task._file = source
        task._row = row
        task._deletes = delete_files
        task._vector = vector
        task.residual = residual
        task.spec = spec
        task.start = 0
        task._length = None
        return task

    @property
    def file(self) -> DataFile:
        """The data file."""
        file = self._file
        if not isinstance(file, DataFile):
            file = self._file = file.data_file(self._row)
        return file

    @property
    def delete_files(self) -> tuple[DataFile, ...]:
        """The delete files that may delete rows of it, its deletion vector among them."""
        if self._vector is None:
            return self._deletes
        source, index = self._vector
        return (*self._deletes, source.vector(index))

    @property
    def file_path(self) -> str:
        """The location of the data file, found without building the file."""
        file = self._file
        return file.file_path if isinstance(file, DataFile) else file.path(self._row)

    @property
    def file_size_in_bytes(self) -> int:
        """The size of the whole data file, found without building the file."""
        return self._number("file_size_in_bytes")

    @property
    def record_count(self) -> int:
        """The rows of the whole data file, including deleted ones, without building the file."""
        return self._number("record_count")

    def _number(self, name: str) -> int:
        file = self._file
        if isinstance(file, DataFile):
            found: int = getattr(file, name)
            return found
        return file.number(self._row, name)

    @property
    def length(self) -> int:
        """The number of bytes to read from `start`."""
        if self._length is None:
            self._length = self.file.file_size_in_bytes - self.start
        return self._length

    def split(self, target_size: int) -> Iterator[FileScanTask]:
        """Yield the parts of this task: by the file's split offsets, else of the target size.

        Args:
            target_size: The size of a part, in bytes; ignored where the file has split offsets, and
                greater where there would be more than `MOST_PARTS`.
        """
        offsets: Sequence[int] | None = self._usable_offsets()
        end = self.start + self.length
        if offsets is None:
            if self.file.file_format not in SPLITTABLE or self.length <= target_size:
                yield self
                return
            offsets = range(self.start, end, max(target_size, -(-self.length // MOST_PARTS)))
        for start, stop in zip(offsets, chain(offsets[1:], (end,)), strict=True):
            yield self._part(start, stop - start)

    def weight(self, open_file_cost: int) -> int:
        """Return the cost of reading this, in bytes: its length and deletes, or that of opening."""
        deletes = self.delete_files
        size = self.length + sum(file.content_length for file in deletes)
        return max(size, (1 + len(deletes)) * open_file_cost)

    def _usable_offsets(self) -> tuple[int, ...] | None:
        offsets, end = self.file.split_offsets, self.start + self.length
        if not offsets or len(offsets) > MOST_PARTS:
            return None
        if self.start or end != self.file.file_size_in_bytes:
            return None
        ascending = all(a < b for a, b in pairwise(offsets))
        return tuple(offsets) if ascending and offsets[0] >= 0 and offsets[-1] < end else None

    def _part(self, start: int, length: int) -> FileScanTask:
        return FileScanTask(self.file, self.delete_files, self.residual, self.spec, start, length)

    def _values(self) -> tuple[Any, ...]:
        return (
            self.file,
            self.delete_files,
            self.residual,
            self.spec,
            self.start,
            self.length,
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FileScanTask) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash((self.file.file_path, self.start))

    def __reduce__(self) -> tuple[type[FileScanTask], tuple[Any, ...]]:
        return FileScanTask, self._values()

    def __repr__(self) -> str:
        return (
            f"FileScanTask({self.file.file_path!r}, start={self.start}, length={self.length}, "
            f"deletes={len(self.delete_files)}, residual={self.residual!r})"
        )


@dataclass(frozen=True, slots=True)
class ScanTaskGroup:
    """Parts of files for one reader, together of about the target size.

    Args:
        tasks: The parts; adjacent parts of one file are one task.
    """

    tasks: tuple[FileScanTask, ...]


def plan_task_groups(
    tasks: Iterable[FileScanTask],
    target_size: int = SPLIT_TARGET_SIZE.default,
    lookback: int = SPLIT_LOOKBACK.default,
    open_file_cost: int = SPLIT_OPEN_FILE_COST.default,
) -> Iterator[ScanTaskGroup]:
    """Split files and pack the parts into groups, without waiting for the last file.

    Args:
        target_size: The wanted weight of a group, in bytes.
        lookback: The number of groups kept open for small parts that come later.
        open_file_cost: The minimum weight of a part, in bytes.
    """
    parts = (part for task in tasks for part in task.split(target_size))
    groups = pack(parts, target_size, lookback, lambda part: part.weight(open_file_cost))
    for group in groups:
        yield ScanTaskGroup(tuple(_merged(group)))


def pack(
    items: Iterable[FileScanTask],
    target_weight: int,
    lookback: int,
    weight: Callable[[FileScanTask], int],
) -> Iterator[list[FileScanTask]]:
    """Pack items first-fit into at most `lookback` open bins; yield the heaviest beyond that."""
    bins: deque[tuple[int, list[FileScanTask]]] = deque()
    for item in items:
        size = weight(item)
        for at, (held, members) in enumerate(bins):
            if held + size <= target_weight:
                members.append(item)
                bins[at] = (held + size, members)
                break
        else:
            bins.append((size, [item]))
            if len(bins) > lookback:
                heaviest = max(range(len(bins)), key=lambda at: bins[at][0])
                _, members = bins[heaviest]
                del bins[heaviest]
                yield members
    for _, members in bins:
        yield members


def _merged(parts: Iterable[FileScanTask]) -> Iterator[FileScanTask]:
    last: FileScanTask | None = None
    for part in parts:
        if last is None:
            last = part
        elif part.file is last.file and part.start == last.start + last.length:
            last = FileScanTask(
                last.file,
                last.delete_files,
                last.residual,
                last.spec,
                last.start,
                last.length + part.length,
            )
        else:
            yield last
            last = part
    if last is not None:
        yield last
