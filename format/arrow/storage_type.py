"""What Arrow arrays hold, without what their types or nulls add to it."""

from __future__ import annotations

import pyarrow as pa


def internal_array(array: pa.Array) -> pa.Array:
    """The array with dates and times as the numbers they are stored as, UUIDs as bytes."""
    kind = array.type
    if pa.types.is_date32(kind):
        return array.view(pa.int32())
    if pa.types.is_timestamp(kind) or pa.types.is_time64(kind):
        return array.view(pa.int64())
    return array.storage if kind == pa.uuid() else array


def without_nulls(array: pa.Array) -> pa.Array:
    """The values of an array of any type."""
    if not array.null_count:
        return array
    # Arrow cannot make an empty array of lists of UUIDs, but it can cut one off.
    return array.slice(0, 0) if array.null_count == len(array) else array.drop_null()
