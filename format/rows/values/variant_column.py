"""Columns of variants: those of files, shredded or not, and those of given rows.

A file keeps a variant as a group of `metadata` and `value`; a shredded one has `typed_value`, too,
from which the value is put together (Parquet: Variant Shredding).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.arrow.plain_layout import internal_array, without_nulls
from icecomb.format.errors import CorruptFileError, UnsupportedError, ValidationError
from icecomb.format.variant import layout
from icecomb.format.variant.encoder import NO_NAMES, name_of, names_of
from icecomb.format.variant.variant_array import VARIANT_ARROW, variant_array

Convert: TypeAlias = Callable[[pa.Array, int], pa.Array]

_VERSION = 1


def is_variant(kind: pa.DataType) -> bool:
    """Return whether an Arrow type is that of variants: a struct of two binary parts."""
    types = pa.types
    return bool(types.is_struct(kind)) and (
        sorted(f.name for f in kind) == [f.name for f in VARIANT_ARROW]
        and all(
            types.is_binary(f.type) or types.is_large_binary(f.type) or types.is_binary_view(f.type)
            for f in kind
        )
    )


def stored_variants(kind: pa.DataType, path: str) -> Convert:
    """Return the conversion of a file's variants; `path` names the column in errors."""
    names = {f.name for f in kind} if pa.types.is_struct(kind) else set()
    shredded = {"metadata", "typed_value"} <= names <= {"metadata", "value", "typed_value"}
    if not shredded and not is_variant(kind):
        raise CorruptFileError(
            f"Column {path!r} is {kind} in the file, not a variant",
            hint="Rewrite the file, or read an older snapshot.",
            column=path,
        )

    def convert(array: pa.Array, _: int) -> pa.Array:
        if shredded:
            return reassembled(array, path)
        if any(part.null_count for part in without_nulls(array).flatten()):
            raise CorruptFileError(
                f"Column {path!r} has a variant without metadata or value in the file",
                hint="Restore the file from a backup, or read an older snapshot.",
                column=path,
            )
        return _variants(array)

    return convert


def given_variants(array: pa.Array, _: int) -> pa.Array:
    """Convert given variants; their parts are checked by `variant_problem`."""
    return _variants(array)


def variant_problem(array: pa.StructArray) -> str | None:
    """Return what is wrong with variants that are not null; None if nothing is seen.

    Only the presence of their parts and the version are looked at: values are not decoded.
    """
    for name in ("metadata", "value"):
        empty = pc.fill_null(pc.equal(pc.binary_length(array.field(name)), 0), True)
        if empty.true_count:
            return f"{empty.true_count} of its variants have no {name}"
    versions = _first_bytes(array.field("metadata")) & 0x0F
    other = versions[versions != _VERSION]
    return f"a variant has metadata of version {other[0]}, not {_VERSION}" if len(other) else None


def _variants(array: pa.StructArray) -> pa.StructArray:
    fields = list(VARIANT_ARROW)
    children = [array.field(f.name).cast(f.type) for f in fields]
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(children, fields=fields, mask=mask)


def _first_bytes(array: pa.BinaryArray) -> npt.NDArray[np.uint8]:
    """Return the first byte of each value; none is empty or null."""
    _, offsets, data = array.buffers()
    if not len(array):
        return np.empty(0, np.uint8)
    starts = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array)]
    return np.frombuffer(data, np.uint8)[starts]


Values: TypeAlias = list[bytes | None]
"""Encoded values; None is a missing one."""


@dataclass(frozen=True, slots=True)
class _Names:
    """The dictionary of a row: names by number, and numbers by name."""

    names: Sequence[str]
    numbers: Mapping[str, int]


def reassembled(array: pa.StructArray, path: str) -> pa.StructArray:
    """Return shredded variants as variants of metadata and value; `path` is for errors."""
    valid = array.is_valid().to_pylist()
    metadata = _parts(array)["metadata"].to_pylist()
    try:
        dictionaries = _dictionaries(metadata)
        values = _values(array, dictionaries)
    except ValidationError as problem:
        raise CorruptFileError(
            f"Column {path!r} has a shredded variant that cannot be put together: "
            f"{problem.message}",
            hint="Restore the file from a backup, or read an older snapshot.",
            column=path,
        ) from problem
    except UnsupportedError as problem:
        raise UnsupportedError(
            f"Column {path!r}: {problem.message}", hint=problem.hint, column=path
        ) from problem
    found: list[tuple[bytes, bytes] | None] = []
    for present, names, value in zip(valid, metadata, values, strict=True):
        if present and value is not None and not names:
            raise CorruptFileError(
                f"Column {path!r} has a variant without metadata in the file",
                hint="Restore the file from a backup, or read an older snapshot.",
                column=path,
            )
        known = (names or NO_NAMES, layout.VARIANT_NULL if value is None else value)
        found.append(known if present else None)
    return variant_array(found)


def _dictionaries(metadata: Sequence[bytes | None]) -> list[_Names]:
    known: dict[bytes, _Names] = {}
    none = _Names((), {})  # also of variants that a null struct hides
    found = []
    for data in metadata:
        if not data:
            found.append(none)
            continue
        if data not in known:
            names = names_of(data)
            known[data] = _Names(names, {name: at for at, name in enumerate(names)})
        found.append(known[data])
    return found


def _parts(group: pa.StructArray) -> dict[str, pa.Array]:
    """Return the fields of a struct by name, null where the struct is."""
    return dict(zip((f.name for f in group.type), group.flatten(), strict=True))


def _values(group: pa.StructArray, dictionaries: Sequence[_Names]) -> Values:
    """Return the values of a group of `value` and `typed_value`, of which one may be left out."""
    parts = _parts(group) if pa.types.is_struct(group.type) else {}
    if not parts.keys() & {"value", "typed_value"}:
        raise layout.malformed(f"a shredded field is {group.type}")
    stored: Values = [None] * len(group)
    if "value" in parts:
        stored = parts["value"].cast(pa.binary()).to_pylist()
    if "typed_value" not in parts:
        return stored
    typed = parts["typed_value"]
    if pa.types.is_struct(typed.type):
        return _objects(typed, stored, dictionaries)
    if pa.types.is_list(typed.type) or pa.types.is_large_list(typed.type):
        found = _arrays(typed, dictionaries)
    else:
        found = _primitives(typed)
    for at, value in enumerate(found):
        if value is None:
            found[at] = stored[at]
        elif stored[at] is not None:
            raise layout.malformed("it has a value and a typed value that is not an object")
    return found


def _objects(typed: pa.StructArray, stored: Values, dictionaries: Sequence[_Names]) -> Values:
    parts = _parts(typed)
    if len(parts) < typed.type.num_fields:
        raise layout.malformed("a field is shredded twice")
    names = sorted(parts)
    columns = [_values(parts[name], dictionaries) for name in names]
    found: Values = []
    for row, present in enumerate(typed.is_valid().to_pylist()):
        rest = stored[row]
        if not present:
            found.append(rest)
            continue
        dictionary = dictionaries[row]
        fields = {
            name: value
            for name, column in zip(names, columns, strict=True)
            if (value := column[row]) is not None
        }
        if rest is not None:
            others = _unshredded(rest, dictionary.names)
            if twice := others.keys() & parts.keys():
                raise layout.malformed(
                    f"the field {min(twice)!r} is shredded, and in its value too"
                )
            fields = dict(sorted((fields | others).items()))
        try:
            numbers = [dictionary.numbers[name] for name in fields]
        except KeyError as missing:
            raise layout.malformed(f"its metadata lacks the name {missing}") from None
        found.append(layout.object_value(numbers, list(fields.values())))
    return found


def _unshredded(value: bytes, names: Sequence[str]) -> dict[str, bytes]:
    """Return the fields of an object by name, as they are encoded."""
    if not value or value[0] & 3 != layout.OBJECT:
        raise layout.malformed("it has shredded fields and a value that is not an object")
    inside = layout.members(value, 0, len(value))
    return {
        name_of(names, number): value[start:end]
        for number, (start, end) in zip(inside.ids or (), inside.spans, strict=True)
    }


def _arrays(typed: pa.Array, dictionaries: Sequence[_Names]) -> Values:
    counts = [0 if n is None else n for n in typed.value_lengths().to_pylist()]
    inside = [
        each
        for dictionary, count in zip(dictionaries, counts, strict=True)
        for each in repeat(dictionary, count)
    ]
    elements = [
        layout.VARIANT_NULL if value is None else value
        for value in _values(typed.flatten(), inside)
    ]
    found: Values = []
    begin = 0
    for present, count in zip(typed.is_valid().to_pylist(), counts, strict=True):
        found.append(layout.array(elements[begin : begin + count]) if present else None)
        begin += count
    return found


def _primitives(typed: pa.Array) -> Values:
    kind, types = typed.type, pa.types
    if types.is_boolean(kind):
        of = {
            None: None,
            True: layout.primitive(layout.TRUE),
            False: layout.primitive(layout.FALSE),
        }
        return [of[value] for value in typed.to_pylist()]
    if types.is_string(kind) or types.is_large_string(kind):
        return _each(typed.cast(pa.large_binary()), layout.string)
    if types.is_binary(kind) or types.is_large_binary(kind):
        return _each(typed, lambda data: layout.sized(layout.BINARY, data))
    if kind == pa.uuid() or kind == pa.binary(16):
        return _each(internal_array(typed), lambda data: layout.primitive(layout.UUID, data))
    if types.is_decimal(kind):
        return _decimals(typed.cast(pa.decimal128(kind.precision, kind.scale)))
    if (own := _FIXED.get(kind)) is None:
        raise layout.malformed(f"{kind} is not a type of shredded values")
    head = layout.primitive(own)
    numbers = typed.view(pa.int64()) if types.is_temporal(kind) and kind.bit_width == 64 else typed
    numbers = numbers.view(pa.int32()) if types.is_date32(kind) else numbers
    data = np.ascontiguousarray(numbers.fill_null(0)).tobytes()
    size = kind.bit_width // 8
    return [
        head + data[at * size : (at + 1) * size] if present else None
        for at, present in enumerate(typed.is_valid().to_pylist())
    ]


def _each(typed: pa.Array, encode: Callable[[bytes], bytes]) -> Values:
    return [None if data is None else encode(data) for data in typed.to_pylist()]


def _decimals(typed: pa.Array) -> Values:
    """Return decimals in the width of their precision, as the specification shreds them."""
    precision, scale = typed.type.precision, typed.type.scale
    if not 0 <= scale <= layout.MOST_DIGITS:
        raise layout.malformed(f"{typed.type} is not a type of shredded values")
    own, size = next((own, size) for own, size, most in layout.DECIMALS if precision <= most)
    head = layout.primitive(own, bytes((scale,)))
    numbers = typed.buffers()[1]
    data = b"" if numbers is None else memoryview(numbers)[typed.offset * 16 :]
    return [
        head + bytes(data[at * 16 : at * 16 + size]) if present else None
        for at, present in enumerate(typed.is_valid().to_pylist())
    ]


_FIXED: Final = {
    pa.int8(): layout.INT8,
    pa.int16(): layout.INT16,
    pa.int32(): layout.INT32,
    pa.int64(): layout.INT64,
    pa.float32(): layout.FLOAT,
    pa.float64(): layout.DOUBLE,
    pa.date32(): layout.DATE,
    pa.time64("us"): layout.TIME,
    pa.timestamp("us"): layout.TIMESTAMP,
    pa.timestamp("us", "UTC"): layout.TIMESTAMPTZ,
    pa.timestamp("ns"): layout.TIMESTAMP_NANO,
    pa.timestamp("ns", "UTC"): layout.TIMESTAMPTZ_NANO,
}
