"""Reading of Parquet data files as record batches with their positions in the file."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from icecomb.format.errors import CorruptFileError, UnsupportedError
from icecomb.format.rows.parquet.batch_limit import BatchLimit
from icecomb.format.rows.parquet.footer_reading import check_footer_size
from icecomb.format.rows.read.data_file_reader import DataFileReader, empty_batches, reading
from icecomb.format.rows.values.arrow_projection import FileField, file_fields
from icecomb.format.rows.values.statistics import ChunkStatistics, ColumnStatistics, leaves
from icecomb.format.spec.name_mapping import NameMapping
from icecomb.format.spec.types import IcebergType
from icecomb.format.spec.values.temporal import NANOS_PER_MICRO
from icecomb.format.storage.file_io import FileIO

_SMALL_BYTES: Final = 1 << 20


class ParquetReader(DataFileReader):
    """An open Parquet file.

    Args:
        size: The length that its manifest states, in bytes; a shorter file is rejected.
        dictionaries: Names of columns to read dictionary-encoded.
        checksums: Whether to verify the pages that have a checksum.
        nanoseconds: Ids of top-level columns whose INT96 timestamps are read in nanoseconds.
    """

    def __init__(
        self,
        io: FileIO,
        location: str,
        name_mapping: NameMapping | None = None,
        size: int | None = None,
        dictionaries: Sequence[str] = (),
        *,
        checksums: bool = False,
        nanoseconds: Collection[int] = (),
    ) -> None:
        super().__init__(io, location, size)
        with reading(location):
            # Remote row groups are fetched in few large reads, at the price of memory.
            self._buffered = not isinstance(self._source, pa.OSFile)
            if not self._buffered:  # only local files can be sparse
                check_footer_size(self._source, location)
            # INT96 counts nanoseconds, which overflow before 1677 and after 2262.
            footer = pq.read_metadata(self._source) if dictionaries else None
            present = set() if footer is None else set(footer.schema.names)
            self._file = pq.ParquetFile(
                self._source,
                metadata=footer,
                pre_buffer=self._buffered,
                coerce_int96_timestamp_unit="us",
                page_checksum_verification=checksums,
                read_dictionary=[name for name in dictionaries if name in present],
            )
            self._dictionaries = present.intersection(dictionaries)
            schema = self._file.schema_arrow
            self.row_count = self._file.metadata.num_rows
        self.fields: tuple[FileField, ...] = file_fields(schema, name_mapping, location)
        self._fine: Int96Nanoseconds | None = None
        if nanoseconds:
            self._read_nanoseconds(nanoseconds)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        self._source.close()

    def _read_nanoseconds(self, wanted: Collection[int]) -> None:
        metadata, columns = self._file.metadata, self._file.metadata.schema
        names = [
            f.name
            for f in self.fields
            if f.field_id in wanted
            and not f.children
            and columns.column(f.leaves[0]).physical_type == "INT96"
        ]
        if names:
            kind = pa.timestamp("ns")
            self._fine = Int96Nanoseconds(self._source, self.location, metadata, names)
            self.fields = tuple(
                replace(f, arrow_type=kind) if f.name in names else f for f in self.fields
            )

    @property
    def notes(self) -> dict[str, str]:
        """The texts of the footer by their keys."""
        found = self._file.metadata.metadata or {}
        return {
            key.decode(errors="replace"): value.decode(errors="replace")
            for key, value in found.items()
        }

    def row_groups(self, start: int = 0, length: int | None = None) -> list[int]:
        """Return the row groups whose middle is in a range of bytes, as parquet-mr splits."""
        metadata = self._file.metadata
        if length is None:
            return list(range(metadata.num_row_groups))
        chosen = []
        for number in range(metadata.num_row_groups):
            group = metadata.row_group(number)
            columns = [group.column(i) for i in range(group.num_columns)]
            begin = columns[0].dictionary_page_offset or columns[0].data_page_offset
            middle = begin + sum(max(c.total_compressed_size, 0) for c in columns) // 2
            if start <= middle < start + length:
                chosen.append(number)
        return chosen

    def statistics(
        self, field_id: int, field_type: IcebergType
    ) -> Callable[[int], ChunkStatistics | None] | None:
        """Return a function for a column's statistics by group; None for repeated columns."""
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
        """Read physical columns of row groups; see `DataFileReader.batches`."""
        metadata = self._file.metadata
        names = [metadata.schema.column(i).path for i in columns]
        first = 0
        starts = []
        for number in range(metadata.num_row_groups):
            starts.append(first)
            first += metadata.row_group(number).num_rows
        with reading(self.location):
            rows = BatchLimit(
                self._source,
                metadata,
                columns,
                row_groups,
                most=batch_size,
                dictionaries=self._dictionaries,
                looks_ahead=not self._buffered,
            )
        for run in ([g] for g in row_groups) if self._buffered else _runs(row_groups):
            position = starts[run[0]]
            if not names:
                count = sum(metadata.row_group(g).num_rows for g in run)
                yield from empty_batches(position, count, batch_size)
                continue
            # Handing a small piece to other threads takes longer than decoding it.
            size = sum(metadata.row_group(g).total_byte_size for g in run)
            threads = use_threads and size > _SMALL_BYTES
            with reading(self.location):
                batches = self._file.iter_batches(
                    rows.at(position), run, names, use_threads=threads
                )
            if self._fine is not None:
                batches = self._fine.joined(batches, run, names)
            while True:
                with reading(self.location):
                    self._file.reader.set_batch_size(rows.at(position))
                    batch = next(batches, None)
                if batch is None:
                    break
                rows.took(batch)
                yield position, batch
                position += batch.num_rows
            expected = starts[run[-1]] + metadata.row_group(run[-1]).num_rows
            if position != expected:
                raise CorruptFileError(
                    f"Data file {self.location} has {expected} rows up to row group {run[-1]}, "
                    f"but only {position} can be read",
                    hint="Rewrite it with the engine that wrote it, or read other columns of it.",
                    path=self.location,
                )


def _runs(numbers: Sequence[int]) -> Iterator[list[int]]:
    """Group consecutive numbers."""
    run: list[int] = []
    for number in numbers:
        if run and number != run[-1] + 1:
            yield run
            run = []
        run.append(number)
    if run:
        yield run


class Int96Nanoseconds:
    """A second reader of the INT96 columns of a Parquet file, which keeps their nanoseconds.

    Arrow's values wrap around beyond the range of nanoseconds, so that they are compared with those
    in microseconds.
    """

    def __init__(
        self, source: pa.NativeFile, location: str, metadata: pq.FileMetaData, names: Sequence[str]
    ) -> None:
        self._location = location
        self._names = frozenset(names)
        self._file = pq.ParquetFile(source, metadata=metadata, coerce_int96_timestamp_unit="ns")

    def joined(
        self, batches: Iterator[pa.RecordBatch], row_groups: list[int], names: list[str]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the batches of the first reader with these columns in nanoseconds."""
        own = [name for name in names if name in self._names]
        if not own:
            yield from batches
            return
        others: Iterator[pa.RecordBatch] | None = None
        for batch in batches:
            with reading(self._location):
                if others is None:
                    others = self._file.iter_batches(
                        batch.num_rows, row_groups, own, use_threads=False
                    )
                self._file.reader.set_batch_size(batch.num_rows)
                other = next(others)
            yield pa.RecordBatch.from_arrays(
                [
                    self._checked(name, other.column(name), array) if name in own else array
                    for name, array in zip(batch.schema.names, batch.columns, strict=True)
                ],
                batch.schema.names,
            )

    def _checked(self, name: str, fine: pa.Array, coarse: pa.Array) -> pa.Array:
        pair = (pc.fill_null(each.cast(pa.int64()), 0).to_numpy() for each in (fine, coarse))
        nanoseconds, microseconds = pair
        if np.array_equal(nanoseconds // NANOS_PER_MICRO, microseconds):
            return fine
        raise UnsupportedError(
            f"Column {name!r} of data file {self._location} has times that nanoseconds cannot "
            "hold: they reach from 1677-09-21 to 2262-04-11",
            hint="Rewrite the file, or make the column a timestamp of microseconds.",
            path=self._location,
            column=name,
        )
