"""Rows in the forms that table operations accept: all at once, or batch by batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

import pyarrow as pa


class RowStream:
    """A stream of batches, read once, each with its own schema, unlike a `RecordBatchReader`."""

    def __init__(self, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
        self.schema = schema
        self._batches = iter(batches)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self._batches


GivenRows: TypeAlias = pa.Table | pa.RecordBatchReader | RowStream
"""Rows given to an operation; a stream of either kind is read once."""
