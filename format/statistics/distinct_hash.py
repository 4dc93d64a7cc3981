"""Hashes of values for theta sketches, as every library of Apache DataSketches computes them.

A value is hashed as its bytes in the single-value serialization (Puffin specification). Numbers are
hashed as whole arrays; text, bytes and long decimals once per distinct value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import mmh3
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icecomb.format.arrow.number_view import numbers_of, truths_of
from icecomb.format.arrow.plain_layout import plain_array
from icecomb.format.spec.single_value import to_bytes
from icecomb.format.spec.types import BooleanType, DecimalType, StringType

if TYPE_CHECKING:
    from icecomb.format.spec.types import PrimitiveType

Hashes = npt.NDArray[np.uint64]

SEED: Final = 9001
"""The default seed of Apache DataSketches, which the Puffin specification asks for."""
_LONG_DIGITS: Final = 18
"""The most digits of a decimal whose unscaled value is a whole number of 64 bits."""
_C1: Final = np.uint64(0x87C37B91114253D5)
_C2: Final = np.uint64(0x4CF5AD432745937F)
_F1: Final = np.uint64(0xFF51AFD7ED558CCD)
_F2: Final = np.uint64(0xC4CEB9FE1A85EC53)


def distinct_hashes(values: pa.Array, field_type: PrimitiveType) -> Hashes:
    """Return the hashes of values, of 63 bits; some may be there several times.

    Nulls have none, and neither has empty text or a value of no bytes: DataSketches leaves them
    out. Values are in the Arrow type of the Iceberg type.
    """
    array = plain_array(values.drop_null())
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    kind = array.type
    if pa.types.is_null(kind) or not len(array):
        return np.empty(0, np.uint64)
    if isinstance(field_type, BooleanType):
        hashes = _hashes(truths_of(array).astype(np.uint64), 1)
    elif isinstance(field_type, DecimalType):
        hashes = _decimal_hashes(array, field_type)
    elif pa.types.is_primitive(kind) and kind.bit_width in {32, 64}:
        numbers = numbers_of(array.view(pa.int32() if kind.bit_width == 32 else pa.int64()))
        hashes = _hashes(_unsigned(numbers), kind.bit_width // 8)
    else:
        if isinstance(field_type, StringType):
            array = array.cast(pa.large_binary() if pa.types.is_large_string(kind) else pa.binary())
        hashes = _byte_hashes(array.unique().to_pylist())
    halved = hashes >> np.uint64(1)
    found: Hashes = halved[halved != 0]
    return found


def _decimal_hashes(array: pa.Array, field_type: DecimalType) -> Hashes:
    if field_type.precision > _LONG_DIGITS:
        values = array.unique().to_pylist()
        return _byte_hashes([to_bytes(field_type, value) for value in values])
    size = 16
    words = np.frombuffer(array.buffers()[1], np.int64, 2 * len(array), size * array.offset)
    unscaled = words[::2]
    found = np.empty(len(unscaled), np.uint64)
    # as few bytes as hold the number and its sign, the highest first
    done = np.zeros(len(unscaled), np.bool_)
    for width in range(1, 9):
        limit = 1 << (8 * width - 1)
        fits = ~done & (unscaled >= -limit) & (unscaled <= limit - 1)
        if fits.any():
            highest_first = _unsigned(unscaled[fits]).byteswap()
            found[fits] = _hashes(highest_first >> np.uint64(64 - 8 * width), width)
            done |= fits
    return found


def _unsigned(numbers: npt.NDArray[np.signedinteger]) -> Hashes:
    """Return the bits of whole numbers of 32 or 64 bits."""
    bits: Hashes = numbers.view(f"u{numbers.dtype.itemsize}").astype(np.uint64)
    return bits


def _byte_hashes(values: list[bytes]) -> Hashes:
    found = [mmh3.hash64(value, SEED, signed=False)[0] for value in values if value]
    return np.array(found, np.uint64)


def _hashes(words: Hashes, width: int) -> Hashes:
    """Return the first half of MurmurHash3_x64_128 of values of at most 8 bytes.

    The first of a value's `width` bytes is in the lowest bits of its word.
    """
    mixed = _rotated(words * _C1) * _C2
    first = mixed ^ np.uint64(SEED ^ width)
    second = np.uint64(SEED ^ width)
    first = first + second
    second = first + second
    return _final(first) + _final(second)


def _rotated(words: Hashes) -> Hashes:
    rotated: Hashes = (words << np.uint64(31)) | (words >> np.uint64(33))
    return rotated


def _final(words: Hashes) -> Hashes:
    for factor in (_F1, _F2):
        words = (words ^ (words >> np.uint64(33))) * factor
    mixed: Hashes = words ^ (words >> np.uint64(33))
    return mixed
