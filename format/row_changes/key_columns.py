"""Key columns, by which rows are identified, and filters for files that may hold certain keys."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.arrow.storage_type import internal_array
from icecomb.format.errors import UnsupportedError, ValidationError
from icecomb.format.expressions.expression import (
    BooleanExpression,
    GreaterThanOrEqual,
    In,
    LessThanOrEqual,
    conjunction,
)
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import (
    OPAQUE_TYPES,
    DoubleType,
    FixedType,
    FloatType,
    NestedField,
    UnknownType,
    UUIDType,
)
from icecomb.format.spec.values.temporal import human_date, iso_timestamp, iso_timestamp_ns

KEY_BATCH_ROWS = 1 << 20
"""The number of keys to look up in a batch: each batch builds a hash table of the keys once."""
_UNFIT = (FloatType, DoubleType, UnknownType)
_LISTED_KEYS = 200
"""The most values of a key column to list in a filter; more are looked for by their range."""


def key_field(schema: Schema, name: str, *, case_sensitive: bool = True) -> NestedField:
    """Return the column of a name, after checking that it can be a key."""
    found = schema.find_field(name, case_sensitive)
    kind = found.field_type
    if isinstance(kind, OPAQUE_TYPES):
        raise UnsupportedError(
            f"Column {found.name!r} of type {kind} cannot be a key: such values cannot be compared",
            hint="Find rows by other columns.",
            column=found.name,
        )
    unfit = isinstance(kind, _UNFIT) or not kind.is_primitive
    if unfit or found not in schema.fields:
        raise ValidationError(
            f"Column {found.name!r} ({kind}) cannot be a key: a key is a top-level column "
            "whose values are either exactly equal or not",
            hint="Choose a top-level column of integers, decimals, strings, dates or the like.",
            column=found.name,
        )
    return found


def key_text(fields: Sequence[NestedField], values: Sequence[pa.Scalar]) -> str:
    """Return a key as text for messages."""
    parts = zip(fields, values, strict=True)
    return ", ".join(f"{field.name}={_shown(value)}" for field, value in parts)


def _shown(value: pa.Scalar) -> str:
    # Python has no nanoseconds, and no years after 9999 or before 1
    if pa.types.is_timestamp(value.type) and value.type.unit == "ns" and value.is_valid:
        return repr(iso_timestamp_ns(value.value))
    try:
        return repr(value.as_py())
    except (OverflowError, ValueError):
        is_date = pa.types.is_date(value.type)
        return repr((human_date if is_date else iso_timestamp)(value.value))


def key_filter(fields: Sequence[NestedField], columns: Sequence[pa.Array]) -> BooleanExpression:
    """Return a filter that all rows with one of some keys, without nulls, match, and few others."""
    parts = zip(fields, columns, strict=True)
    return conjunction(part for f, column in parts for part in _among(f, column))


def _among(field: NestedField, column: pa.Array) -> list[BooleanExpression]:
    """Return conditions that the values of a key column match."""
    values = internal_array(column).unique()
    if len(values) <= _LISTED_KEYS:
        return [In(field.name, values.to_pylist())]
    if isinstance(field.field_type, UUIDType | FixedType):
        return []
    ends = pc.min_max(values).as_py()
    return [
        GreaterThanOrEqual(field.name, ends["min"]),
        LessThanOrEqual(field.name, ends["max"]),
    ]
