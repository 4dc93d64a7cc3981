"""Comparison of two columns by row: nulls equal each other here, and so do NaNs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Mask = npt.NDArray[np.bool_]


def differing(left: pa.Array, right: pa.Array) -> Mask:
    """Return a mask of the rows where two arrays of one type and length differ, at any depth.

    Lists and maps also differ if their elements are in a different order.
    """
    if isinstance(left, pa.ExtensionArray):
        return differing(left.storage, right.storage)
    null, other_null = _mask(left.is_null()), _mask(right.is_null())
    different: Mask = null != other_null
    both = ~(null | other_null)
    kind = left.type
    if pa.types.is_null(kind):
        return different
    if pa.types.is_struct(kind):
        for i in range(kind.num_fields):
            different |= both & differing(pc.struct_field(left, [i]), pc.struct_field(right, [i]))
        return different
    if pa.types.is_map(kind):
        return different | _in_lists(_entries(left), _entries(right), both)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return different | _in_lists(left, right, both)
    unequal = _mask(pc.fill_null(pc.not_equal(left, right), False))
    if pa.types.is_floating(kind):
        unequal &= ~(_mask(_nan(left)) & _mask(_nan(right)))
    return different | unequal


def _in_lists(left: pa.Array, right: pa.Array, both: Mask) -> Mask:
    length = _lengths(left)
    different: Mask = both & (length != _lengths(right))
    rows = np.flatnonzero(both & ~different & (length > 0))
    if len(rows):
        chosen = pa.array(rows)
        inside = differing(left.take(chosen).flatten(), right.take(chosen).flatten())
        starts = np.concatenate(([0], np.cumsum(length[rows])[:-1]))
        different[rows] = np.logical_or.reduceat(inside, starts)
    return different


def _lengths(array: pa.Array) -> npt.NDArray[np.int64]:
    return np.asarray(pc.list_value_length(array).fill_null(0)).astype(np.int64)


def _entries(array: pa.MapArray) -> pa.ListArray:
    """Convert a map to a list of its entries."""
    entries = pa.StructArray.from_arrays([array.keys, array.items], ["key", "value"])
    validity, offsets = array.buffers()[:2]
    return pa.Array.from_buffers(
        pa.list_(entries.type),
        len(array),
        [validity, offsets],
        array.null_count,
        array.offset,
        [entries],
    )


def _nan(array: pa.Array) -> pa.Array:
    return pc.is_nan(array).fill_null(False)


def _mask(array: pa.Array) -> Mask:
    return np.asarray(array.to_numpy(zero_copy_only=False), np.bool_)
