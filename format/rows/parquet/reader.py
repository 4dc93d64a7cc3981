"""Parquet data files as record batches with their place in the file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as pq

from icecomb.format.errors import (
    CorruptFileError,
    FileIOError,
    IcecombError,
    UnsupportedError,
)
from icecomb.format.rows.parquet.statistics import ChunkStatistics, ColumnStatistics, leaves
from icecomb.format.rows.read.arrow_projection import FileField, file_fields
from icecomb.format.spec.name_mapping import NameMapping
from icecomb.format.spec.types import IcebergType
from icecomb.format.storage.file_io import FileIO


class ParquetReader:
    """An open Parquet file.

    Args:
        io: Where the file lies.
        location: The file.
        name_mapping: The table's name mapping, for a file without field ids.
        size: The length its manifest states; a shorter file is refused.
        dictionaries: Columns to read dictionary-encoded.

    Raises:
        CorruptFileError: It is not a Parquet file, or is shorter than stated.
        FileMissingError: There is no such file.
    """

    def __init__(
        self,
        io: FileIO,
        location: str,
        name_mapping: NameMapping | None = None,
        size: int | None = None,
        dictionaries: Sequence[str] = (),
    ) -> None:
        self.location = location
        self._source = io.open_input(location, size)
        actual = self._source.size()
        if size is not None and actual < size:
            raise CorruptFileError(
                f"Data file {location} has {actual} bytes, its manifest says {size}",
                hint="The file was cut; restore it, or remove it from the table.",
                path=location,
            )
        with reading(location):
            # INT96 counts nanoseconds, which overflow before 1677 and after 2262.
            footer = pq.read_metadata(self._source)
            # Far away, a row group is fetched in few large reads, at the price of its memory.
            self._buffered = not isinstance(self._source, pa.OSFile)
            present = set(footer.schema.names)
            self._file = pq.ParquetFile(
                self._source,
                metadata=footer,
                pre_buffer=self._buffered,
                coerce_int96_timestamp_unit="us",
                read_dictionary=[name for name in dictionaries if name in present],
            )
            schema = self._file.schema_arrow
        self.fields: tuple[FileField, ...] = file_fields(schema, name_mapping, location)

    @property
    def num_rows(self) -> int:
        """How many rows the file has."""
        return int(self._file.metadata.num_rows)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        self._source.close()

    def row_groups(self, start: int = 0, length: int | None = None) -> list[int]:
        """The row groups whose middle lies in a range of bytes, as parquet-mr splits files."""
        metadata = self._file.metadata
        if length is None:
            return list(range(metadata.num_row_groups))
        chosen = []
        for number in range(metadata.num_row_groups):
            group = metadata.row_group(number)
            columns = [group.column(i) for i in range(group.num_columns)]
            begin = columns[0].dictionary_page_offset or columns[0].data_page_offset
            middle = begin + sum(c.total_compressed_size for c in columns) // 2
            if start <= middle < start + length:
                chosen.append(number)
        return chosen

    def statistics(
        self, field_id: int, field_type: IcebergType
    ) -> Callable[[int], ChunkStatistics | None] | None:
        """The statistics of a column by row group, None when it has no one value a row."""
        for leaf in leaves(self.fields):
            if leaf.field.field_id == field_id and not leaf.repeated:
                return ColumnStatistics(self._file.metadata, leaf.index, field_type).chunk
        return None

    def batches(
        self,
        columns: Sequence[int],
        row_groups: Sequence[int],
        batch_size: int,
        *,
        use_threads: bool = True,
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Read physical columns of some row groups.

        Args:
            columns: Numbers of physical columns; none gives batches with rows and no columns.
            row_groups: Which row groups, ascending.
            batch_size: The most rows a batch has.
            use_threads: Whether columns are decoded in parallel.

        Yields:
            The number of a batch's first row in the file, and the batch.
        """
        metadata = self._file.metadata
        names = [metadata.schema.column(i).path for i in columns]
        first = 0
        starts = []
        for number in range(metadata.num_row_groups):
            starts.append(first)
            first += metadata.row_group(number).num_rows
        for run in ([g] for g in row_groups) if self._buffered else _runs(row_groups):
            position = starts[run[0]]
            if not names:
                rows = sum(metadata.row_group(g).num_rows for g in run)
                yield from empty_batches(position, rows, batch_size)
                continue
            with reading(self.location):
                batches = self._file.iter_batches(batch_size, run, names, use_threads=use_threads)
            while True:
                with reading(self.location):
                    batch = next(batches, None)
                if batch is None:
                    break
                yield position, batch
                position += batch.num_rows


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


def _runs(numbers: Sequence[int]) -> Iterator[list[int]]:
    """Consecutive numbers together."""
    run: list[int] = []
    for number in numbers:
        if run and number != run[-1] + 1:
            yield run
            run = []
        run.append(number)
    if run:
        yield run
