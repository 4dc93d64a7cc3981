"""Stored values of Arrow arrays, without the meaning of their types, or without nulls."""

from __future__ import annotations

import pyarrow as pa


def internal_array(array: pa.Array) -> pa.Array:
    """Return the array with dates and times as stored numbers, and UUIDs as bytes."""
    kind = array.type
    if pa.types.is_date32(kind):
        return array.view(pa.int32())
    if pa.types.is_timestamp(kind) or pa.types.is_time64(kind):
        return array.view(pa.int64())
    return array.storage if kind == pa.uuid() else array


def without_nulls(array: pa.Array) -> pa.Array:
    """Return the values of an array of any type except nulls."""
    if not array.null_count:
        return array
    # Arrow cannot create an empty array of lists of UUIDs, but it can slice one.
    return array.slice(0, 0) if array.null_count == len(array) else array.drop_null()
