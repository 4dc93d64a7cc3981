"""Default values of columns in Spark's SQL: the constants of DEFAULT clauses."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta, timezone
from typing import Any, Final

from icecomb.format.errors import ExpressionError, UnsupportedError
from icecomb.format.expressions.expression import EqualTo
from icecomb.format.expressions.sql.parser import parse
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
_COLUMN: Final = "c"
_TYPED_NUMBER: Final = re.compile(r"([+-]?[0-9.]+(?:E[+-]?[0-9]+)?)(?:[LSYDF]|BD)", re.IGNORECASE)


def constant_of(sql: str, path: str) -> Any:
    """Return the value of a DEFAULT clause; None for NULL, and if there is no clause.

    Args:
        sql: The text after DEFAULT; empty if the default is dropped.
        path: The full name of the column, for messages.

    Raises:
        UnsupportedError: If it is not a constant.
    """
    if sql.strip().upper() in {"", "NULL"}:
        return None
    typed = _TYPED_NUMBER.fullmatch(sql.strip())
    try:
        found = parse(f"{_COLUMN} = ({typed[1] if typed else sql})", of_spark=True)
    except ExpressionError as error:
        raise _no_constant(sql, path) from error
    if not isinstance(found, EqualTo):
        raise _no_constant(sql, path)
    return found.literal


def _no_constant(sql: str, path: str) -> UnsupportedError:
    return UnsupportedError(
        f"Column {path} cannot have the default {sql}: an Iceberg table has constants as defaults",
        hint="write a constant of the column's type, such as 5, 'x', DATE '2024-01-31' or X'cafe'",
        column=path,
    )


def sql_of(field_type: IcebergType, value: Any) -> str:
    """Return Spark's SQL of an internal value of a simple type, of nanoseconds in microseconds.

    Args:
        field_type: The type.
        value: The value; None for null.
    """
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
