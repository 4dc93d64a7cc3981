"""Lookup of a column's known values: built once, then used for batch after batch.

Arrow's own lookups build their hash table at every call, which for many known values costs more
than reading the rows. Here values become 64-bit numbers, a table of flags rules out nearly all
rows without a known value, and the few that remain are looked up exactly.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Codes = npt.NDArray[np.int64]

_SPREAD = np.uint64(0x9E3779B97F4A7C15)
"""2^64 over the golden ratio: the upper bits of a product with it differ for near numbers."""
_SLOTS_PER_VALUE = 32
_MOST_SLOT_BITS = 27


class ValueCodes:
    """A mapping of known, distinct values, of which one may be null, to numbers."""

    def __init__(self, values: pa.Array) -> None:
        self._values = values
        self.count = len(values)
        """The number of values; their codes are less than this."""
        numbers = _numbers(values)
        self._exact = _is_number(values.type)
        self._indexed = numbers is not None
        self.nbytes: int = values.nbytes
        """The memory used, in bytes."""
        if numbers is None:
            return
        valid = np.asarray(values.is_valid())
        self._null = -1 if valid.all() else int(np.flatnonzero(~valid)[0])
        codes = np.flatnonzero(valid)
        order = np.argsort(numbers[codes], kind="stable")
        self._codes = codes[order]
        self._known = numbers[self._codes]
        if len(np.unique(self._known)) < len(self._known):
            self._indexed = False  # two values have one hash
            return
        bits = min(max(int(self.count * _SLOTS_PER_VALUE).bit_length(), 10), _MOST_SLOT_BITS)
        self._shift = np.uint64(64 - bits)
        self._slots = np.zeros(1 << bits, np.bool_)
        self._slots[self._slot(self._known)] = True
        self.nbytes += self._known.nbytes + self._codes.nbytes + self._slots.nbytes

    def of(self, array: pa.Array) -> Codes:
        """Return the number of each value of the same type; -1 for unknown values."""
        numbers = _numbers(array) if self._indexed else None
        if numbers is None:
            found = pc.index_in(array, value_set=self._values).fill_null(-1)
            return np.asarray(found).astype(np.int64)
        out = np.full(len(array), -1, np.int64)
        rows = np.flatnonzero(self._slots[self._slot(numbers)])
        if len(self._known) and len(rows):
            places = np.minimum(np.searchsorted(self._known, numbers[rows]), len(self._known) - 1)
            same = self._known[places] == numbers[rows]
            rows, codes = rows[same], self._codes[places[same]]
            if not self._exact and len(rows):
                equal = pc.equal(array.take(pa.array(rows)), self._values.take(pa.array(codes)))
                same = np.asarray(equal.fill_null(False))
                rows, codes = rows[same], codes[same]
            out[rows] = codes
        if array.null_count:
            out[np.asarray(array.is_null())] = self._null
        return out

    def _slot(self, numbers: Codes) -> npt.NDArray[np.uint64]:
        slots: npt.NDArray[np.uint64] = (numbers.view(np.uint64) * _SPREAD) >> self._shift
        return slots


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_signed_integer(kind) or pa.types.is_temporal(kind))


def _numbers(array: pa.Array) -> Codes | None:
    """Return a number for each value, equal for equal values; None for unsupported types."""
    kind = array.type
    if _is_number(kind):
        filled = array if pa.types.is_signed_integer(kind) else array.view(_integer(kind))
        if filled.null_count:
            filled = filled.fill_null(0)
        return np.asarray(filled).astype(np.int64, copy=False)
    if pa.types.is_fixed_size_binary(kind):
        array, kind = array.cast(pa.binary()), pa.binary()
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        import polars as pl

        hashes = pl.Series(array).hash().to_numpy()
        return np.ascontiguousarray(hashes).view(np.int64)
    return None


def _integer(kind: pa.DataType) -> pa.DataType:
    return pa.int32() if kind.bit_width == 32 else pa.int64()
