"""Integers of Arrow as numpy sees them, and rows put into groups by their values.

`Array.to_numpy` imports pandas, and Arrow's own grouping its data sets: that takes a process longer
than most of what is asked here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Longs = npt.NDArray[np.int64]


def numbers_of(integers: pa.Array) -> npt.NDArray[Any]:
    """Integers without nulls as a view of what Arrow holds."""
    kind = np.dtype(f"i{integers.type.bit_width // 8}")
    if not len(integers):
        return np.empty(0, kind)
    start = integers.offset * kind.itemsize
    return np.frombuffer(integers.buffers()[1], kind, len(integers), start)


def array_of(numbers: Longs) -> pa.Int64Array:
    """Numbers as a column, which keeps them and copies nothing."""
    data = pa.py_buffer(np.ascontiguousarray(numbers))
    return pa.Array.from_buffers(pa.int64(), len(numbers), [None, data])


def truths_of(mask: pa.Array) -> npt.NDArray[np.bool_]:
    """Truth values without nulls."""
    if not len(mask):
        return np.empty(0, np.bool_)
    bits = np.frombuffer(mask.buffers()[1], np.uint8)
    found = np.unpackbits(bits, count=mask.offset + len(mask), bitorder="little")
    return found[mask.offset :].astype(np.bool_)


def group_numbers(columns: Sequence[pa.Array], length: int) -> tuple[Longs, Longs]:
    """Rows with the same values get the same number; nulls are equal, and so are NaNs.

    Args:
        columns: What is compared, all of this length; none puts all rows into one group.
        length: How many rows there are.

    Returns:
        The number of each row, from 0 on; and of each group one of its rows.
    """
    codes = np.zeros(length, np.int64)
    for column in columns:
        if pa.types.is_null(column.type):
            continue
        encoded = column.dictionary_encode(null_encoding="encode")
        codes = codes * len(encoded.dictionary) + numbers_of(encoded.indices)
        # numbered anew, they stay small enough to be multiplied
        codes = np.unique(codes, return_inverse=True)[1].astype(np.int64)
    _, first, numbers = np.unique(codes, return_index=True, return_inverse=True)
    return numbers.astype(np.int64), first.astype(np.int64)


def together(arrays: Sequence[pa.Array]) -> pa.Array:
    """Arrays one after the other; where their types differ, in one that holds all."""
    tables = [pa.table([array], names=["values"]) for array in arrays]
    column = pa.concat_tables(tables, promote_options="permissive").column(0)
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)
