"""Conversion of predicates' literals to internal values of a column's type.

Internal values are bool, int, float, str, bytes, `Decimal` and `UUID`; a date is days from
1970-01-01, a time microseconds from midnight, a timestamp micro- or nanoseconds from 1970-01-01
00:00:00 (UTC where the type has a zone).

Conversion of NumPy, pandas and Arrow values to the Python values of predicates.

None of these libraries is imported needlessly: a caller that has such a value has imported it.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import struct
import sys
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation, localcontext
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from icecomb.format.errors import ExpressionError
from icecomb.format.spec.types import (
    NANO_TYPES,
    TIMESTAMP_TYPES,
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
    StringType,
    TimeType,
    UUIDType,
)
from icecomb.format.spec.values.temporal import NANOS_PER_MICRO, iso_timestamp_ns

if TYPE_CHECKING:
    import pyarrow as pa


_ONE_VALUE: Final = "Give a single value; for one of several: In(column, values)."


@dataclass(frozen=True, slots=True)
class NanoTimestamp:
    """A time that is not in whole microseconds, as nanoseconds from 1970 (UTC if `zoned`)."""

    nanos: int
    zoned: bool

    def __str__(self) -> str:
        return iso_timestamp_ns(self.nanos) + ("+00:00" if self.zoned else "")


def python_value(value: Any) -> Any:
    """Convert a value to the Python type that predicates hold; every null becomes None.

    Values of unknown types stay unchanged, and times that are not in whole microseconds are
    `NanoTimestamp`.
    """
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    library = type(value).__module__.partition(".")[0]
    if library == "numpy":
        return _of_numpy(value)
    if library == "pandas":
        return _of_pandas(value)
    if library == "pyarrow":
        return _of_arrow(value)
    return value


def scalar_value(scalar: pa.Scalar) -> Any:
    """Convert an Arrow scalar to the Python type that predicates hold; null becomes None.

    It raises ValueError, pyarrow.ArrowException or OverflowError if Python cannot hold the value.
    """
    import pyarrow as pa

    kind = scalar.type
    if not scalar.is_valid:
        return None
    if isinstance(scalar, pa.ExtensionScalar):
        return scalar.as_py()
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return scalar_value(scalar.value)
    if pa.types.is_timestamp(kind):
        if kind.unit == "ns" and scalar.value % NANOS_PER_MICRO:
            return NanoTimestamp(scalar.value, kind.tz is not None)
        # not as_py, which would return a pandas value, and look up the zone
        micros = scalar.cast(pa.timestamp("us", kind.tz)).cast(pa.int64()).as_py()
        value = _EPOCH + dt.timedelta(microseconds=micros)
        return value.replace(tzinfo=dt.timezone.utc) if kind.tz else value
    if pa.types.is_time(kind):
        return scalar.cast(pa.time64("us")).as_py()
    plain = (
        pa.types.is_boolean(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_date(kind)
    )
    text = (
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )
    data = (
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_binary_view(kind)
        or pa.types.is_fixed_size_binary(kind)
    )
    if plain or text or data:
        return scalar.as_py()
    raise ValueError(f"it is a {kind}")


def _of_arrow(value: Any) -> Any:
    import pyarrow as pa

    if isinstance(value, (pa.Array, pa.ChunkedArray)):
        raise ExpressionError("A comparison takes one value, not an array", hint=_ONE_VALUE)
    if not isinstance(value, pa.Scalar):
        return value
    try:
        return scalar_value(value)
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise ExpressionError(
            # a time that Python cannot represent has no text either
            f"No column can be compared with a value of Arrow type {value.type}: {error}",
            hint="Compare the column with a value of its own type.",
        ) from error


def _of_numpy(value: Any) -> Any:
    import numpy as np

    if isinstance(value, np.ndarray):
        if value.ndim:
            raise ExpressionError("A comparison takes one value, not an array", hint=_ONE_VALUE)
        value = value[()]
    if isinstance(value, np.datetime64):
        return _of_datetime64(value)
    # timedelta64.item() may be a number without its unit
    if isinstance(value, np.generic) and not isinstance(value, np.timedelta64):
        return value.item()
    return value


def _of_datetime64(value: Any) -> Any:
    import numpy as np

    if np.isnat(value):
        return None
    unit = np.datetime_data(value.dtype)[0]
    wanted = np.dtype("datetime64[D]" if unit in {"Y", "M", "W", "D"} else "datetime64[us]")
    found = value.astype(wanted)
    if found.astype(value.dtype) != value:
        nanos = value.astype("datetime64[ns]")
        if nanos.astype(value.dtype) != value:
            raise _too_fine(value)
        return NanoTimestamp(int(nanos.astype(np.int64)), zoned=False)
    item = found.item()
    if not isinstance(item, dt.date):
        raise _too_far(value)
    return item


def _of_pandas(value: Any) -> Any:
    pd: Any = sys.modules["pandas"]
    if isinstance(value, (pd.Series, pd.Index, pd.api.extensions.ExtensionArray)):
        raise ExpressionError("A comparison takes one value, not a column", hint=_ONE_VALUE)
    if value is pd.NA or value is pd.NaT:
        return None
    if not isinstance(value, pd.Timestamp):
        return value
    if value.nanosecond:
        return NanoTimestamp(value.value, value.tzinfo is not None)
    try:
        return value.to_pydatetime()
    except ValueError as error:
        raise _too_far(value) from error


def _too_fine(value: Any) -> ExpressionError:
    return ExpressionError(
        f"{value!r} is finer than nanoseconds", hint="Round the value to nanoseconds first."
    )


def _too_far(value: Any) -> ExpressionError:
    return ExpressionError(
        f"{value!r} is outside of the years 1 to 9999",
        hint="Give the internal value: days, or microseconds, from 1970-01-01.",
    )


_DAY = 86_400_000_000
_NANOS = 1_000
"""The nanoseconds in a microsecond."""
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - the epoch of timestamps without a zone
_EPOCH_UTC = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
_EPOCH_ORDINAL = _EPOCH.toordinal()
_MICROSECOND = dt.timedelta(microseconds=1)
_FLOAT_MAX = 3.4028234663852886e38
_INT_RANGE = (-(1 << 31), (1 << 31) - 1)
_LONG_RANGE = (-(1 << 63), (1 << 63) - 1)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_TIME = re.compile(r"(\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?")
_TIMESTAMP = re.compile(
    r"(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?))?"
    r"\s?(Z|z|UTC|[+-]\d{2}(?::?\d{2})?)?"
)


_TO_MICROS = len("12:34:56.789012")
"""The characters of a time of day up to its microseconds."""


@dataclass(frozen=True, slots=True)
class ConvertedLiteral:
    """A literal converted to the type of a column.

    Attributes:
        floor: The greatest value of the type that is not above the literal; None if all are.
    """

    floor: Any
    exact: bool = True
    above_all: bool = False


_BELOW_ALL = ConvertedLiteral(None, exact=False)
_ABOVE_ALL = ConvertedLiteral(0, exact=False, above_all=True)


def integer_range(field_type: IcebergType) -> tuple[int, int] | None:
    """Return the least and greatest internal value of a type if these are integers, else None."""
    if isinstance(field_type, (IntegerType, DateType)):
        return _INT_RANGE
    if isinstance(field_type, (LongType, *TIMESTAMP_TYPES)):
        return _LONG_RANGE
    return (0, _DAY - 1) if isinstance(field_type, TimeType) else None


def convert_literal(value: Any, field_type: IcebergType) -> ConvertedLiteral:
    """Convert a literal to a value of a type; the error's message says only why it is not one.

    Strings are parsed as numbers, ISO 8601 dates and times, UUIDs and booleans; an integer is the
    internal value of a date, time or timestamp.
    """
    if isinstance(field_type, (IntegerType, LongType)):
        return _within(_number(value), *(integer_range(field_type) or _LONG_RANGE))
    if isinstance(field_type, DecimalType):
        return _decimal(_number(value), field_type)
    if isinstance(field_type, (FloatType, DoubleType)):
        return _floating(_number(value), single=isinstance(field_type, FloatType))
    if isinstance(field_type, (DateType, *TIMESTAMP_TYPES)):
        return _instant(value, field_type)
    if isinstance(field_type, TimeType):
        return _within(_time(value), 0, _DAY - 1)
    return ConvertedLiteral(_other(value, field_type))


def literal_text(value: Any) -> str:
    """Return a literal as SQL text that the expression parser reads back."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return "'Infinity'" if value > 0 else "'-Infinity'"
    if isinstance(value, (int, float, Decimal)):
        return repr(value) if isinstance(value, float) else str(value)
    quoted = str(value).replace("'", "''")
    return f"'{quoted}'"


def _number(value: Any) -> int | float | Decimal:
    if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        return value
    if isinstance(value, str):
        text = value.strip()
        try:
            return int(text) if re.fullmatch(r"[+-]?\d+", text) else Decimal(text)
        except InvalidOperation:
            pass
    raise ExpressionError("it is not a number", hint="Give a number.")


def _within(value: float | Decimal, low: int, high: int) -> ConvertedLiteral:
    if value != value:  # noqa: PLR0124 - only NaN differs from itself
        raise ExpressionError("it is not a number", hint="Give a number; use is_nan to find NaN.")
    if value < low:
        return _BELOW_ALL
    if value > high:
        return _ABOVE_ALL
    floor = math.floor(value)
    return ConvertedLiteral(floor, exact=floor == value)


def _decimal(value: float | Decimal, field_type: DecimalType) -> ConvertedLiteral:
    # repr gives the shortest decimal of a float, which is how it was written
    number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if number.is_nan():
        raise ExpressionError("it is not a number", hint="Give a number; a decimal is never NaN.")
    limit = 10**field_type.precision
    if number.is_infinite() or abs(number) >= Decimal(limit).scaleb(2):
        return _ABOVE_ALL if number > 0 else _BELOW_ALL
    with localcontext() as context:
        context.prec = 200
        scaled = number.scaleb(field_type.scale)
        unscaled = math.floor(scaled)
        if unscaled < -limit + 1:
            return _BELOW_ALL
        if scaled > limit - 1:
            return _ABOVE_ALL
        return ConvertedLiteral(
            Decimal(unscaled).scaleb(-field_type.scale), exact=unscaled == scaled
        )


def _floating(value: float | Decimal, *, single: bool) -> ConvertedLiteral:
    try:
        number = float(value)
    except OverflowError:
        number = math.inf if value > 0 else -math.inf
    if single and math.isfinite(number):
        # Rounded as Iceberg does, so that 0.1 finds the float that was written as 0.1.
        try:
            number = float(struct.unpack("<f", struct.pack("<f", number))[0])
        except OverflowError:
            number = math.copysign(math.inf, number)
    if math.isinf(number) and Decimal(value).is_finite():
        # Between the greatest finite value and infinity: infinity itself is a value, too.
        greatest = _FLOAT_MAX if single else math.nextafter(math.inf, 0.0)
        return ConvertedLiteral(greatest if number > 0 else -math.inf, exact=False)
    return ConvertedLiteral(number)


def _instant(value: Any, field_type: IcebergType) -> ConvertedLiteral:
    low, high = integer_range(field_type) or _LONG_RANGE
    if isinstance(value, int) and not isinstance(value, bool):
        return _within(value, low, high)
    nanos = 0
    if isinstance(value, str):
        micros, nanos = _parse_timestamp(value, field_type)
    elif isinstance(value, NanoTimestamp):
        _check_zone(field_type, zoned=value.zoned)
        micros, nanos = divmod(value.nanos, _NANOS)
    elif isinstance(value, dt.datetime):
        micros = _datetime_micros(value, field_type)
    elif isinstance(value, dt.date):
        if isinstance(field_type, ZONED_TYPES):
            raise _needs_zone()
        micros = (value.toordinal() - _EPOCH_ORDINAL) * _DAY
    else:
        raise ExpressionError(
            "it is not a date or timestamp",
            hint="Give a date or timestamp, or its text in ISO 8601.",
        )
    if isinstance(field_type, DateType):
        return ConvertedLiteral(micros // _DAY, exact=micros % _DAY == 0 and not nanos)
    if isinstance(field_type, NANO_TYPES):
        return _within(micros * _NANOS + nanos, low, high)
    return ConvertedLiteral(micros, exact=not nanos)


def _parse_timestamp(text: str, field_type: IcebergType) -> tuple[int, int]:
    """Return microseconds, and the nanoseconds beyond them."""
    match = _TIMESTAMP.fullmatch(text.strip())
    if match is None:
        raise ExpressionError(
            f"it is not an ISO 8601 {field_type}",
            hint="Write 2024-01-31, 2024-01-31T12:00:00 or, with a zone, 2024-01-31T12:00:00+00:00",
        )
    day, time, zone = match.groups()
    try:
        micros = (dt.date.fromisoformat(day).toordinal() - _EPOCH_ORDINAL) * _DAY
    except ValueError as error:
        raise ExpressionError(
            f"it is not a date: {error}", hint="Write it as 2024-01-31."
        ) from error
    nanos = 0
    if time is not None:
        if isinstance(field_type, NANO_TYPES):
            time, fine = time[:_TO_MICROS], time[_TO_MICROS:]
            nanos = int(fine.ljust(3, "0"))
        micros += _time(time)
    if isinstance(field_type, ZONED_TYPES):
        if zone is None:
            raise _needs_zone()
        return micros - _offset_micros(zone), nanos
    if zone is not None:
        raise _has_zone(field_type)
    return micros, nanos


def _datetime_micros(value: dt.datetime, field_type: IcebergType) -> int:
    zoned = value.tzinfo is not None
    _check_zone(field_type, zoned=zoned)
    return (value - (_EPOCH_UTC if zoned else _EPOCH)) // _MICROSECOND


def _check_zone(field_type: IcebergType, *, zoned: bool) -> None:
    if zoned and not isinstance(field_type, ZONED_TYPES):
        raise _has_zone(field_type)
    if not zoned and isinstance(field_type, ZONED_TYPES):
        raise _needs_zone()


def _needs_zone() -> ExpressionError:
    return ExpressionError(
        "A point in time needs a zone", hint="Add an offset: 2024-01-31T12:00:00+00:00"
    )


def _has_zone(field_type: IcebergType) -> ExpressionError:
    return ExpressionError(f"A {field_type} has no zone", hint="Leave the offset out.")


def _offset_micros(zone: str) -> int:
    if zone in ("Z", "z", "UTC"):
        return 0
    digits = zone[1:].replace(":", "").ljust(4, "0")
    minutes = int(digits[:2]) * 60 + int(digits[2:])
    return (-1 if zone[0] == "-" else 1) * minutes * 60_000_000


def _time(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, dt.time) and value.tzinfo is None:
        return (
            (value.hour * 60 + value.minute) * 60 + value.second
        ) * 1_000_000 + value.microsecond
    match = _TIME.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise ExpressionError("it is not a time of day", hint="Write 12:34:56.789")
    hour, minute, second = (int(part or 0) for part in match.groups()[:3])
    if hour > 23 or minute > 59 or second > 59:
        raise ExpressionError("it is not a time of day", hint="Write 12:34:56.789")
    fraction = (match[4] or "").ljust(6, "0")
    if fraction[6:].strip("0"):
        raise ExpressionError("times are in microseconds", hint="Give at most six digits.")
    return ((hour * 60 + minute) * 60 + second) * 1_000_000 + int(fraction[:6])


def _other(value: Any, field_type: IcebergType) -> Any:
    if isinstance(field_type, StringType):
        if isinstance(value, str):
            return value
        raise ExpressionError("it is not text", hint="Quote the value.")
    if isinstance(field_type, BooleanType):
        return _boolean(value)
    if isinstance(field_type, UUIDType):
        return _uuid(value)
    if isinstance(field_type, (FixedType, BinaryType)):
        if not isinstance(value, (bytes, bytearray, memoryview)):
            raise ExpressionError("it is not bytes", hint="Give bytes, in SQL text X'cafe'.")
        return bytes(value)
    raise ExpressionError(
        f"Values of type {field_type} cannot be compared",
        hint="Compare a column of a primitive type.",
    )


def _boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    raise ExpressionError("it is not true or false", hint="Write true or false.")


def _uuid(value: Any) -> UUID:
    if isinstance(value, UUID):
        return value
    if isinstance(value, str):
        try:
            return UUID(value)
        except ValueError:
            pass
    if isinstance(value, bytes) and len(value) == 16:
        return UUID(bytes=value)
    raise ExpressionError(
        "it is not a UUID", hint="Write it as f79c3e09-677c-4bbd-a479-3f349cb785e7."
    )
