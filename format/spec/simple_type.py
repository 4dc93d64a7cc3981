"""Types without fields inside (spec: Schemas and Data Types, Appendix C).

Types are immutable, hashable values. `str(type)` is the specification's string.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from icecomb.format.argument import MAX_INT, checked_int
from icecomb.format.errors import SchemaError
from icecomb.format.input_limit import FIXED

MAX_DECIMAL_PRECISION = 38
DEFAULT_CRS: Final = "OGC:CRS84"
"""The coordinate reference system of geometries and geographies that state none."""
GEOGRAPHY_ALGORITHMS: Final = ("spherical", "vincenty", "thomas", "andoyer", "karney")

_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)", re.IGNORECASE)
_FIXED = re.compile(r"fixed\[\s*(\d+)\s*\]", re.IGNORECASE)
# the reference system keeps its case; PyIceberg quotes it
_GEOMETRY = re.compile(r"geometry(?:\s*\(\s*'?([^'()]*?)'?\s*\))?", re.IGNORECASE)
_GEOGRAPHY = re.compile(
    r"geography(?:\s*\(\s*'?([^'(),]*?)'?\s*(?:,\s*'?(\w*)'?\s*)?\))?", re.IGNORECASE
)


class IcebergType:
    """The base class of all types."""

    __slots__ = ()

    @property
    def is_primitive(self) -> bool:
        """True if a value is one scalar."""
        return isinstance(self, PrimitiveType)

    @property
    def is_struct(self) -> bool:
        """True if this is a struct."""
        return False

    def to_json(self) -> Any:
        """Return the form in metadata files: a string for a primitive type, else an object."""
        raise NotImplementedError


class PrimitiveType(IcebergType):
    """A type without children."""

    __slots__ = ()
    _name: ClassVar[str]

    def __str__(self) -> str:
        return self._name

    def to_json(self) -> Any:
        """Return the type's string."""
        return str(self)


@dataclass(frozen=True, slots=True, repr=False)
class _Named(PrimitiveType):
    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class BooleanType(_Named):
    """True or false."""

    __slots__ = ()
    _name = "boolean"


class IntegerType(_Named):
    """A 32-bit signed integer; may be promoted to long."""

    __slots__ = ()
    _name = "int"


class LongType(_Named):
    """A 64-bit signed integer."""

    __slots__ = ()
    _name = "long"


class FloatType(_Named):
    """A 32-bit IEEE 754 number; may be promoted to double."""

    __slots__ = ()
    _name = "float"


class DoubleType(_Named):
    """A 64-bit IEEE 754 number."""

    __slots__ = ()
    _name = "double"


class DateType(_Named):
    """A calendar date; its values are days from 1970-01-01."""

    __slots__ = ()
    _name = "date"


class TimeType(_Named):
    """A time of day; its values are microseconds from midnight."""

    __slots__ = ()
    _name = "time"


class TimestampType(_Named):
    """A date and time without zone; its values are microseconds from 1970-01-01 00:00:00."""

    __slots__ = ()
    _name = "timestamp"


class TimestamptzType(_Named):
    """A point in time; its values are microseconds from 1970-01-01 00:00:00 UTC."""

    __slots__ = ()
    _name = "timestamptz"


class TimestampNanoType(_Named):
    """A date and time without zone; its values are nanoseconds from 1970-01-01 00:00:00.

    The years 1678 to 2261 are in range. It belongs to format version 3.
    """

    __slots__ = ()
    _name = "timestamp_ns"


class TimestamptzNanoType(_Named):
    """A point in time; its values are nanoseconds from 1970-01-01 00:00:00 UTC.

    The years 1678 to 2261 are in range. It belongs to format version 3.
    """

    __slots__ = ()
    _name = "timestamptz_ns"


class UnknownType(_Named):
    """A column of which only nulls are known; may be promoted to any type.

    Data files leave it out. It belongs to format version 3.
    """

    __slots__ = ()
    _name = "unknown"


class StringType(_Named):
    """Text, encoded as UTF-8."""

    __slots__ = ()
    _name = "string"


class UUIDType(_Named):
    """A universally unique identifier; its values are `uuid.UUID`."""

    __slots__ = ()
    _name = "uuid"


class BinaryType(_Named):
    """Bytes of any length."""

    __slots__ = ()
    _name = "binary"


@dataclass(frozen=True, slots=True)
class FixedType(PrimitiveType):
    """Bytes of a fixed length.

    Args:
        length: The number of bytes.

    Raises:
        SchemaError: If the length is not an integer, or out of range.
    """

    length: int

    def __post_init__(self) -> None:
        length = checked_int("length of a fixed type", self.length, 0, MAX_INT, SchemaError)
        if length > FIXED.value:
            raise SchemaError(
                f"{length} bytes of a fixed type are more than the limit ({FIXED})",
                hint="Use binary; if the table is really so, set that environment variable.",
            )
        object.__setattr__(self, "length", length)

    def __str__(self) -> str:
        return f"fixed[{self.length}]"

    def __len__(self) -> int:
        return self.length


@dataclass(frozen=True, slots=True)
class DecimalType(PrimitiveType):
    """A decimal number; the precision may grow, the scale never changes.

    Args:
        precision: The number of digits in all, 1 to 38.
        scale: The number of digits after the point, 0 to precision.

    Raises:
        SchemaError: If the numbers are out of range.
    """

    precision: int
    scale: int

    def __post_init__(self) -> None:
        for name in ("precision", "scale"):
            number = checked_int(f"{name} of a decimal", getattr(self, name), error=SchemaError)
            object.__setattr__(self, name, number)
        if not 0 < self.precision <= MAX_DECIMAL_PRECISION or not 0 <= self.scale <= self.precision:
            raise SchemaError(
                f"Invalid type {self}: precision must be 1 to 38 and scale 0 to precision",
                hint="Give a precision and a scale in those ranges.",
            )

    def __str__(self) -> str:
        return f"decimal({self.precision}, {self.scale})"


@dataclass(frozen=True, slots=True)
class GeometryType(PrimitiveType):
    """Shapes on a plane, as well-known binary; they can neither be read nor written.

    It belongs to format version 3.

    Args:
        crs: The coordinate reference system of the coordinates.

    Raises:
        SchemaError: If the reference system is empty, or contains characters that end it.
    """

    crs: str = DEFAULT_CRS

    def __post_init__(self) -> None:
        _check_crs(self.crs)

    def __str__(self) -> str:
        # the short form is the one that all readers parse
        return "geometry" if self.crs == DEFAULT_CRS else f"geometry({self.crs})"


@dataclass(frozen=True, slots=True)
class GeographyType(PrimitiveType):
    """Shapes on a globe, as well-known binary; they can neither be read nor written.

    It belongs to format version 3.

    Args:
        crs: The coordinate reference system of the coordinates.
        algorithm: The way in which the edges between points are computed.

    Raises:
        SchemaError: If the algorithm is unknown, or the reference system is empty or contains
            characters that end it.
    """

    crs: str = DEFAULT_CRS
    algorithm: str = GEOGRAPHY_ALGORITHMS[0]

    def __post_init__(self) -> None:
        _check_crs(self.crs)
        if self.algorithm not in GEOGRAPHY_ALGORITHMS:
            raise SchemaError(
                f"Unknown algorithm of a geography: {self.algorithm!r}",
                hint=f"Choose one of {', '.join(GEOGRAPHY_ALGORITHMS)}.",
            )

    def __str__(self) -> str:
        if self.algorithm != GEOGRAPHY_ALGORITHMS[0]:
            return f"geography({self.crs}, {self.algorithm})"
        return "geography" if self.crs == DEFAULT_CRS else f"geography({self.crs})"


class VariantType(IcebergType):
    """A value with a type of its own (Parquet: Variant Binary Encoding).

    It belongs to format version 3, and is not primitive.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VariantType)

    def __hash__(self) -> int:
        return hash(VariantType)

    def __repr__(self) -> str:
        return "VariantType()"

    def __str__(self) -> str:
        return "variant"

    def to_json(self) -> Any:
        """Return the type's string."""
        return "variant"


V3_TYPES: Final = frozenset(
    (
        TimestampNanoType,
        TimestamptzNanoType,
        UnknownType,
        VariantType,
        GeometryType,
        GeographyType,
    )
)
"""The types of format version 3."""
SHAPE_TYPES: Final = (GeometryType, GeographyType)
"""The types whose values icecomb neither reads nor writes."""
OPAQUE_TYPES: Final = (VariantType, *SHAPE_TYPES)
"""The types whose values icecomb does not compare."""
ZONED_TYPES: Final = (TimestamptzType, TimestamptzNanoType)
"""The types of points in time."""
NANO_TYPES: Final = (TimestampNanoType, TimestamptzNanoType)
"""The types whose values are nanoseconds."""
TIMESTAMP_TYPES: Final = (TimestampType, TimestamptzType, *NANO_TYPES)
"""The types of dates with times, with and without a zone."""


_BY_NAME: Final[dict[str, IcebergType]] = {
    str(named): named
    for named in (
        BooleanType(),
        IntegerType(),
        LongType(),
        FloatType(),
        DoubleType(),
        DateType(),
        TimeType(),
        TimestampType(),
        TimestamptzType(),
        TimestampNanoType(),
        TimestamptzNanoType(),
        UnknownType(),
        StringType(),
        UUIDType(),
        BinaryType(),
        VariantType(),
    )
}


def parse_simple_type(text: str) -> IcebergType:
    """Read a type that the specification writes as a string: all but struct, list and map."""
    stripped = text.strip()
    if (known := _BY_NAME.get(stripped) or _BY_NAME.get(stripped.lower())) is not None:
        return known
    if match := _DECIMAL.fullmatch(stripped):
        return DecimalType(int(match[1]), int(match[2]))
    if match := _FIXED.fullmatch(stripped):
        return FixedType(int(match[1]))
    if match := _GEOMETRY.fullmatch(stripped):
        return GeometryType(DEFAULT_CRS if match[1] is None else match[1])
    if match := _GEOGRAPHY.fullmatch(stripped):
        crs = DEFAULT_CRS if match[1] is None else match[1]
        return GeographyType(crs, (match[2] or GEOGRAPHY_ALGORITHMS[0]).lower())
    raise SchemaError(
        f"Unknown type: {text!r}",
        hint="Write it as in the specification, such as long, decimal(9, 2) or fixed[16].",
    )


def _check_crs(crs: str) -> None:
    if not isinstance(crs, str) or not crs or set(crs) & set("(),'"):
        raise SchemaError(
            f"Not a coordinate reference system: {crs!r}",
            hint='Name it, such as "EPSG:3857" or "projjson:<table property>".',
        )
