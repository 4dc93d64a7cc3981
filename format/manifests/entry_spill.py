"""Many encoded entries in little memory: their records lie in a file, in any order they come back.

A record is a kilobyte where a table has many columns; a million of them is more than a process
should hold. What is kept of an entry is some forty bytes: where its record is, and numbers.
"""

from __future__ import annotations

import tempfile
from array import array
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from icecomb.format.errors import FileIOError
from icecomb.format.manifests.manifest import ManifestEntryStatus
from icecomb.format.manifests.writer import EncodedEntry

if TYPE_CHECKING:
    from typing_extensions import Self

_IN_MEMORY: Final = 64 << 20
"""Bytes of records that need no file."""
_INHERITED: Final = -(1 << 62)

Order = npt.NDArray[np.int64]


class EntrySpill:
    """Entries, numbered as they come.

    Attributes:
        partitions: The partitions that there are, as `partition_of` numbers them.
    """

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - closed by `with`
        self._ends = array("q", [0])
        self._statuses = array("b")
        self._counts = array("q")
        self._numbers = array("q")
        self._partition_of = array("q")
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
    def partition_of(self) -> Order:
        """The partition of each entry."""
        return np.array(self._partition_of, np.int64)

    def add(self, entries: Iterable[EncodedEntry]) -> None:
        """Take some more.

        Raises:
            FileIOError: There is no space for them.
        """
        end = self._ends[-1]
        for entry in entries:
            try:
                self._file.write(entry.record)
            except OSError as error:
                raise FileIOError(
                    f"Cannot keep entries of manifests in {tempfile.gettempdir()}: "
                    f"{error.strerror}",
                    hint="free space there, or set TMPDIR to a folder that has some",
                ) from error
            end += len(entry.record)
            self._ends.append(end)
            self._statuses.append(entry.status.value)
            self._counts.append(entry.record_count)
            number = entry.sequence_number
            self._numbers.append(_INHERITED if number is None else number)
            self._partition_of.append(self._number_of(entry.partition))

    def entries(self, order: Order) -> Iterator[EncodedEntry]:
        """Entries by their numbers."""
        for at in order.tolist():
            start, number = self._ends[at], self._numbers[at]
            self._file.seek(start)
            yield EncodedEntry(
                self._file.read(self._ends[at + 1] - start),
                ManifestEntryStatus(self._statuses[at]),
                self._counts[at],
                None if number == _INHERITED else number,
                self.partitions[self._partition_of[at]],
            )

    def _number_of(self, partition: tuple[Any, ...]) -> int:
        # zeros of both signs are equal for Python, and NaN is not
        key = tuple(str(v) if isinstance(v, float) else v for v in partition)
        number = self._known.setdefault(key, len(self.partitions))
        if number == len(self.partitions):
            self.partitions.append(partition)
        return number
