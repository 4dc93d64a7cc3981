"""Arrow integers as NumPy arrays, and grouping of rows by their values.

`Array.to_numpy` imports pandas, and Arrow's own grouping imports its data sets: that takes a
process longer than most of the work here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Longs = npt.NDArray[np.int64]


def numbers_of(integers: pa.Array) -> npt.NDArray[Any]:
    """Return integers without nulls as a view of Arrow's memory."""
    kind = np.dtype(f"i{integers.type.bit_width // 8}")
    if not len(integers):
        return np.empty(0, kind)
    start = integers.offset * kind.itemsize
    return np.frombuffer(integers.buffers()[1], kind, len(integers), start)


def array_of(numbers: npt.NDArray[np.integer[Any]]) -> pa.Int64Array:
    """Return numbers as an Arrow array, which shares the memory of those of 64 bits."""
    data = pa.py_buffer(np.ascontiguousarray(numbers, np.int64))
    return pa.Array.from_buffers(pa.int64(), len(numbers), [None, data])


def mask_of(truths: npt.NDArray[np.bool_]) -> pa.BooleanArray:
    """Return a NumPy array of bools as an Arrow array."""
    data = pa.py_buffer(np.packbits(truths, bitorder="little"))
    return pa.Array.from_buffers(pa.bool_(), len(truths), [None, data])


def truths_of(mask: pa.Array) -> npt.NDArray[np.bool_]:
    """Return an array of bools without nulls as a NumPy array."""
    if not len(mask):
        return np.empty(0, np.bool_)
    bits = np.frombuffer(mask.buffers()[1], np.uint8)
    found = np.unpackbits(bits, count=mask.offset + len(mask), bitorder="little")
    return found[mask.offset :].astype(np.bool_)


def group_numbers(columns: Sequence[pa.Array], length: int) -> tuple[Longs, Longs]:
    """Return the group number of each row, from 0, and the index of one row of each group.

    Nulls are equal to each other, and so are NaNs; without columns, all rows are one group.
    """
    codes = np.zeros(length, np.int64)
    for column in columns:
        if pa.types.is_null(column.type):
            continue
        encoded = column.dictionary_encode(null_encoding="encode")
        codes = codes * len(encoded.dictionary) + numbers_of(encoded.indices)
        # renumbered, so that they stay small enough to be multiplied
        codes = np.unique(codes, return_inverse=True)[1].astype(np.int64)
    _, first, numbers = np.unique(codes, return_index=True, return_inverse=True)
    return numbers.astype(np.int64), first.astype(np.int64)


def together(arrays: Sequence[pa.Array]) -> pa.Array:
    """Concatenate arrays; if their types differ, in a type that holds all."""
    tables = [pa.table([array], names=["values"]) for array in arrays]
    column = pa.concat_tables(tables, promote_options="permissive").column(0)
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)
