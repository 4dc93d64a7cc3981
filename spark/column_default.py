"""Default values of columns as constants of Spark's SQL."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from typing import Any, Final

from icecomb.format.spec.types import (
    NANO_TYPES,
    ZONED_TYPES,
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    TimestampType,
    TimestamptzType,
)
from icecomb.format.spec.values.temporal import NANOS_PER_MICRO

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)


def sql_of(field_type: IcebergType, value: Any) -> str:
    """Return Spark's SQL of a simple type's internal value, of nanoseconds in microseconds."""
    if value is None:
        return "NULL"
    if isinstance(field_type, NANO_TYPES):
        coarse = TimestamptzType() if isinstance(field_type, ZONED_TYPES) else TimestampType()
        return sql_of(coarse, value // NANOS_PER_MICRO)
    if isinstance(field_type, BooleanType):
        return str(value).lower()
    if isinstance(field_type, IntegerType):
        return str(value)
    if isinstance(field_type, LongType):
        # the least one would be parsed as the negation of one that is too great
        return f"{value}L" if value > -(1 << 63) else f"CAST('{value}' AS BIGINT)"
    if isinstance(field_type, FloatType | DoubleType):
        kind = "FLOAT" if isinstance(field_type, FloatType) else "DOUBLE"
        return f"CAST('{value!r}' AS {kind})"
    if isinstance(field_type, DecimalType):
        return f"CAST('{value:f}' AS DECIMAL({field_type.precision}, {field_type.scale}))"
    if isinstance(field_type, DateType):
        return f"DATE '{date(1970, 1, 1) + timedelta(days=value)}'"
    if isinstance(field_type, TimestampType):
        return f"TIMESTAMP_NTZ '{_time(value)}'"
    if isinstance(field_type, TimestamptzType):
        return f"TIMESTAMP_LTZ '{_time(value)}+00:00'"
    if isinstance(field_type, FixedType | BinaryType):
        return f"X'{value.hex()}'"
    text = str(value)
    if text.isascii() and text.isprintable() and "'" not in text and "\\" not in text:
        return f"'{text}'"
    # however the session reads escapes
    return f"CAST(X'{text.encode().hex()}' AS STRING)"


def _time(microseconds: int) -> str:
    time = _EPOCH + timedelta(microseconds=microseconds)
    return time.replace(tzinfo=None).isoformat(" ", "microseconds")
