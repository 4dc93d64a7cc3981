"""Shredding of variants into typed Parquet columns (Parquet: Variant Shredding).

The first rows of a file decide into which: the most frequent type at each path, and of objects the
fields that are in a tenth of them at least. Integers share a column, whatever their width. What
does not fit stays encoded beside the columns, so that any value can follow. Variants inside
structs, lists and maps are written whole.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import accumulate, repeat
from typing import Any, Final, TypeAlias

import pyarrow as pa

from icecomb.format.errors import SchemaError, ValidationError
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import VariantType
from icecomb.format.spec.values.decimal_value import scaled
from icecomb.format.variant import layout
from icecomb.format.variant.dictionary import name_of, names_of

_Values: TypeAlias = Sequence[bytes | None]
_LEAST_SHARE: Final = 0.1
_MOST_FIELDS: Final = 300
_DEEPEST: Final = 20
_PRECISIONS: Final = {kind: most for kind, _, most in layout.DECIMALS}
_INTEGERS: Final = (layout.INT8, layout.INT16, layout.INT32, layout.INT64)
_COLUMNS: Final = {
    layout.INT64: pa.int64(),
    layout.DATE: pa.date32(),
    layout.TIME: pa.time64("us"),
    layout.TIMESTAMP: pa.timestamp("us"),
    layout.TIMESTAMPTZ: pa.timestamp("us", "UTC"),
    layout.TIMESTAMP_NANO: pa.timestamp("ns"),
    layout.TIMESTAMPTZ_NANO: pa.timestamp("ns", "UTC"),
    layout.FLOAT: pa.float32(),
    layout.DOUBLE: pa.float64(),
    layout.BINARY: pa.binary(),
    layout.STRING: pa.string(),
    layout.UUID: pa.uuid(),
    layout.TRUE: pa.bool_(),
}
_OBJECT, _ARRAY = -1, -2
"""Beside the types of primitives: those of objects and arrays."""


class ShreddedColumns:
    """The columns of a file into which its variants are shredded.

    The first `sample` rows of `table`, the first rows of the file, decide.
    """

    def __init__(self, table: pa.Table, schema: Schema, sample: int) -> None:
        self._kinds: dict[str, pa.DataType] = {}
        for f in schema.fields:
            if isinstance(f.field_type, VariantType):
                seen = _Seen()
                rows = table.column(f.name).slice(0, sample)
                with _named(f.name):
                    for names, value in _variants(rows):
                        seen.add(value, 0, layout.extent(value, 0, len(value)), names)
                if (kind := seen.kind()) is not None:
                    self._kinds[f.name] = kind

    @property
    def paths(self) -> list[str]:
        """The Parquet paths of the typed columns."""
        return [path for name, kind in self._kinds.items() for path in _paths(kind, name)]

    def schema(self, arrow: pa.Schema) -> pa.Schema:
        """Return the schema of the file from that of the rows."""
        fields = [
            f.with_type(_shredded(self._kinds[f.name])) if f.name in self._kinds else f
            for f in arrow
        ]
        return pa.schema(fields, arrow.metadata)

    def of(self, table: pa.Table) -> pa.Table:
        """Return rows with shredded variants; an invalid variant raises SchemaError."""
        for at, name in enumerate(table.column_names):
            if (kind := self._kinds.get(name)) is not None:
                with _named(name):
                    chunks = [_shred(chunk, kind) for chunk in table.column(at).chunks]
                arrow = table.field(at).with_type(_shredded(kind))
                table = table.set_column(at, arrow, pa.chunked_array(chunks, arrow.type))
        return table


@dataclass(slots=True)
class _Seen:
    """The values that a sample has at one path.

    Attributes:
        types: The numbers of values by type; variant nulls are not counted.
        digits: The most digits of decimals by scale.
        scales: The numbers of decimals by scale.
    """

    types: Counter[int] = field(default_factory=Counter)
    digits: dict[int, int] = field(default_factory=dict)
    scales: Counter[int] = field(default_factory=Counter)
    fields: dict[str, _Seen] = field(default_factory=dict)
    element: _Seen | None = None

    def add(self, data: bytes, at: int, end: int, names: Sequence[str], depth: int = 0) -> None:
        """Take a value into account of which these are the first byte and the byte after it."""
        if depth > _DEEPEST:
            return
        kind = _kind(data, at)
        if kind in {_OBJECT, _ARRAY}:
            inside = layout.members(data, at, end)
            if inside.ids is None:
                self.element = self.element or _Seen()
            for place, (start, after) in enumerate(inside.spans):
                below = self.element
                if inside.ids is not None:
                    below = self.fields.setdefault(name_of(names, inside.ids[place]), _Seen())
                assert below is not None  # noqa: S101 - an array's elements have one
                below.add(data, start, after, names, depth + 1)
        elif kind in _PRECISIONS:
            number, scale = _unscaled(data, at, end)
            digits = max(len(str(abs(number))), scale)
            if digits > layout.MOST_DIGITS:
                return
            self.scales[scale] += 1
            self.digits[scale] = max(self.digits.get(scale, 0), digits)
            kind = layout.DECIMAL4
        elif kind in _INTEGERS:
            kind = layout.INT64  # each has the width of its value, and the next may be wider
        if kind != layout.NULL:
            self.types[kind] += 1

    def kind(self) -> pa.DataType | None:
        """Return the type of the column; None if the values are better kept encoded."""
        if not self.types:
            return None
        (most, count), *_ = self.types.most_common(1)
        if most == _ARRAY:
            element = None if self.element is None else self.element.kind()
            return pa.list_(pa.field("element", _group(element), nullable=False))
        if most == _OBJECT:
            often = [
                (-sum(seen.types.values()), name)
                for name, seen in self.fields.items()
                if name and sum(seen.types.values()) >= _LEAST_SHARE * count
            ]
            names = sorted(name for _, name in sorted(often)[:_MOST_FIELDS])
            fields = [pa.field(n, _group(self.fields[n].kind()), nullable=False) for n in names]
            return pa.struct(fields) if fields else None
        if most == layout.DECIMAL4:
            (scale, _), *_ = self.scales.most_common(1)
            digits = self.digits[scale]
            return pa.decimal128(min(p for p in _PRECISIONS.values() if p >= digits), scale)
        return _COLUMNS[most]


@contextmanager
def _named(column: str) -> Iterator[None]:
    try:
        yield
    except ValidationError as problem:
        raise SchemaError(
            f"Column {column!r}: {problem.message}",
            hint="Make variants of values with icecomb.format.variants_to_arrow.",
            column=column,
        ) from problem


def _variants(column: pa.ChunkedArray) -> Iterator[tuple[Sequence[str], bytes]]:
    for chunk in column.chunks:
        metadata, values = (part.to_pylist() for part in chunk.flatten())
        for names, value in zip(metadata, values, strict=True):
            if value is not None:
                yield names_of(names), value


def _shred(array: pa.StructArray, kind: pa.DataType) -> pa.StructArray:
    valid = array.is_valid().to_pylist()
    metadata, values = array.field("metadata"), array.field("value").to_pylist()
    given = [
        value[: layout.extent(value, 0, len(value))] if present else None
        for value, present in zip(values, valid, strict=True)
    ]
    names = [
        names_of(data) if present else ()
        for data, present in zip(metadata.to_pylist(), valid, strict=True)
    ]
    inside = _fields(given, names, kind)
    mask = array.is_null() if array.null_count else None
    wanted = list(_shredded(kind))
    return pa.StructArray.from_arrays([metadata, *inside], fields=wanted, mask=mask)


def _fields(values: _Values, names: Sequence[Sequence[str]], kind: pa.DataType) -> list[pa.Array]:
    """Return `value` and `typed_value` of values; None is a missing one."""
    if pa.types.is_struct(kind):
        return _objects(values, names, kind)
    if pa.types.is_list(kind):
        return _arrays(values, names, kind)
    read = _reader(kind)
    rest, typed = list(values), [None] * len(values)
    for at, value in enumerate(values):
        if value is not None and (found := read(value)) is not None:
            rest[at], typed[at] = None, found
    return [pa.array(rest, pa.binary()), _typed(typed, kind)]


def _objects(
    values: _Values, names: Sequence[Sequence[str]], kind: pa.StructType
) -> list[pa.Array]:
    shredded: dict[str, list[bytes | None]] = {f.name: [None] * len(values) for f in kind}
    rest, missing = list(values), [True] * len(values)
    for row, value in enumerate(values):
        if value is None or value[0] & 3 != layout.OBJECT:
            continue
        inside = layout.members(value, 0, len(value))
        others: list[tuple[int, bytes]] = []
        for number, (start, end) in zip(inside.ids or (), inside.spans, strict=True):
            part = value[start:end]
            column = shredded.get(name_of(names[row], number))
            if column is None:
                others.append((number, part))
            elif column[row] is not None:
                raise layout.malformed(f"an object has the field {names[row][number]!r} twice")
            else:
                column[row] = part
        left = [number for number, _ in others]
        rest[row] = layout.object_value(left, [part for _, part in others]) if others else None
        missing[row] = False
    columns = [_grouped(shredded[f.name], names, f.type) for f in kind]
    typed = pa.StructArray.from_arrays(columns, fields=list(kind), mask=pa.array(missing))
    return [pa.array(rest, pa.binary()), typed]


def _arrays(values: _Values, names: Sequence[Sequence[str]], kind: pa.ListType) -> list[pa.Array]:
    rest, elements, known = list(values), list[bytes | None](), list[Sequence[str]]()
    counts, missing = [0] * len(values), [True] * len(values)
    for row, value in enumerate(values):
        if value is None or value[0] & 3 != layout.ARRAY:
            continue
        inside = layout.members(value, 0, len(value))
        elements.extend(value[start:end] for start, end in inside.spans)
        known.extend(repeat(names[row], len(inside.spans)))
        counts[row], rest[row], missing[row] = len(inside.spans), None, False
    ends = pa.array(accumulate(counts, initial=0), pa.int32())
    content = _grouped(elements, known, kind.value_type)
    typed = pa.ListArray.from_arrays(ends, content, kind, mask=pa.array(missing))
    return [pa.array(rest, pa.binary()), typed]


def _grouped(values: _Values, names: Sequence[Sequence[str]], group: pa.StructType) -> pa.Array:
    if group.num_fields == 1:
        arrays = [pa.array(values, pa.binary())]
    else:
        arrays = _fields(values, names, group.field(1).type)
    return pa.StructArray.from_arrays(arrays, fields=list(group))


def _reader(kind: pa.DataType) -> Callable[[bytes], Any]:
    """Return a function from a value to what a column of a primitive type holds of it, or None."""
    if pa.types.is_decimal(kind):
        return lambda value: _decimal(value, kind)
    if pa.types.is_string(kind):
        return _text
    if pa.types.is_boolean(kind):
        return lambda value: {layout.TRUE << 2: True, layout.FALSE << 2: False}.get(value[0])
    if pa.types.is_integer(kind):
        heads = {own << 2 for own in _INTEGERS}
        return lambda value: _whole(value) if value[0] in heads else None
    head = next(own for own, each in _COLUMNS.items() if each == kind) << 2
    if pa.types.is_temporal(kind):
        return lambda value: _whole(value) if value[0] == head else None
    if pa.types.is_floating(kind):
        unpack = struct.Struct("<d" if kind == pa.float64() else "<f").unpack_from
        return lambda value: unpack(value, 1)[0] if value[0] == head else None
    begin = 5 if pa.types.is_binary(kind) else 1
    return lambda value: value[begin:] if value[0] == head else None


def _typed(values: list[Any], kind: pa.DataType) -> pa.Array:
    if kind == pa.uuid():
        return pa.ExtensionArray.from_storage(kind, pa.array(values, pa.binary(16)))
    if pa.types.is_temporal(kind):
        return pa.array(values, pa.int32() if pa.types.is_date32(kind) else pa.int64()).view(kind)
    return pa.array(values, kind)


def _decimal(value: bytes, kind: pa.Decimal128Type) -> Any:
    if value[0] & 3 != layout.PRIMITIVE or value[0] >> 2 not in _PRECISIONS:
        return None
    number, scale = _unscaled(value, 0, len(value))
    fits = scale == kind.scale and abs(number) < 10**kind.precision
    return scaled(number, scale) if fits else None


def _text(value: bytes) -> str | None:
    if value[0] & 3 != layout.SHORT_STRING and value[0] != layout.STRING << 2:
        return None
    try:
        return value[1 if value[0] & 3 == layout.SHORT_STRING else 5 :].decode()
    except UnicodeDecodeError:
        return None


def _whole(value: bytes) -> int:
    return int.from_bytes(value[1:], "little", signed=True)


def _unscaled(data: bytes, at: int, end: int) -> tuple[int, int]:
    return int.from_bytes(data[at + 2 : end], "little", signed=True), data[at + 1]


def _kind(data: bytes, at: int) -> int:
    basic, header = data[at] & 3, data[at] >> 2
    if basic == layout.SHORT_STRING:
        return layout.STRING
    if basic != layout.PRIMITIVE:
        return _OBJECT if basic == layout.OBJECT else _ARRAY
    return layout.TRUE if header == layout.FALSE else header


def _group(kind: pa.DataType | None) -> pa.StructType:
    value = pa.field("value", pa.binary())
    return pa.struct([value] if kind is None else [value, pa.field("typed_value", kind)])


def _shredded(kind: pa.DataType) -> pa.StructType:
    return pa.struct([pa.field("metadata", pa.binary(), nullable=False), *_group(kind)])


def _paths(kind: pa.DataType, before: str) -> Iterator[str]:
    path = f"{before}.typed_value"
    if pa.types.is_struct(kind):
        for f in kind:
            if f.type.num_fields > 1:
                yield from _paths(f.type.field(1).type, f"{path}.{f.name}")
    elif pa.types.is_list(kind):
        if kind.value_type.num_fields > 1:
            yield from _paths(kind.value_type.field(1).type, f"{path}.list.element")
    else:
        yield path
