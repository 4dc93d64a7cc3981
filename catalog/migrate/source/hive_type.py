"""Hive's type strings, such as ``map<string,array<decimal(10,2)>>``, as Iceberg types.

The grammar is that of Hive's TypeInfoUtils; the mapping is Iceberg Java's (HiveSchemaConverter with
``autoConvert``). Field ids are placeholders: `assign_fresh_schema_ids` assigns the real ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from icecomb.format.errors import UnsupportedError, ValidationError
from icecomb.format.input_limit import one_level
from icecomb.format.spec.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestamptzNanoType,
    TimestamptzType,
    as_type,
)

_PLAIN: Final[dict[str, IcebergType]] = {
    "boolean": BooleanType(),
    "tinyint": IntegerType(),
    "smallint": IntegerType(),
    "int": IntegerType(),
    "integer": IntegerType(),
    "bigint": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "double precision": DoubleType(),
    "date": DateType(),
    "string": StringType(),
    "char": StringType(),
    "varchar": StringType(),
    "binary": BinaryType(),
}
_INSTANTS: Final = frozenset(("timestamp with local time zone", "timestamplocaltz"))
CHAR_NOTE: Final = "char(n) becomes string: its length is no longer enforced"
"""The note on a column that is or contains a ``char(n)``."""
_NOTES: Final = {
    "tinyint": "tinyint becomes int: Iceberg has no narrower integer",
    "smallint": "smallint becomes int: Iceberg has no narrower integer",
    "char": CHAR_NOTE,
    "varchar": "varchar(n) becomes string: its length is no longer enforced",
}
_DEFAULT_DECIMAL: Final = (10, 0)
"""Precision and scale of Hive's ``decimal`` without arguments."""
_BITS: Final = {"tinyint": 8, "smallint": 16}
_DIGITS: Final = 9
"""The most digits of a number in a type."""
_TEXTS: Final = frozenset(("char", "varchar"))
ELEMENT: Final = ("element",)
KEY: Final = ("key",)
VALUE: Final = ("value",)
_TOKEN: Final = re.compile(r"\s*(`(?:[^`]|``)*`|[<>(),:]|[^<>(),:`]+)")


Path: TypeAlias = tuple[str, ...]
"""The names of a nested field from the column on, in lower case; `ELEMENT`, `KEY` and `VALUE`."""


@dataclass(frozen=True, slots=True)
class NarrowType:
    """A type of Hive's that holds less than the Iceberg type it becomes.

    Of longer texts in files Hive shows the first characters, of integers out of range null.

    Attributes:
        bits: Number of bits of an integer; 0 for texts.
        length: Maximum number of characters of a text; 0 for integers.
    """

    name: str
    bits: int = 0
    length: int = 0

    @property
    def padded(self) -> bool:
        """True if blanks at the end of a text do not count."""
        return self.name.startswith("char")

    @property
    def bounds(self) -> tuple[int, int]:
        """The least and the greatest integer."""
        return -(1 << self.bits - 1), (1 << self.bits - 1) - 1

    def holds(self, value: int | str) -> bool:
        """Return whether Hive shows a value of a file unchanged."""
        if isinstance(value, int):
            least, greatest = self.bounds
            return least <= value <= greatest
        return len(value.rstrip(" ") if self.padded else value) <= self.length


@dataclass(frozen=True, slots=True)
class Converted:
    """An Iceberg type converted from Hive's, and what was lost or chosen.

    Attributes:
        type: The Iceberg type, all nested fields optional.
        narrow: The types in it that hold less in Hive.
    """

    type: IcebergType
    notes: tuple[str, ...] = ()
    narrow: Mapping[Path, NarrowType] = field(default_factory=dict)


def parse_hive_type(text: str, *, timestamp: str = "timestamptz") -> Converted:
    """Return the Iceberg type of a Hive type string.

    Args:
        timestamp: Type for Hive's ``timestamp``: "timestamptz" (as in Iceberg Java's migrate)
            or "timestamp", or one of these in nanoseconds, which instants then have, too.
    """
    parser = _Parser(text, timestamp)
    result = parser.type()
    parser.end()
    return Converted(result, tuple(dict.fromkeys(parser.notes)), parser.narrow)


@dataclass(slots=True)
class _Parser:
    text: str
    timestamp: str
    notes: list[str] = field(default_factory=list)
    narrow: dict[Path, NarrowType] = field(default_factory=dict)
    path: Path = ()
    tokens: list[str] = field(init=False)
    at: int = 0

    def __post_init__(self) -> None:
        self.tokens = list(_tokens(self.text))

    def type(self) -> IcebergType:
        name = self._next().strip().lower()
        if name == "array":
            return ListType(0, self._arguments(ELEMENT)[0])
        if name == "map":
            key, value = self._arguments(KEY, VALUE)
            return MapType(0, key, 0, value)
        if name == "struct":
            return self._struct()
        numbers = self._numbers()
        if name in {"decimal", "numeric"}:
            precision, scale = (*numbers, *_DEFAULT_DECIMAL[len(numbers) :])
            return DecimalType(precision, scale)
        if name == "timestamp":
            return as_type(self.timestamp)
        if name in _INSTANTS:
            return TimestamptzNanoType() if self.timestamp.endswith("_ns") else TimestamptzType()
        if name not in _PLAIN:
            raise UnsupportedError(
                f"Hive type {name} has no equal in Iceberg",
                hint="Convert or drop the column first.",
            )
        if name in _NOTES:
            self.notes.append(_NOTES[name])
        if name in _BITS:
            self.narrow[self.path] = NarrowType(name, bits=_BITS[name])
        elif name in _TEXTS and numbers:
            self.narrow[self.path] = NarrowType(f"{name}({numbers[0]})", length=numbers[0])
        return _PLAIN[name]

    def end(self) -> None:
        if self.at != len(self.tokens):
            raise self._broken()

    def _struct(self) -> StructType:
        fields: list[NestedField] = []
        self._expect("<")
        while True:
            name = _unquoted(self._next())
            self._expect(":")
            fields.append(NestedField(0, name, self._inner((name.lower(),))))
            if self._next() == ">":
                return StructType(tuple(fields))
            self.at -= 1
            self._expect(",")

    def _inner(self, part: Path) -> IcebergType:
        around, self.path = self.path, self.path + part
        with one_level():
            result = self.type()
        self.path = around
        return result

    def _arguments(self, first: Path, *others: Path) -> list[IcebergType]:
        self._expect("<")
        result = [self._inner(first)]
        for part in others:
            self._expect(",")
            result.append(self._inner(part))
        self._expect(">")
        return result

    def _numbers(self) -> list[int]:
        if self.at == len(self.tokens) or self.tokens[self.at] != "(":
            return []
        numbers: list[int] = []
        while self._next() in {"(", ","}:
            number = self._next().strip()
            if not (number.isascii() and number.isdigit() and len(number) <= _DIGITS):
                raise self._broken()
            numbers.append(int(number))
        if self.tokens[self.at - 1] != ")":
            raise self._broken()
        return numbers

    def _expect(self, token: str) -> None:
        if self._next() != token:
            raise self._broken()

    def _next(self) -> str:
        if self.at == len(self.tokens):
            raise self._broken()
        self.at += 1
        return self.tokens[self.at - 1]

    def _broken(self) -> ValidationError:
        return ValidationError(f"{self.text!r} is not a Hive type", hint="See DESCRIBE in Hive.")


def _tokens(text: str) -> Iterator[str]:
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ValidationError(f"{text!r} is not a Hive type", hint="See DESCRIBE in Hive.")
        yield match[1]
        at = match.end()


def _unquoted(name: str) -> str:
    name = name.strip()
    return name[1:-1].replace("``", "`") if name.startswith("`") else name
