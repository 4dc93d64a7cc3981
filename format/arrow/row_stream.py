"""Rows as the operations of a table take them: all at once, or batch by batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

import pyarrow as pa


class RowStream:
    """Batches that are read once, each with a schema of its own: columns go by name.

    A `RecordBatchReader` insists on one schema, down to the order of the columns.

    Args:
        schema: That of the first batch.
        batches: The batches.
    """

    def __init__(self, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
        self.schema = schema
        self._batches = iter(batches)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self._batches


GivenRows: TypeAlias = pa.Table | pa.RecordBatchReader | RowStream
"""A stream of either kind is read once."""
