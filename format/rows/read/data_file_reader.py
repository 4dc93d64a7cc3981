"""The common base of the readers of all file formats."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import pyarrow as pa

from icecomb.format.errors import CorruptFileError, FileIOError, IcecombError, UnsupportedError
from icecomb.format.rows.values.arrow_projection import FileField
from icecomb.format.rows.values.statistics import ChunkStatistics
from icecomb.format.spec.types import IcebergType
from icecomb.format.storage.file_io import FileIO

_TWO_LEVELS: Final = "LIST-annotated groups must not be repeated"


class DataFileReader(ABC):
    """An open data file: its fields, and its rows in groups that can be skipped.

    A file shorter than `size`, the bytes that its manifest states, is rejected. `row_count` is the
    one in the footer; None for a format without one.
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
        """Check the manifest's row count, now or after all of the file; negative if unknown."""
        self._stated = stated if stated >= 0 else None
        if self.row_count is not None:
            self._compare_rows(self.row_count)

    def _compare_rows(self, found: int) -> None:
        if self._stated not in {None, found}:
            raise other_count(self.location, found, self._stated)

    @abstractmethod
    def row_groups(self, start: int = 0, length: int | None = None) -> list[int]:
        """Return the row groups that belong to a range of bytes; each belongs to one range."""

    @abstractmethod
    def statistics(
        self, field_id: int, field_type: IcebergType
    ) -> Callable[[int], ChunkStatistics | None] | None:
        """Return a function for a column's statistics by group; None for repeated columns."""

    @abstractmethod
    def batches(
        self,
        columns: Sequence[int],
        row_groups: Sequence[int],
        batch_size: int,
        *,
        use_threads: bool = True,
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield batches of row groups, each with the number of its first row in the file.

        Args:
            columns: Numbers of physical columns; without any, batches have rows but no columns.
            row_groups: Numbers of the row groups, ascending.
        """


def other_count(location: str, found: int, stated: int | None) -> CorruptFileError:
    """Return the error for a file whose manifest states another number of rows."""
    return CorruptFileError(
        f"Data file {location} has {found} rows, its manifest says {stated}",
        hint="Find out which is right before the file is replaced: rows may be lost.",
        path=location,
    )


def empty_batches(
    position: int, rows: int, batch_size: int
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield batches that have rows but no columns."""
    for start in range(0, rows, batch_size):
        count = min(batch_size, rows - start)
        yield position + start, pa.record_batch([pa.nulls(count)], ["_"]).select([])


class TwoLevelListError(UnsupportedError):
    """A sound Parquet file with lists of lists in an old form that pyarrow does not read."""


@contextmanager
def reading(location: str) -> Iterator[None]:
    """Name the file in errors of pyarrow, except for those of memory."""
    try:
        yield
    except (IcecombError, MemoryError):
        raise
    except NotImplementedError as problem:
        raise UnsupportedError(
            f"Data file {location} has content that cannot be read: {problem}",
            hint="Rewrite it with the engine that wrote it.",
            path=location,
        ) from problem
    except (pa.ArrowException, OSError, UnicodeDecodeError) as problem:
        if _TWO_LEVELS in str(problem):
            raise TwoLevelListError(
                f"Data file {location} has lists of lists in Parquet's old form of two levels, "
                "which cannot be read here",
                hint="The file is sound: copy its rows by Spark, with "
                "spark.sql.parquet.writeLegacyFormat=false, or by Hive.",
                path=location,
            ) from problem
        # pyarrow raises OSError for invalid bytes, too, but without an errno; the last one is that
        # of names of columns.
        failed = FileIOError if getattr(problem, "errno", None) else CorruptFileError
        raise failed(
            f"Cannot read data file {location}: {problem}",
            hint="Try again; if it fails again, restore the file or read an older snapshot.",
            path=location,
        ) from problem
