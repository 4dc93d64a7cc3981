"""Rows of a table of many batches, selected batch by batch.

Arrow joins the chunks of a column before it takes or filters, and a text column holds 2 GiB.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icecomb.format.errors import ValidationError

_MOST_BYTES: Final = 1 << 29
"""About the size of rows that are taken at once."""

RowNumbers = npt.NDArray[np.int64]


def no_rows(schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch without rows; unlike `from_pylist`, of extension types in structs, too."""
    return pa.record_batch([pa.nulls(0, field.type) for field in schema], schema)


def take_rows(table: pa.Table, rows: RowNumbers) -> pa.RecordBatch:
    """Return rows of a table by their places, in the order of these, as one batch."""
    batches = table.to_batches()
    ends = np.cumsum([batch.num_rows for batch in batches])
    order = np.argsort(rows, kind="stable")
    ascending = rows[order]
    bounds = np.searchsorted(ascending, [0, *ends])
    found = []
    for batch, end, low, high in zip(batches, ends, bounds[:-1], bounds[1:], strict=True):
        if low < high:
            found.append(batch.take(pa.array(ascending[low:high] - (end - batch.num_rows))))
    if not found:
        return no_rows(table.schema)
    taken = found[0] if len(found) == 1 else pa.concat_batches(found)
    if (order[1:] > order[:-1]).all():
        return taken
    back = np.empty(len(order), np.int64)
    back[order] = np.arange(len(order))
    return taken.take(pa.array(back))


def rows_at_once(table: pa.Table, most: int) -> int:
    """Return how many rows of a table to take at once, at most ``most``, by their size."""
    return max(1, min(most, int(_MOST_BYTES * table.num_rows // max(1, table.nbytes))))


def whole_column(column: pa.ChunkedArray, name: str) -> pa.Array:
    """Return a column of keys as one array."""
    try:
        found = column.combine_chunks()
    except pa.ArrowInvalid as error:
        raise ValidationError(
            f"Key column {name!r} holds {column.nbytes:,} bytes, more than can be looked up at "
            f"once: {error}",
            hint="Give the rows in several parts.",
            column=name,
        ) from error
    return found if isinstance(found, pa.Array) else pa.concat_arrays(found.chunks)


def in_parts(table: pa.Table, rows: RowNumbers, most: int) -> Iterator[pa.RecordBatch]:
    """Yield rows of a table by their places, at most ``most`` at once, and by their size."""
    step = rows_at_once(table, most)
    for start in range(0, len(rows), step):
        yield take_rows(table, rows[start : start + step])
