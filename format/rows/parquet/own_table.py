"""Parquet files of icecomb's own in memory, which somebody else may have exchanged.

A dictionary of one value makes any number of long rows of a few hundred bytes: they are counted
before they are made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from icecomb.format.input_limit import UNPACKED, unpacked_bytes

_ROWS_A_BYTE: Final = 16
"""More than the rows of a byte where each names another file, which are two at most."""
_ROW_BYTES: Final = 64
"""About the memory of a row besides its texts."""


class OwnTable:
    """The rows of such a file.

    Args:
        data: The whole file.
        schema: Its columns: numbers, texts and bytes.
        nulls: Whether there may be nulls.

    Attributes:
        facts: The key-value metadata of its schema.

    Raises:
        ValueError: If it is not Parquet, has other columns, or more rows than its bytes or the
            limit `UNPACKED` allow.
    """

    def __init__(self, data: bytes, schema: pa.Schema, *, nulls: bool = True) -> None:
        kinds = zip(schema.names, schema.types, strict=True)
        texts = [name for name, kind in kinds if kind in (pa.string(), pa.binary())]
        try:
            footer = pq.read_metadata(pa.BufferReader(data))
            found = footer.schema.to_arrow_schema()
            if not found.equals(schema):
                raise ValueError(f"it has the columns {', '.join(found.names)}")
            self._file = pq.ParquetFile(
                pa.BufferReader(data), metadata=footer, read_dictionary=texts
            )
        except (pa.ArrowException, OSError, MemoryError) as error:
            raise ValueError(str(error)) from error
        self.facts: Mapping[bytes, bytes] = found.metadata or {}
        self._schema = schema
        self._nulls = nulls
        groups = range(footer.num_row_groups)
        rows = sum(footer.row_group(number).num_rows for number in groups)
        if rows > len(data) * _ROWS_A_BYTE:
            raise ValueError(f"it states {rows} rows in {len(data)} bytes")
        self._room = unpacked_bytes() - rows * _ROW_BYTES
        self._check(0)

    def batches(self, size: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows.

        Args:
            size: The most rows of a batch.

        Raises:
            ValueError: If they cannot be read, or take more memory than `UNPACKED`.
        """
        batches = self._file.iter_batches(size, use_threads=False)
        while True:
            try:
                batch = next(batches, None)
            except (pa.ArrowException, OSError, MemoryError) as error:
                raise ValueError(str(error)) from error
            if batch is None:
                return
            if not self._nulls and any(column.null_count for column in batch.columns):
                raise ValueError("it has a null")
            try:
                columns = [self._decoded(one) for one in batch.columns]
            except pa.ArrowException as error:  # an index beyond its dictionary
                raise ValueError(str(error)) from error
            yield pa.record_batch(columns, self._schema)

    def _decoded(self, array: pa.Array) -> pa.Array:
        if not isinstance(array, pa.DictionaryArray):
            return array
        lengths = pc.binary_length(array.dictionary).cast(pa.int64())
        self._check(pc.sum(lengths.take(array.indices)).as_py() or 0)
        return array.dictionary_decode()

    def _check(self, more: int) -> None:
        self._room -= more
        if self._room < 0:
            raise ValueError(f"its rows take more memory than the limit ({UNPACKED})")
