"""What the readers of all file formats have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa

from icecomb.format.errors import CorruptFileError, FileIOError, IcecombError, UnsupportedError
from icecomb.format.rows.parquet.statistics import ChunkStatistics
from icecomb.format.rows.read.arrow_projection import FileField
from icecomb.format.spec.types import IcebergType
from icecomb.format.storage.file_io import FileIO


class DataFileReader(ABC):
    """An open data file: its fields, and its rows in groups that can be skipped.

    Args:
        io: Where the file lies.
        location: The file.
        size: The length its manifest states; a shorter file is refused.

    Attributes:
        fields: What stands in the file.
        row_count: How many rows its footer states; None for a format that has none.

    Raises:
        CorruptFileError: It is not a file of the format, or is shorter than stated.
        FileMissingError: There is no such file.
    """

    fields: tuple[FileField, ...]
    row_count: int | None = None
    _stated: int | None = None

    def __init__(self, io: FileIO, location: str, size: int | None = None) -> None:
        self.location = location
        self._source = io.open_input(location, size)
        actual = self._source.size()
        if size is not None and actual < size:
            raise CorruptFileError(
                f"Data file {location} has {actual} bytes, its manifest says {size}",
                hint="The file was cut; restore it, or remove it from the table.",
                path=location,
            )

    def close(self) -> None:
        """Close the file."""
        self._source.close()

    def expect_rows(self, stated: int) -> None:
        """Compare the file with what its manifest says: at once, or when all of it is read.

        Args:
            stated: How many rows; less than 0 for a number that its writer did not know.

        Raises:
            CorruptFileError: It has more or fewer.
        """
        self._stated = stated if stated >= 0 else None
        if self.row_count is not None:
            self._compare_rows(self.row_count)

    def _compare_rows(self, found: int) -> None:
        if self._stated not in {None, found}:
            raise other_count(self.location, found, self._stated)

    @abstractmethod
    def row_groups(self, start: int = 0, length: int | None = None) -> list[int]:
        """The groups of rows that belong to a range of bytes; each belongs to one range."""

    @abstractmethod
    def statistics(
        self, field_id: int, field_type: IcebergType
    ) -> Callable[[int], ChunkStatistics | None] | None:
        """The statistics of a column by group, None when it has no one value a row."""

    @abstractmethod
    def batches(
        self,
        columns: Sequence[int],
        row_groups: Sequence[int],
        batch_size: int,
        *,
        use_threads: bool = True,
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Read physical columns of some groups.

        Args:
            columns: Numbers of physical columns; none gives batches with rows and no columns.
            row_groups: Which groups, ascending.
            batch_size: The most rows a batch has.
            use_threads: Whether columns may be decoded in parallel.

        Yields:
            The number of a batch's first row in the file, and the batch.
        """


def other_count(location: str, found: int, stated: int | None) -> CorruptFileError:
    """The error for a file whose manifest states another number of rows."""
    return CorruptFileError(
        f"Data file {location} has {found} rows, its manifest says {stated}",
        hint="Find out which is right before the file is replaced: rows may be lost.",
        path=location,
    )


def empty_batches(
    position: int, rows: int, batch_size: int
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Batches that have rows but no columns."""
    for start in range(0, rows, batch_size):
        count = min(batch_size, rows - start)
        yield position + start, pa.record_batch([pa.nulls(count)], ["_"]).select([])


@contextmanager
def reading(location: str) -> Iterator[None]:
    """Name the file in errors of pyarrow; those for want of memory stay what they are."""
    try:
        yield
    except (IcecombError, MemoryError):
        raise
    except NotImplementedError as problem:
        raise UnsupportedError(
            f"Data file {location} has what cannot be read here: {problem}",
            hint="Rewrite it with the engine that wrote it.",
            path=location,
        ) from problem
    except (pa.ArrowException, OSError) as problem:
        # pyarrow says OSError, without a number, for bytes that make no sense too.
        failed = FileIOError if getattr(problem, "errno", None) else CorruptFileError
        raise failed(
            f"Cannot read data file {location}: {problem}",
            hint="Try again; if it fails again, restore the file or read an older snapshot.",
            path=location,
        ) from problem
