"""Which columns of a Parquet file get a dictionary, by a sample of their values.

Parquet writers build a dictionary for every column and give it up once it is too large. In each
row group of each file that work is lost again, which is most of the cost of writing many
partitions. A sample tells beforehand which columns have too many different values.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.types import IcebergType, ListType, MapType, NestedField, StructType

_SAMPLE_ROWS = 1 << 14
_FEWEST_ROWS = 1 << 10


def dictionary_columns(
    fields: tuple[NestedField, ...], batch: pa.RecordBatch, limit: int
) -> list[str]:
    """The Parquet paths of the columns that get a dictionary.

    Args:
        fields: The table's columns.
        batch: Rows to sample, in the columns' order.
        limit: How many bytes a dictionary may have.
    """
    sample = batch
    if batch.num_rows > _SAMPLE_ROWS:
        sample = batch.take(pa.array(np.linspace(0, batch.num_rows - 1, _SAMPLE_ROWS).astype(int)))
    chosen: list[str] = []
    for f, array in zip(fields, sample.columns, strict=True):
        if not f.field_type.is_primitive or _repeats(array, limit):
            chosen.extend(_paths(f.field_type, f.name))
    return chosen


def _repeats(array: pa.Array, limit: int) -> bool:
    """Whether a dictionary of all values would probably fit."""
    values = array.storage if isinstance(array, pa.ExtensionArray) else array
    rows = len(values) - values.null_count
    if rows < _FEWEST_ROWS:
        return True
    most = limit / max(values.nbytes / rows, 1)
    # Of `most` equally frequent values, so many different ones are expected among the sample.
    expected = most * -math.expm1(-rows / most)
    return bool(pc.count_distinct(values).as_py() <= expected)


def _paths(kind: IcebergType, path: str) -> Iterator[str]:
    if isinstance(kind, StructType):
        for f in kind.fields:
            yield from _paths(f.field_type, f"{path}.{f.name}")
    elif isinstance(kind, ListType):
        yield from _paths(kind.element_type, f"{path}.list.element")
    elif isinstance(kind, MapType):
        yield from _paths(kind.key_type, f"{path}.key_value.key")
        yield from _paths(kind.value_type, f"{path}.key_value.value")
    else:
        yield path
