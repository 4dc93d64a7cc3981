"""Type changes that a column's id allows (spec: Schema Evolution, Column Projection)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icecomb.format.errors import ValidationError
from icecomb.format.spec.types import (
    NANO_TYPES,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    StructType,
    TimestampNanoType,
    TimestampType,
    UnknownType,
    VariantType,
)
from icecomb.format.spec.values.temporal import MICROS_PER_DAY, NANOS_PER_MICRO

if TYPE_CHECKING:
    from icecomb.format.spec.schema import Schema
    from icecomb.format.spec.types import IcebergType


def can_promote(old: IcebergType, new: IcebergType) -> bool:
    """Return whether a column may change from one type to another (spec: Schema Evolution).

    The same type counts, and an unknown column may get any type.
    """
    if isinstance(old, UnknownType):
        return True
    if isinstance(old, DecimalType) and isinstance(new, DecimalType):
        return old.scale == new.scale and old.precision <= new.precision
    return (
        old == new
        or (isinstance(old, IntegerType) and isinstance(new, LongType))
        or (isinstance(old, FloatType) and isinstance(new, DoubleType))
        or is_date_promotion(old, new)
    )


def is_date_promotion(old: IcebergType, new: IcebergType) -> bool:
    """Return whether dates become timestamps, as only tables of format version 3 allow."""
    return isinstance(old, DateType) and isinstance(new, (TimestampType, TimestampNanoType))


def promoted_date(days: int, new: IcebergType) -> int:
    """Return midnight of a day, in days since 1970, in the unit of a timestamp type."""
    found = days * units_per_day(new)
    if -(1 << 63) <= found < 1 << 63:
        return found
    raise ValidationError(
        f"Day {days} since 1970 is out of the range of type {new}",
        hint="Leave the column a date, or correct the value.",
    )


def units_per_day(kind: IcebergType) -> int:
    """Return a day in the unit of a timestamp type: micro- or nanoseconds."""
    return MICROS_PER_DAY * (NANOS_PER_MICRO if isinstance(kind, NANO_TYPES) else 1)


def can_go_on(old: IcebergType, new: IcebergType) -> bool:
    """Return whether files with the old type can be read with the new one, by the column's id.

    The fields of a struct are found by their ids, so that structs are always compatible. The
    element of a list and the key and value of a map are found by position: lists and maps are
    compatible if these are. Ids inside the types do not count.
    """
    if isinstance(old, StructType) and isinstance(new, StructType):
        return True
    if isinstance(old, ListType) and isinstance(new, ListType):
        return can_go_on(old.element_type, new.element_type)
    if isinstance(old, MapType) and isinstance(new, MapType):
        return can_go_on(old.key_type, new.key_type) and can_go_on(old.value_type, new.value_type)
    return (old.is_primitive or isinstance(old, VariantType)) and can_promote(old, new)


def unlike_columns(old: Schema, new: Schema) -> frozenset[int]:
    """Return the ids of columns, or their parts, with incompatible types in two schemas.

    A replaced table may have some where the writer reused ids by the columns' names only, as
    Iceberg Java does (TypeUtil.assignFreshIds), and so may a table in which a column was changed to
    a type that is not wider. Files were written with `old` and are read with `new`.
    """
    # a wide table may have many schemas, in which most columns are the same
    before, after = _types(old), _types(new)
    return frozenset(
        field_id
        for field_id in before.keys() & after.keys()
        if before[field_id] != after[field_id] and not can_go_on(before[field_id], after[field_id])
    )


def _types(schema: Schema) -> dict[int, IcebergType]:
    return {field_id: schema.find_type(field_id) for field_id in schema.field_ids}
