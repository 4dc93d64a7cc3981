"""Conversion of Arrow values to plain layouts: no views, dictionaries or run ends; lists by offset.

Arrow has several layouts for the same values, and pyarrow cannot convert them all: its cast of a
list view reads views that are out of order or overlap as if they were a list, which loses values or
crashes the process; it can neither take nor filter rows of run ends. So everything but text is
converted here, by new offsets and `take`.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
from pyarrow import lib

from icecomb.format.argument import MAX_INT
from icecomb.format.arrow.number_view import Longs, array_of, numbers_of
from icecomb.format.errors import ValidationError

_OTHER_LAYOUTS: Final = frozenset(
    {
        lib.Type_DICTIONARY,
        lib.Type_RUN_END_ENCODED,
        lib.Type_STRING_VIEW,
        lib.Type_BINARY_VIEW,
        lib.Type_FIXED_SIZE_LIST,
        lib.Type_LIST_VIEW,
        lib.Type_LARGE_LIST_VIEW,
    }
)
_NESTED: Final = frozenset({lib.Type_STRUCT, lib.Type_LIST, lib.Type_LARGE_LIST})


def is_plain(kind: pa.DataType) -> bool:
    """Return whether values of a type have a plain layout, at every depth."""
    if kind.id in _OTHER_LAYOUTS:
        return False
    if pa.types.is_map(kind):
        return is_plain(kind.key_type) and is_plain(kind.item_type)
    return kind.id not in _NESTED or all(
        is_plain(kind.field(n).type) for n in range(kind.num_fields)
    )


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of the same values in a plain layout.

    Views, lists of fixed size and encoded texts get 64-bit offsets: they may repeat values, and so
    be larger than the memory they take.
    """
    types = pa.types
    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        value = plain_type(kind.value_type)
        if types.is_string(value):
            return pa.large_string()
        return pa.large_binary() if types.is_binary(value) else value
    if types.is_string_view(kind):
        return pa.large_string()
    if types.is_binary_view(kind):
        return pa.large_binary()
    if types.is_struct(kind):
        return pa.struct([_plain_field(f) for f in kind])
    if types.is_map(kind):
        return pa.map_(
            _plain_field(kind.key_field), _plain_field(kind.item_field), kind.keys_sorted
        )
    if types.is_list(kind):
        return pa.list_(_plain_field(kind.value_field))
    if types.is_large_list(kind) or _is_view(kind) or types.is_fixed_size_list(kind):
        return pa.large_list(_plain_field(kind.value_field))
    return kind


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema of the same columns in plain layouts."""
    return pa.schema([_plain_field(f) for f in schema], schema.metadata)


def plain_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the same rows in plain layouts; the batch itself if it has only these."""
    if all(is_plain(f.type) for f in batch.schema):
        return batch
    arrays = [plain_array(column) for column in batch.columns]
    return pa.RecordBatch.from_arrays(arrays, schema=plain_schema(batch.schema))


def plain_array(array: pa.Array) -> pa.Array:
    """Return the same values in a plain layout; the array itself if it has one."""
    types, kind = pa.types, array.type
    if is_plain(kind):
        return array
    wanted = plain_type(kind)
    if types.is_dictionary(kind):
        return _taken(plain_array(array.dictionary), array.indices, wanted)
    if types.is_run_end_encoded(kind):
        return _run_end_decoded(array, wanted)
    if types.is_struct(kind):
        children = [plain_array(array.field(n)) for n in range(kind.num_fields)]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(children, fields=list(wanted), mask=mask)
    if _is_view(kind):
        starts, sizes = numbers_of(array.offsets), numbers_of(array.sizes)
        return _views_joined(array, wanted, starts.astype(np.int64), sizes.astype(np.int64))
    if types.is_fixed_size_list(kind):
        starts = (array.offset + np.arange(len(array), dtype=np.int64)) * kind.list_size
        return _views_joined(array, wanted, starts, np.full(len(array), kind.list_size, np.int64))
    if types.is_list(kind) or types.is_large_list(kind) or types.is_map(kind):
        return _lists(array, wanted)
    # between text and its views
    return array.cast(wanted)


def of_short_offsets(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Convert text or lists with 64-bit offsets to 32-bit offsets.

    It raises pyarrow.ArrowInvalid if they are too long, or not of that kind.
    """
    if len(array):
        start = array.offset * np.dtype(np.int64).itemsize
        offsets = np.frombuffer(array.buffers()[1], np.int64, len(array) + 1, start)
        if offsets[-1] > MAX_INT >= offsets[-1] - offsets[0]:
            # offsets of a slice count from the start of the whole array, those of a copy from 0
            array = pa.concat_arrays([array, array.slice(0, 0)])
    return array.cast(wanted)


def _plain_field(field: pa.Field) -> pa.Field:
    return field.with_type(plain_type(field.type))


def _is_view(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind))


def _taken(values: pa.Array, places: pa.Array, wanted: pa.DataType) -> pa.Array:
    try:
        return (values if values.type == wanted else values.cast(wanted)).take(places)
    except pa.ArrowInvalid as error:
        raise ValidationError(
            f"{len(places)} values of {wanted} are too many for one array: {error}",
            hint="Give the rows in smaller batches.",
        ) from error


def _run_end_decoded(array: pa.RunEndEncodedArray, wanted: pa.DataType) -> pa.Array:
    rows = np.arange(array.offset, array.offset + len(array))
    runs = np.searchsorted(numbers_of(array.run_ends), rows, side="right")
    first, end = (int(runs[0]), int(runs[-1]) + 1) if len(runs) else (0, 0)
    values = plain_array(array.values.slice(first, end - first))
    return _taken(values, array_of(runs - first), wanted)


def _views_joined(array: pa.Array, wanted: pa.DataType, starts: Longs, sizes: Longs) -> pa.Array:
    """Return lists in which each row has `sizes` values from `starts` on; none in null rows."""
    missing = array.is_null() if array.null_count else None
    if missing is not None:
        sizes = np.where(np.asarray(missing), 0, sizes)
    offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))
    length, filled = len(array.values), sizes != 0
    if ((starts < 0) | (sizes < 0) | (starts > length - sizes))[filled].any():
        raise ValidationError(
            f"A list of the data points outside of its {length} values",
            hint="The library that created the data has a bug: give the data in another form.",
        )
    begin = int(starts[filled].min()) if filled.any() else 0
    end = int((starts + sizes)[filled].max()) if filled.any() else 0
    values = plain_array(array.values.slice(begin, end - begin))
    # the position of each value: those of a row follow each other
    places = np.repeat(starts - begin - offsets[:-1], sizes) + np.arange(offsets[-1])
    if not np.array_equal(places, np.arange(len(values))):
        values = _taken(values, array_of(places), values.type)
    return pa.LargeListArray.from_arrays(array_of(offsets), values, type=wanted, mask=missing)


def _lists(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Return lists or maps over plain values, only of the values in these rows."""
    offsets = array.offsets
    begin, end = int(offsets[0].as_py()), int(offsets[-1].as_py())
    offsets = pa.array(numbers_of(offsets) - begin, offsets.type)
    missing = array.is_null() if array.null_count else None
    if pa.types.is_map(wanted):
        parts = [plain_array(p.slice(begin, end - begin)) for p in (array.keys, array.items)]
        return pa.MapArray.from_arrays(offsets, *parts, type=wanted, mask=missing)
    values = plain_array(array.values.slice(begin, end - begin))
    make = pa.ListArray if pa.types.is_list(wanted) else pa.LargeListArray
    return make.from_arrays(offsets, values, type=wanted, mask=missing)


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


def without_hidden_nulls(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch, which lacks no required value, without nulls in required struct fields."""
    if not any(_has_required(f.type) for f in batch.schema):
        return batch
    arrays = [_shown(column) for column in batch.columns]
    return pa.record_batch(arrays, batch.schema)


def _has_required(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return any(not f.nullable or _has_required(f.type) for f in kind)
    if pa.types.is_map(kind):
        return _has_required(kind.item_type)
    return pa.types.is_list(kind) and _has_required(kind.value_type)


def _shown(array: pa.Array, *, required: bool = False) -> pa.Array:
    """Return the array, without any nulls if it is required."""
    kind = array.type
    if not (_has_required(kind) or (required and array.null_count)):
        return array
    buffers = array.buffers()
    validity = None if required else buffers[0]
    nulls = 0 if required else array.null_count
    if isinstance(array, pa.ExtensionArray):
        return pa.ExtensionArray.from_storage(kind, _shown(array.storage, required=required))
    if pa.types.is_struct(kind):
        children = [_shown(array.field(n), required=not f.nullable) for n, f in enumerate(kind)]
        mask = None if required or not array.null_count else array.is_null()
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=mask)
    if pa.types.is_map(kind):
        fields = [kind.key_field, kind.item_field]
        items = _shown(array.items, required=not kind.item_field.nullable)
        inside = [pa.StructArray.from_arrays([array.keys, items], fields=fields)]
        buffers = buffers[:2]
    elif pa.types.is_list(kind):
        inside = [_shown(array.values, required=not kind.value_field.nullable)]
        buffers = buffers[:2]
    else:
        inside = []
    return pa.Array.from_buffers(
        kind, len(array), [validity, *buffers[1:]], nulls, array.offset, inside
    )
