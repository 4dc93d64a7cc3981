"""The choice of columns that get a dictionary in a Parquet file, by a sample of their values.

Parquet writers build a dictionary for every column and abandon it once it is too large. That work
is wasted in each row group of each file, which is most of the cost of writing many partitions. A
sample shows in advance which columns have too many distinct values.
"""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.arrow.number_view import array_of
from icecomb.format.rows.parquet.column_path import parquet_paths
from icecomb.format.spec.types import NestedField

_SAMPLE_ROWS = 1 << 14
_FEWEST_ROWS = 1 << 10


def dictionary_columns(
    fields: tuple[NestedField, ...], batch: pa.RecordBatch, limit: int
) -> list[str]:
    """Return the Parquet paths of the columns that get a dictionary of at most `limit` bytes."""
    sample = batch
    if batch.num_rows > _SAMPLE_ROWS:
        rows = np.linspace(0, batch.num_rows - 1, _SAMPLE_ROWS).astype(np.int64)
        sample = batch.take(array_of(rows))
    chosen: list[str] = []
    for f, array in zip(fields, sample.columns, strict=True):
        if not f.field_type.is_primitive or _repeats(array, limit):
            chosen.extend(parquet_paths((f,)).values())
    return chosen


def _repeats(array: pa.Array, limit: int) -> bool:
    """Return whether a dictionary of all values would probably fit."""
    values = array.storage if isinstance(array, pa.ExtensionArray) else array
    rows = len(values) - values.null_count
    if rows < _FEWEST_ROWS:
        return True
    most = limit / max(values.nbytes / rows, 1)
    # The expected number of distinct values in the sample, if `most` are equally frequent.
    expected = most * -math.expm1(-rows / most)
    return bool(pc.count_distinct(values).as_py() <= expected)
