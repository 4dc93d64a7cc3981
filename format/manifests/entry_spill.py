"""Disk storage for many encoded entries, readable in any order.

A record is a kilobyte if a table has many columns, so a million of them is too much for memory.
There only some forty bytes per entry remain: the offset of its record, and numbers.
"""

from __future__ import annotations

import tempfile
from array import array
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from icecomb.format.manifests.manifest import ManifestEntryStatus
from icecomb.format.manifests.writer import EncodedEntry
from icecomb.format.storage.temporary_file import cannot_keep

if TYPE_CHECKING:
    from typing_extensions import Self

IN_MEMORY: Final = 64 << 20
"""Bytes of records up to which no file is created."""
_INHERITED: Final = -(1 << 62)

Order = npt.NDArray[np.int64]


class EntrySpill:
    """Entries, numbered in the order they are added.

    Attributes:
        partitions: The distinct partitions, indexed by the numbers in `partition_of`.
    """

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115 - closed by `with`
        self._ends = array("q", [0])
        self._statuses = array("b")
        self._counts = array("q")
        self._numbers = array("q")
        self._partition_of = array("q")
        self._has_exact_bounds = True  # of all entries, as they may be written together
        self._known: dict[tuple[Any, ...], int] = {}
        self.partitions: list[tuple[Any, ...]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    def __len__(self) -> int:
        return len(self._counts)

    @property
    def nbytes(self) -> int:
        """The bytes of all entries, before compression."""
        return self._ends[-1]

    @property
    def partition_of(self) -> Order:
        """The number of each entry's partition."""
        return np.array(self._partition_of, np.int64)

    def add(self, entries: Iterable[EncodedEntry]) -> None:
        """Add entries; FileIOError if there is not enough space."""
        end = self._ends[-1]
        for entry in entries:
            try:
                self._file.write(entry.record)
            except OSError as error:
                raise cannot_keep("entries of manifests", error) from error
            end += len(entry.record)
            self._ends.append(end)
            self._statuses.append(entry.status.value)
            self._counts.append(entry.record_count)
            number = entry.sequence_number
            self._numbers.append(_INHERITED if number is None else number)
            self._partition_of.append(self._number_of(entry.partition))
            self._has_exact_bounds &= entry.has_exact_bounds

    def entries(self, order: Order) -> Iterator[EncodedEntry]:
        """Yield the entries with these numbers, in this order."""
        for at in order.tolist():
            start, number = self._ends[at], self._numbers[at]
            self._file.seek(start)
            yield EncodedEntry(
                self._file.read(self._ends[at + 1] - start),
                ManifestEntryStatus(self._statuses[at]),
                self._counts[at],
                None if number == _INHERITED else number,
                self.partitions[self._partition_of[at]],
                self._has_exact_bounds,
            )

    def _number_of(self, partition: tuple[Any, ...]) -> int:
        # zeros of both signs are equal for Python, and NaN is not
        key = tuple(str(v) if isinstance(v, float) else v for v in partition)
        number = self._known.setdefault(key, len(self.partitions))
        if number == len(self.partitions):
            self.partitions.append(partition)
        return number
