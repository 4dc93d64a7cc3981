"""Conversion of metastore partition values, which are texts, to typed Iceberg values.

Hive stores every partition value as text. The text is converted once, here, exactly or not at all:
a value that is silently rounded or nulled would put rows into another partition.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import struct
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, Final
from zoneinfo import ZoneInfo

from icecomb.format.errors import ValidationError
from icecomb.format.rows.write.partition_path import is_plain
from icecomb.format.spec.partition import PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import (
    NANO_TYPES,
    TIMESTAMP_TYPES,
    ZONED_TYPES,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
)
from icecomb.format.spec.values.decimal_value import rescaled
from icecomb.format.spec.values.temporal import NANOS_PER_MICRO

DEFAULT_PARTITION: Final = "__HIVE_DEFAULT_PARTITION__"
"""The text that Hive stores for null (hive.exec.default.partition.name)."""
_RANGES: Final = {IntegerType: 31, LongType: 63}
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
_SMALL: Final = {"tinyint": 7, "smallint": 15}
_SIZED: Final = re.compile(r"(?:var)?char\((\d+)\)")
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIMESTAMP: Final = re.compile(rf"({_DATE.pattern}) (\d\d:\d\d:\d\d)(?:\.(\d{{1,9}}))?", re.ASCII)
_NO_EQUAL: Final = "a partition column of type {} cannot be converted"


def partition_values(
    texts: Sequence[str],
    spec: PartitionSpec,
    schema: Schema,
    *,
    hive_types: Sequence[str] = (),
    null_name: str = DEFAULT_PARTITION,
    time_zone: str = "UTC",
) -> tuple[Any, ...]:
    """Return the Iceberg partition tuple of a metastore partition's values.

    Args:
        texts: One per partition column, from the metastore (never from a path).
        spec: The partition spec, identity on each partition column, in the same order.
        hive_types: Hive's types of the columns, which may have a smaller range than Iceberg's.
        null_name: The text that stands for null.
        time_zone: Time zone that local timestamps were written in, for timestamptz.
    """
    if len(texts) != len(spec.fields):
        raise ValidationError(
            f"A partition has {len(texts)} values for {len(spec.fields)} partition columns",
            hint="repair that partition in Hive, or drop it there",
        )
    values = []
    kinds = hive_types or [""] * len(texts)
    for text, field, hive_type in zip(texts, spec.fields, kinds, strict=True):
        column = schema.find_field(field.source_id)
        try:
            value = None
            if text != null_name:
                value = convert(text, column.field_type, time_zone=time_zone)
                _check_room(value, hive_type)
            values.append(value)
        except (ValueError, InvalidOperation, OverflowError) as error:
            why = error.message if isinstance(error, ValidationError) else ""
            raise ValidationError(
                f"partition value {text!r} is not a {column.field_type} (column {column.name})"
                + (f": {why}" if why else ""),
                hint="drop or rename that partition in Hive, or change the column's type there",
            ) from error
    return tuple(values)


def convert(text: str, field_type: IcebergType, *, time_zone: str = "UTC") -> Any:
    """Convert a text to icecomb's internal value of a type; `ValueError` if it is not exact."""
    if isinstance(field_type, StringType):
        return text
    if not is_plain(text, field_type):
        raise ValidationError("not written as Hive and Spark read it")
    if isinstance(field_type, IntegerType | LongType):
        return _integer(text, _RANGES[type(field_type)])
    if isinstance(field_type, BooleanType):
        return {"true": True, "false": False}[_one_of(text.lower(), ("true", "false"))]
    if isinstance(field_type, FloatType | DoubleType):
        return _float(text, field_type)
    if isinstance(field_type, DecimalType):
        return _decimal(text, field_type)
    if isinstance(field_type, DateType):
        return (_date(text) - _EPOCH.date()).days
    if isinstance(field_type, TIMESTAMP_TYPES):
        zone = ZoneInfo(time_zone) if isinstance(field_type, ZONED_TYPES) else dt.timezone.utc
        found = _nanoseconds(text, zone)
        if isinstance(field_type, NANO_TYPES):
            if not -(1 << 63) <= found < 1 << 63:
                raise ValidationError("out of the range of nanoseconds, 1677-09-21 to 2262-04-11")
            return found
        if found % NANOS_PER_MICRO:
            raise ValidationError("finer than microseconds")
        return found // NANOS_PER_MICRO
    raise ValidationError(_NO_EQUAL.format(field_type))


def _check_room(value: Any, hive_type: str) -> None:
    """Check that a value fits the type in Hive: Hive truncates others, and engines read null."""
    kind = hive_type.lower().replace(" ", "")
    bits, sized = _SMALL.get(kind), _SIZED.fullmatch(kind)
    if bits is not None and not -(1 << bits) <= value < 1 << bits:
        raise ValidationError(f"out of the range of {kind}")
    if sized is not None and len(value) > int(sized[1]):
        raise ValidationError(f"too long for {kind}")


def _integer(text: str, bits: int) -> int:
    value = int(text)
    if not -(1 << bits) <= value < 1 << bits:
        raise ValidationError("out of range")
    return value


def _float(text: str, field_type: FloatType | DoubleType) -> float:
    value = float(text)
    try:
        if isinstance(field_type, FloatType):
            (value,) = struct.unpack("<f", struct.pack("<f", value))
    except OverflowError:
        value = math.inf
    if math.isinf(value) and not text.endswith("Infinity"):
        raise ValidationError("out of range")
    return value


def _date(text: str) -> dt.date:
    if not _DATE.fullmatch(text):
        raise ValidationError("not a date like 2024-01-31")
    return dt.date.fromisoformat(text)


def _one_of(text: str, choices: tuple[str, ...]) -> str:
    if text not in choices:
        raise ValidationError(f"not one of {', '.join(choices)}")
    return text


def _decimal(text: str, field_type: DecimalType) -> Decimal:
    value = Decimal(text)
    if not value.is_finite():
        raise ValidationError("not a finite number")
    try:
        exact = rescaled(value, field_type.scale)
    except ValueError as error:
        raise ValidationError("it does not fit") from error
    if len(exact.as_tuple().digits) > field_type.precision:
        raise ValidationError("it does not fit")
    return exact


def _nanoseconds(text: str, zone: dt.tzinfo) -> int:
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        # Hive shortens a midnight to its date.
        day = _date(text)
        moment = dt.datetime(day.year, day.month, day.day, tzinfo=zone)
        return (moment - _EPOCH) // dt.timedelta(microseconds=1) * NANOS_PER_MICRO
    moment = dt.datetime.fromisoformat(f"{match[1]} {match[2]}").replace(tzinfo=zone)
    fraction = (match[3] or "").ljust(9, "0")
    seconds = (moment - _EPOCH) // dt.timedelta(seconds=1)
    return seconds * NANOS_PER_MICRO * 1_000_000 + int(fraction)
