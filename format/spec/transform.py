"""Partition transforms (spec: Partition Transforms, Appendix B).

A transform converts a column's value to a partition value. Values are icecomb's internal ones: days
for a date, micro- or nanoseconds for a time or timestamp. Arrow arrays are transformed without a
Python object per row where possible; see `icecomb.format.spec.transform_arrow`.
"""

from __future__ import annotations

import base64
import re
import uuid
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar

from icecomb.format.argument import checked_int, json_of_pyiceberg
from icecomb.format.errors import UnsupportedError, ValidationError
from icecomb.format.spec.types import (
    NANO_TYPES,
    OPAQUE_TYPES,
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
    LongType,
    PrimitiveType,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
)
from icecomb.format.spec.values.decimal_value import decimal_bytes, scaled, unscaled
from icecomb.format.spec.values.temporal import (
    MICROS_PER_HOUR,
    NANOS_PER_MICRO,
    civil_from_days,
    human_date,
    human_time,
    human_timestamp,
    human_timestamp_ns,
    human_timestamptz,
)

if TYPE_CHECKING:
    import pyarrow as pa

_WITH_WIDTH = re.compile(r"(bucket|truncate)\[(\d+)\]", re.IGNORECASE)
_MAX_INT = (1 << 31) - 1
_BUCKET_SOURCES = (
    IntegerType,
    LongType,
    DecimalType,
    DateType,
    TimeType,
    *TIMESTAMP_TYPES,
    StringType,
    UUIDType,
    FixedType,
    BinaryType,
)
_TRUNCATE_SOURCES = (IntegerType, LongType, DecimalType, StringType, BinaryType)


@dataclass(frozen=True, slots=True)
class Transform:
    """The base class of all transforms."""

    @property
    def preserves_order(self) -> bool:
        """True if a <= b implies transformed a <= transformed b."""
        return False

    def satisfies_order_of(self, other: Transform) -> bool:
        """Return whether rows ordered by this transform are also ordered by the other."""
        return self == other

    def can_transform(self, source: IcebergType) -> bool:
        """Return whether columns of this type can be transformed."""
        raise NotImplementedError

    def result_type(self, source: IcebergType) -> PrimitiveType:
        """Return the type of the partition values."""
        raise NotImplementedError

    def apply(self, value: Any, source: IcebergType) -> Any:
        """Return the partition value of one internal value; None stays None.

        Args:
            value: An internal value.
            source: The type of the column, by which days are distinguished from microseconds.

        Raises:
            ValidationError: If the transform does not apply to columns of this type.
        """
        if value is None:
            return None
        self.check(source)
        return self._apply(value, source)

    def apply_array(self, array: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
        """Return the partition values of a whole Arrow array; nulls stay null.

        The source type is the array's own: date32, time64, timestamp, decimal128, string, ...
        Integers are returned as int32, days as date32, hours as int64 if one exceeds 32 bits.
        """
        from icecomb.format.spec import transform_arrow

        return transform_arrow.apply(self, array)

    def check(self, source: IcebergType, column: str | None = None) -> None:
        """Check that columns of a type can be transformed.

        Args:
            source: The type.
            column: The name of the column, for the error.

        Raises:
            UnsupportedError: If no transform does, as values of the type cannot be compared.
            ValidationError: If the transform does not apply to columns of this type.
        """
        if isinstance(source, OPAQUE_TYPES) and not self.can_transform(source):
            raise UnsupportedError(
                f"Cannot partition or sort by {'a column' if column is None else repr(column)} of "
                f"type {source}: such values cannot be compared",
                hint="Partition and sort by other columns.",
                column=column,
            )
        if not self.can_transform(source):
            named = "a column" if column is None else f"column {column!r}"
            raise ValidationError(
                f"Cannot apply transform {self} to {named} of type {source}",
                hint="Choose a transform that fits the type.",
            )

    def to_human_string(self, source: IcebergType, value: Any) -> str:
        """Return a partition value as text, as in partition paths and listings.

        Args:
            source: The type of the source column.
            value: The partition value, not the column's.
        """
        return human_string(self.result_type(source), value)

    def to_json(self) -> str:
        """Return the transform as in metadata files."""
        return str(self)

    def _apply(self, value: Any, source: IcebergType) -> Any:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class IdentityTransform(Transform):
    """The value itself."""

    @property
    def preserves_order(self) -> bool:
        return True

    def satisfies_order_of(self, other: Transform) -> bool:
        return other.preserves_order

    def can_transform(self, source: IcebergType) -> bool:
        return source.is_primitive and not isinstance(source, OPAQUE_TYPES)

    def result_type(self, source: IcebergType) -> PrimitiveType:
        return _primitive(self, source)

    def _apply(self, value: Any, source: IcebergType) -> Any:  # noqa: ARG002
        return value

    def __str__(self) -> str:
        return "identity"


@dataclass(frozen=True, slots=True)
class BucketTransform(Transform):
    """A 32-bit Murmur3 hash of the value, modulo the number of buckets.

    Args:
        num_buckets: The number of buckets, at least 1.
    """

    num_buckets: int

    def __post_init__(self) -> None:
        buckets = checked_int("number of buckets", self.num_buckets, 1)
        object.__setattr__(self, "num_buckets", buckets)

    def can_transform(self, source: IcebergType) -> bool:
        return isinstance(source, _BUCKET_SOURCES)

    def result_type(self, source: IcebergType) -> PrimitiveType:  # noqa: ARG002
        return IntegerType()

    def _apply(self, value: Any, source: IcebergType) -> Any:
        if isinstance(source, NANO_TYPES):
            # so that a column of microseconds has the same buckets
            value //= NANOS_PER_MICRO
        return (bucket_hash(value) & _MAX_INT) % self.num_buckets

    def __str__(self) -> str:
        return f"bucket[{self.num_buckets}]"


@dataclass(frozen=True, slots=True)
class TruncateTransform(Transform):
    """Numbers rounded down to a multiple, or text and bytes cut to a length.

    Args:
        width: The step for numbers (for decimals, of the unscaled value), or the number of code
            points of text or of bytes of binary; at least 1.
    """

    width: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "width", checked_int("width of truncate", self.width, 1))

    @property
    def preserves_order(self) -> bool:
        return True

    def satisfies_order_of(self, other: Transform) -> bool:
        return isinstance(other, TruncateTransform) and (
            # Larger steps of numbers contain smaller ones, longer prefixes of text refine shorter
            # ones; the source type is not known here, so only equal widths are certain.
            self.width == other.width
        )

    def can_transform(self, source: IcebergType) -> bool:
        return isinstance(source, _TRUNCATE_SOURCES)

    def result_type(self, source: IcebergType) -> PrimitiveType:
        return _primitive(self, source)

    def _apply(self, value: Any, source: IcebergType) -> Any:
        if isinstance(value, (str, bytes)):
            return value[: self.width]
        if isinstance(value, Decimal):
            return truncate_decimal(value, self.width)
        # Integers wrap around at the lowest values, as in the reference implementation.
        bits = 32 if isinstance(source, IntegerType) else 64
        half = 1 << (bits - 1)
        return (value - value % self.width + half) % (1 << bits) - half

    def __str__(self) -> str:
        return f"truncate[{self.width}]"


@dataclass(frozen=True, slots=True)
class TimeTransform(Transform):
    """The base class of year, month, day and hour: units since 1970-01-01, rounded down."""

    unit: ClassVar[str]
    granularity: ClassVar[int]
    _sources: ClassVar[tuple[type, ...]] = (DateType, *TIMESTAMP_TYPES)

    @property
    def preserves_order(self) -> bool:
        return True

    def satisfies_order_of(self, other: Transform) -> bool:
        return isinstance(other, TimeTransform) and self.granularity <= other.granularity

    def can_transform(self, source: IcebergType) -> bool:
        return isinstance(source, self._sources)

    def result_type(self, source: IcebergType) -> PrimitiveType:  # noqa: ARG002
        return IntegerType()

    def _apply(self, value: Any, source: IcebergType) -> Any:
        days = value if isinstance(source, DateType) else value // (24 * units_per_hour(source))
        return self.from_days(days)

    def from_days(self, days: int) -> int:
        """Return the partition value of a day, counted from 1970-01-01."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.unit


@dataclass(frozen=True, slots=True)
class YearTransform(TimeTransform):
    """Years since 1970."""

    unit = "year"
    granularity = 4

    def from_days(self, days: int) -> int:
        return civil_from_days(days)[0] - 1970

    def to_human_string(self, source: IcebergType, value: Any) -> str:  # noqa: ARG002
        return "null" if value is None else f"{1970 + value:04d}"


@dataclass(frozen=True, slots=True)
class MonthTransform(TimeTransform):
    """Months since 1970-01."""

    unit = "month"
    granularity = 3

    def from_days(self, days: int) -> int:
        year, month, _ = civil_from_days(days)
        return (year - 1970) * 12 + month - 1

    def to_human_string(self, source: IcebergType, value: Any) -> str:  # noqa: ARG002
        return "null" if value is None else f"{1970 + value // 12:04d}-{1 + value % 12:02d}"


@dataclass(frozen=True, slots=True)
class DayTransform(TimeTransform):
    """Days since 1970-01-01, as a date."""

    unit = "day"
    granularity = 2

    def result_type(self, source: IcebergType) -> PrimitiveType:  # noqa: ARG002
        """Return the type of the partition values: a date, which is stored as an int."""
        return DateType()

    def from_days(self, days: int) -> int:
        return days


@dataclass(frozen=True, slots=True)
class HourTransform(TimeTransform):
    """Hours since 1970-01-01 00:00."""

    unit = "hour"
    granularity = 1
    _sources = TIMESTAMP_TYPES

    def _apply(self, value: Any, source: IcebergType) -> Any:
        return value // units_per_hour(source)

    def to_human_string(self, source: IcebergType, value: Any) -> str:  # noqa: ARG002
        return "null" if value is None else f"{human_date(value // 24)}-{value % 24:02d}"


@dataclass(frozen=True, slots=True)
class VoidTransform(Transform):
    """Always null: the remainder of a dropped partition field in format version 1."""

    def can_transform(self, source: IcebergType) -> bool:  # noqa: ARG002
        return True

    def result_type(self, source: IcebergType) -> PrimitiveType:
        """Return the type of the partition values, which are all null."""
        return source if isinstance(source, PrimitiveType) else StringType()

    def _apply(self, value: Any, source: IcebergType) -> Any:  # noqa: ARG002
        return None

    def __str__(self) -> str:
        return "void"


@dataclass(frozen=True, slots=True)
class UnknownTransform(Transform):
    """An unknown transform of another writer: tables with it can be read, but not written.

    Args:
        text: The text in the metadata.
    """

    text: str

    def can_transform(self, source: IcebergType) -> bool:  # noqa: ARG002
        """Return True: it is unknown which columns can be transformed, so none is rejected."""
        return True

    def result_type(self, source: IcebergType) -> PrimitiveType:  # noqa: ARG002
        """Return the type of the partition values: string, as the specification requires."""
        return StringType()

    def _apply(self, value: Any, source: IcebergType) -> Any:  # noqa: ARG002
        raise UnsupportedError(
            f"Cannot apply the unknown transform {self.text!r}",
            hint="Write with the engine that partitioned the table, or evolve the partition spec.",
        )

    def __str__(self) -> str:
        return self.text


_BY_NAME: dict[str, Transform] = {
    str(t): t
    for t in (
        IdentityTransform(),
        YearTransform(),
        MonthTransform(),
        DayTransform(),
        HourTransform(),
        VoidTransform(),
    )
}


def as_transform(given: Any) -> Transform:
    """Return a transform, given itself, by its text, or as PyIceberg's."""
    if isinstance(given, Transform):
        return given
    if isinstance(given, str):
        return parse_transform(given)
    if isinstance(raw := json_of_pyiceberg(given), str):
        return parse_transform(raw)
    raise ValidationError(
        f"Not a transform: {given!r}", hint='Give one like DayTransform() or "bucket[16]".'
    )


def parse_transform(text: str) -> Transform:
    """Return the transform of a text in a metadata file, for example `bucket[16]`.

    Raises:
        ValidationError: If a width is zero.
    """
    if (known := _BY_NAME.get(text.lower())) is not None:
        return known
    if match := _WITH_WIDTH.fullmatch(text):
        width = int(match[2])
        return BucketTransform(width) if match[1].lower() == "bucket" else TruncateTransform(width)
    return UnknownTransform(text)


def hint_of_transform(transform: Transform) -> str:
    """Return what to do about a transform that a column cannot have, or that nobody knows."""
    if not isinstance(transform, UnknownTransform):
        return "Choose a transform that fits the type."
    said = transform.text.strip().lower()
    if width := re.fullmatch(r"(bucket|truncate)s?\s*[\[(]\s*(\d+)\s*[\])]", said):
        return f"Did you mean {width[1]}[{width[2]}]?"
    if said.removesuffix("s") in _BY_NAME:
        return f"Did you mean {said.removesuffix('s')}?"
    return f"There are {', '.join(_BY_NAME)}, bucket[n] and truncate[n]."


def units_per_hour(source: IcebergType) -> int:
    """Return an hour in the unit of a timestamp type: micro- or nanoseconds."""
    return MICROS_PER_HOUR * (NANOS_PER_MICRO if isinstance(source, NANO_TYPES) else 1)


def bucket_hash(value: Any) -> int:
    """Return the 32-bit Murmur3 hash of an internal value (spec: Appendix B), signed."""
    import mmh3

    return int(mmh3.hash(hash_bytes(value)))


def hash_bytes(value: Any) -> bytes:
    """Return the bytes of an internal value from which it is hashed (spec: Appendix B)."""
    if isinstance(value, int):
        return value.to_bytes(8, "little", signed=True)
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes):
        return value
    if isinstance(value, Decimal):
        return decimal_bytes(value)
    if isinstance(value, uuid.UUID):
        return value.bytes
    raise ValidationError(
        f"Cannot hash a value of {type(value).__name__}: {value!r}",
        hint="Give a value of a type that bucket accepts.",
    )


def truncate_decimal(value: Decimal, width: int) -> Decimal:
    """Return a decimal rounded down so that its unscaled value is a multiple of a width."""
    number = unscaled(value)
    return scaled(number - number % width, -int(value.as_tuple().exponent))


def human_string(field_type: IcebergType, value: Any) -> str:
    """Return an internal value as the reference implementation prints it in partition paths."""
    if value is None:
        return "null"
    if isinstance(field_type, BooleanType):
        return "true" if value else "false"
    if isinstance(field_type, DateType):
        return human_date(value)
    if isinstance(field_type, TimeType):
        return human_time(value)
    if isinstance(field_type, TimestampType):
        return human_timestamp(value)
    if isinstance(field_type, TimestamptzType):
        return human_timestamptz(value)
    if isinstance(field_type, TimestampNanoType):
        return human_timestamp_ns(value)
    if isinstance(field_type, TimestamptzNanoType):
        return f"{human_timestamp_ns(value)}+00:00"
    if isinstance(field_type, (BinaryType, FixedType)):
        return base64.b64encode(value).decode()
    if isinstance(field_type, (FloatType, DoubleType)):
        return _java_float(value, single=isinstance(field_type, FloatType))
    return str(value)


def _java_float(value: float, *, single: bool) -> str:
    if value != value:  # noqa: PLR0124
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    text = _shortest_single(value) if single else repr(value)
    number = Decimal(text)
    if number and not Decimal("0.001") <= abs(number) < Decimal(10_000_000):
        sign, digits, exponent = number.normalize().as_tuple()
        mantissa = "".join(map(str, digits))
        power = int(exponent) + len(digits) - 1
        return f"{'-' if sign else ''}{mantissa[0]}.{mantissa[1:] or '0'}E{power}"
    plain = f"{number:f}"
    return plain if "." in plain else f"{plain}.0"


def _shortest_single(value: float) -> str:
    import struct

    for digits in range(1, 9):
        text = f"{value:.{digits}g}"
        # the greatest value, rounded up, is none
        with suppress(OverflowError):
            if struct.pack("<f", float(text)) == struct.pack("<f", value):
                return text
    return f"{value:.9g}"


def _primitive(transform: Transform, source: IcebergType) -> PrimitiveType:
    if not isinstance(source, PrimitiveType):
        raise ValidationError(
            f"Cannot apply transform {transform} to a column of type {source}",
            hint="Choose a transform that fits the type.",
        )
    return source
