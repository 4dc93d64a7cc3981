"""Encoder of Arrow columns as Avro records: whole arrays at a time, no Python code per row.

Avro stores rows, value after value. Here every column becomes *ragged bytes*: the encoded bytes of
all its values and the length of each; columns are then interleaved row by row (Avro specification:
Binary Encoding; spec: Appendix A, Avro).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.arrow.array_build import scalar
from icecomb.format.arrow.number_view import numbers_of, truths_of
from icecomb.format.arrow.plain_layout import internal_array, without_nulls
from icecomb.format.avro.schema import decimal_size, is_null_first
from icecomb.format.errors import UnsupportedError
from icecomb.format.spec.types import (
    TIMESTAMP_TYPES,
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimeType,
    UnknownType,
    UUIDType,
    VariantType,
)

Bytes: TypeAlias = npt.NDArray[np.uint8]
Counts: TypeAlias = npt.NDArray[np.int64]

_NOTHING = scalar(b"", pa.large_binary())
_NUMBERS = (IntegerType, LongType, DateType, TimeType, *TIMESTAMP_TYPES)


@dataclass(frozen=True, slots=True)
class Ragged:
    """The concatenated bytes of several values, and the number of bytes of each."""

    lengths: Counts
    data: Bytes

    def array(self) -> pa.LargeBinaryArray:
        """Return the values as an Arrow array."""
        offsets = np.zeros(len(self.lengths) + 1, np.int64)
        np.cumsum(self.lengths, out=offsets[1:])
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(self.data)]
        return pa.Array.from_buffers(pa.large_binary(), len(self.lengths), buffers)


def encode_rows(fields: Iterable[NestedField], columns: Iterable[pa.Array], rows: int) -> Ragged:
    """Encode rows as Avro records; optional fields are unions, see `schema.is_null_first`.

    The columns have the Arrow types of `arrow.type_to_pyarrow` or their large variants; a map may
    be a list of key-value structs.
    """
    return _woven([_field(f, c) for f, c in zip(fields, columns, strict=True)], rows)


def _field(field: NestedField, array: pa.Array) -> Ragged:
    if field.required:
        return _value(field.field_type, array)
    if isinstance(field.field_type, UnknownType):
        return Ragged(np.zeros(len(array), np.int64), np.empty(0, np.uint8))
    return _optional(field.field_type, array, null_first=is_null_first(field))


def _optional(kind: IcebergType, array: pa.Array, *, null_first: bool) -> Ragged:
    """Encode each value after the index of its branch: 0, or 1 (zigzag: 2)."""
    rows = len(array)
    null, some = (0, 2) if null_first else (2, 0)
    if array.null_count == rows:
        return _fixed(np.full(rows, null, np.uint8), 1)
    if not array.null_count:
        branch = Ragged(np.ones(rows, np.int64), np.full(rows, some, np.uint8))
        return _woven([branch, _value(kind, array)], rows)
    valid = truths_of(array.is_valid())
    present = _value(kind, without_nulls(array))
    lengths = np.zeros(rows, np.int64)
    lengths[valid] = present.lengths
    branches = np.where(valid, some, null).astype(np.uint8)
    branch = Ragged(np.ones(rows, np.int64), branches)
    return _woven([branch, Ragged(lengths, present.data)], rows)


def _value(kind: IcebergType, array: pa.Array) -> Ragged:
    """Encode values without nulls."""
    if isinstance(kind, _NUMBERS):
        return _varints(numbers_of(internal_array(array)).astype(np.int64))
    if isinstance(kind, FloatType | DoubleType):
        width = 4 if isinstance(kind, FloatType) else 8
        return _fixed(_fixed_bytes(array), width)
    if isinstance(kind, BooleanType):
        return _fixed(_fixed_bytes(array.cast(pa.uint8())), 1)
    if isinstance(kind, StringType | BinaryType):
        return _text(array)
    if isinstance(kind, FixedType | UUIDType):
        storage = internal_array(array)
        return _fixed(_fixed_bytes(storage), storage.type.byte_width)
    if isinstance(kind, DecimalType):
        # Avro has the highest byte first, and no more bytes than the precision needs.
        size = decimal_size(kind.precision)
        digits = _fixed_bytes(array).reshape(-1, 16)[:, :size][:, ::-1]
        return _fixed(np.ascontiguousarray(digits).reshape(-1), size)
    if isinstance(kind, StructType):
        parts = [_field(f, array.field(i)) for i, f in enumerate(kind.fields)]
        return _woven(parts, len(array))
    if isinstance(kind, VariantType):
        return _woven([_text(array.field(i)) for i in range(2)], len(array))
    if isinstance(kind, ListType):
        return _blocks(_counts(array), _field(kind.element_field, array.flatten()))
    if isinstance(kind, MapType):
        return _blocks(_counts(array), _entries(kind, array))
    raise UnsupportedError(
        f"Type {kind} cannot be written to Avro",
        hint="Leave this column out of what is written as Avro.",
    )


def _entries(kind: MapType, array: Any) -> Ragged:
    begin, end = array.offsets[0].as_py(), array.offsets[-1].as_py()
    if pa.types.is_map(array.type):
        keys, items = array.keys, array.items
    else:
        keys, items = array.values.field("key"), array.values.field("value")
    parts = [
        _field(kind.key_field, keys.slice(begin, end - begin)),
        _field(kind.value_field, items.slice(begin, end - begin)),
    ]
    return _woven(parts, end - begin)


def _counts(array: Any) -> Counts:
    offsets: Counts = numbers_of(array.offsets).astype(np.int64)
    return offsets[1:] - offsets[:-1]


def _blocks(counts: Counts, items: Ragged) -> Ragged:
    """Encode each array as a block of its count, items and a zero; an empty one as a zero."""
    rows = len(counts)
    ends = np.concatenate(([0], np.cumsum(items.lengths)))
    borders = np.concatenate(([0], np.cumsum(counts)))
    numbers = _varints(counts[counts > 0])
    number_lengths = np.zeros(rows, np.int64)
    number_lengths[counts > 0] = numbers.lengths
    grouped = Ragged(ends[borders[1:]] - ends[borders[:-1]], items.data)
    return _woven(
        [
            Ragged(number_lengths, numbers.data),
            grouped,
            Ragged(np.ones(rows, np.int64), np.zeros(rows, np.uint8)),
        ],
        rows,
    )


def _text(array: pa.Array) -> Ragged:
    lengths = numbers_of(pc.binary_length(array)).astype(np.int64)
    large = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    _, offsets, content = array.buffers()
    places = np.frombuffer(offsets, np.int64 if large else np.int32)
    begin = int(places[array.offset]) if len(array) else 0
    data = np.frombuffer(content, np.uint8) if content is not None else np.empty(0, np.uint8)
    used = data[begin : begin + int(lengths.sum())]
    return _woven([_varints(lengths), Ragged(lengths, used)], len(array))


def _fixed_bytes(array: pa.Array) -> Bytes:
    width = array.type.bit_width // 8
    if not len(array):
        return np.empty(0, np.uint8)
    data = np.frombuffer(array.buffers()[1], np.uint8)
    return data[array.offset * width : (array.offset + len(array)) * width]


def _fixed(data: Bytes, width: int) -> Ragged:
    return Ragged(np.full(len(data) // max(width, 1), width, np.int64), data)


def _varints(values: npt.NDArray[np.int64]) -> Ragged:
    """Encode integers: zigzag, seven bits per byte, the lowest first."""
    bits = ((values << 1) ^ (values >> 63)).view(np.uint64)
    most = int(bits.max()) if len(bits) else 0
    width = max((most.bit_length() + 6) // 7, 1)
    lengths = np.ones(len(bits), np.int64)
    table = np.empty((len(bits), width), np.uint8)
    for place in range(width):
        rest = bits >> np.uint64(7 * place)
        more = rest > np.uint64(0x7F)
        table[:, place] = (rest & np.uint64(0x7F)).astype(np.uint8) | (more * np.uint8(0x80))
        lengths += more
    if width == 1:
        return Ragged(lengths, table.reshape(-1))
    return Ragged(lengths, table[np.arange(width) < lengths[:, None]])


def _woven(parts: Sequence[Ragged], rows: int) -> Ragged:
    """Interleave the values of several columns row by row."""
    if len(parts) == 1:
        return parts[0]
    lengths = np.zeros(rows, np.int64)
    for part in parts:
        lengths += part.lengths
    joined = pc.binary_join_element_wise(*(part.array() for part in parts), _NOTHING)
    content = joined.buffers()[2]
    data = np.empty(0, np.uint8) if content is None else np.frombuffer(content, np.uint8)
    return Ragged(lengths, data[: int(lengths.sum())])
