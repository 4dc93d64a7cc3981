"""The number of rows of a Parquet file to read at once, by the memory that they may take.

A footer does not tell it: a dictionary of one long value makes any number of long rows in a few
hundred bytes, and its stated sizes are what a writer says. So the first batch of columns without a
fixed width is small, and later ones grow with what was read; long values of a dictionary are looked
up before any row is made of them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import accumulate
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from icecomb.format.rows.parquet.compact_protocol import CompactError, read_struct

BATCH_BYTES: Final = 256 << 20
"""The most memory of a batch; its last rows may take more, if they are longer than those before."""
_FIRST_ROWS: Final = 1 << 12
_GROWTH: Final = 16
_WIDTHS: Final = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 8, "FLOAT": 4, "DOUBLE": 8}
"""Bytes of a value in Arrow by its physical type."""
_BYTE_ARRAY: Final = "BYTE_ARRAY"
_ROWS_A_BYTE: Final = 4
"""Rows that share few values take less than this; where many differ, none is looked up."""
_HEADER_BYTES: Final = 128
_PAGE_TYPE, _UNPACKED_SIZE, _PACKED_SIZE = 1, 2, 3
_DICTIONARY_PAGE: Final = 2
_BUFFER_BYTES: Final = 64 << 10


class BatchLimit:
    """How many rows of the next batch are read, which follows those read so far.

    Args:
        source: The file.
        metadata: Its footer.
        columns: Numbers of the physical columns that are read.
        row_groups: Numbers of the row groups that are read, ascending.
        most: The most rows of a batch.
        dictionaries: Paths of columns that are read dictionary-encoded, of any length of values.
        looks_ahead: Whether dictionaries are looked up; a remote file would be asked once more for
            each.
    """

    def __init__(
        self,
        source: pa.NativeFile,
        metadata: pq.FileMetaData,
        columns: Sequence[int],
        row_groups: Sequence[int],
        *,
        most: int,
        dictionaries: Collection[str] = (),
        looks_ahead: bool,
    ) -> None:
        self._source = source
        self._metadata = metadata
        schema = metadata.schema
        leaves = [(number, schema.column(number)) for number in columns]
        fixed: int = sum(_WIDTHS.get(leaf.physical_type, max(leaf.length, 0)) for _, leaf in leaves)
        self._most: int = max(min(most, BATCH_BYTES // max(fixed, 1)), 1)
        texts = [
            (number, leaf)
            for number, leaf in leaves
            if leaf.physical_type == _BYTE_ARRAY and leaf.path not in dictionaries
        ]
        self._varies = bool(texts) or any(leaf.max_repetition_level for _, leaf in leaves)
        self._rows = _FIRST_ROWS if self._varies else self._most
        self._looked_up = [
            (number, leaf.path) for number, leaf in texts if not leaf.max_repetition_level
        ]
        counts = (metadata.row_group(g).num_rows for g in range(metadata.num_row_groups))
        starts = [*accumulate(counts, initial=0)]
        ahead = row_groups if looks_ahead and self._looked_up else ()
        self._ahead = [(starts[group], group) for group in reversed(ahead)]
        self._encoded: pq.ParquetFile | None = None

    def at(self, position: int) -> int:
        """Return how many rows to read from a position in the file."""
        while self._ahead and self._ahead[-1][0] < position + min(self._rows, self._most):
            _, group = self._ahead.pop()
            if length := self._long_values(group):
                self._most = max(min(self._most, BATCH_BYTES // length), 1)
        return min(self._rows, self._most)

    def took(self, batch: pa.RecordBatch) -> None:
        """Note what the last batch took."""
        if self._varies and (rows := batch.num_rows):
            room: int = BATCH_BYTES * rows // max(batch.nbytes, 1)
            self._rows = max(min(self._rows * _GROWTH, room), 1)

    def _long_values(self, group: int) -> int:
        """Return the sum of the longest values of columns' dictionaries, if these are long."""
        rows = min(self._most, self._metadata.row_group(group).num_rows)
        chunks = self._metadata.row_group(group)
        found = 0
        for number, path in self._looked_up:
            chunk = chunks.column(number)
            size, packed = _dictionary_bytes(self._source, chunk)
            has_many = chunk.total_compressed_size - packed > rows // _ROWS_A_BYTE
            if has_many or (size is not None and size * rows <= BATCH_BYTES):
                continue
            length = self._longest(group, path)
            if length * rows > BATCH_BYTES:
                found += length
        return found

    def _longest(self, group: int, path: str) -> int:
        """Return the length of the longest value in a dictionary, which its first row reads."""
        if self._encoded is None:
            self._encoded = pq.ParquetFile(
                self._source,
                metadata=self._metadata,
                read_dictionary=[path for _, path in self._looked_up],
                buffer_size=_BUFFER_BYTES,
            )
        batches = self._encoded.iter_batches(1, [group], [path], use_threads=False)
        batch = next(batches, None)
        column = None if batch is None else batch.column(0)
        while isinstance(column, pa.StructArray):
            column = column.field(0)
        if not isinstance(column, pa.DictionaryArray):
            return 0
        return int(pc.max(pc.binary_length(column.dictionary)).as_py() or 0)


def _dictionary_bytes(
    source: pa.NativeFile, chunk: pq.ColumnChunkMetaData
) -> tuple[int | None, int]:
    """Return the size of a chunk's dictionary, None if it cannot be told, and that in the file."""
    start, dictionary = chunk.data_page_offset, chunk.dictionary_page_offset
    if dictionary and 0 < dictionary < start:
        start = dictionary
    try:
        header, _ = read_struct(source.read_at(_HEADER_BYTES, start))
        if header.get(_PAGE_TYPE) != _DICTIONARY_PAGE:
            return 0, 0
        packed = int(header[_PACKED_SIZE])
        return max(int(header[_UNPACKED_SIZE]), packed), packed
    except (CompactError, TypeError, ValueError):
        return None, 0
