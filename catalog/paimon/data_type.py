"""Paimon's data types and their text and JSON forms (Paimon docs: Data Types; Spec: Schema)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from icecomb.format.errors import SchemaError
from icecomb.format.spec.values.json_object import extra_field

MAX_LENGTH: Final = 2_147_483_647
"""The length of STRING and BYTES."""
LOCAL_ZONED: Final = "TIMESTAMP_LTZ"

_LENGTHS: Final = {"CHAR": 1, "VARCHAR": 1, "BINARY": 1, "VARBINARY": 1}
_PRECISIONS: Final = {"TIME": 9, "TIMESTAMP": 9, LOCAL_ZONED: 9}
PLAIN: Final = frozenset(
    (
        *("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DATE"),
        *("VARIANT", "BLOB"),
    )
)
"""The roots of types without parameters."""


@dataclass(frozen=True, slots=True)
class DataType:
    """The base of all types, with whether their values may be null."""

    nullable: bool

    def to_json(self) -> Any:
        """Return the type as in schema files: text for an atomic type, else an object."""
        raise NotImplementedError

    def with_nullable(self, nullable: bool) -> DataType:  # noqa: FBT001 - the one thing it sets
        """Return the same type with or without NOT NULL."""
        extra = getattr(self, "extra", {})
        if "nullable" in extra:  # PyPaimon writes it twice
            return replace(self, nullable=nullable, extra={**extra, "nullable": nullable})  # type: ignore[call-arg]
        return replace(self, nullable=nullable)

    def _marked(self, text: str) -> str:
        return text if self.nullable else f"{text} NOT NULL"


@dataclass(frozen=True, slots=True)
class AtomicType(DataType):
    """A type without children.

    Attributes:
        root: The name without parameters; `VARCHAR` for STRING, `VARBINARY` for BYTES,
            `TIMESTAMP_LTZ` for TIMESTAMP WITH LOCAL TIME ZONE.
        parameters: Length, or precision, or precision and scale.
    """

    root: str
    parameters: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.root in _LENGTHS and not 1 <= self.parameters[0] <= MAX_LENGTH:
            raise SchemaError(
                f"{self}: a length is 1 to {MAX_LENGTH}", hint="Give a length in that range."
            )
        if self.root in _PRECISIONS and not 0 <= self.parameters[0] <= _PRECISIONS[self.root]:
            raise SchemaError(
                f"{self}: a precision is 0 to {_PRECISIONS[self.root]}",
                hint="Give a precision in that range.",
            )
        if self.root == "DECIMAL":
            precision, scale = self.parameters
            if not 1 <= precision <= 38 or not 0 <= scale <= precision:
                raise SchemaError(
                    f"{self}: precision is 1 to 38, scale 0 to the precision",
                    hint="Give a precision and a scale in those ranges.",
                )

    def __str__(self) -> str:
        return self._marked(self._text())

    def _text(self) -> str:
        if self.parameters == (MAX_LENGTH,) and self.root in {"VARCHAR", "VARBINARY"}:
            return "STRING" if self.root == "VARCHAR" else "BYTES"
        if self.root == LOCAL_ZONED:
            return f"TIMESTAMP({self.parameters[0]}) WITH LOCAL TIME ZONE"
        if not self.parameters:
            return self.root
        return f"{self.root}({', '.join(map(str, self.parameters))})"

    def to_json(self) -> Any:
        """Return the type's text."""
        return str(self)


@dataclass(frozen=True, slots=True)
class ArrayType(DataType):
    """A list of elements."""

    element: DataType
    extra: Mapping[str, Any] = extra_field()

    def __str__(self) -> str:
        return self._marked(f"ARRAY<{self.element}>")

    def to_json(self) -> Any:
        """Return the type as in schema files."""
        return {"type": self._marked("ARRAY"), "element": self.element.to_json(), **self.extra}


@dataclass(frozen=True, slots=True)
class MultisetType(DataType):
    """A bag of elements, each with its number of occurrences."""

    element: DataType
    extra: Mapping[str, Any] = extra_field()

    def __str__(self) -> str:
        return self._marked(f"MULTISET<{self.element}>")

    def to_json(self) -> Any:
        """Return the type as in schema files."""
        return {"type": self._marked("MULTISET"), "element": self.element.to_json(), **self.extra}


@dataclass(frozen=True, slots=True)
class VectorType(DataType):
    """A list of a fixed number of elements."""

    element: DataType
    length: int
    extra: Mapping[str, Any] = extra_field()

    def __str__(self) -> str:
        return self._marked(f"VECTOR<{self.element}, {self.length}>")

    def to_json(self) -> Any:
        """Return the type as in schema files."""
        element = self.element.to_json()
        return {
            "type": self._marked("VECTOR"),
            "element": element,
            "length": self.length,
            **self.extra,
        }


@dataclass(frozen=True, slots=True)
class MapType(DataType):
    """A map."""

    key: DataType
    value: DataType
    extra: Mapping[str, Any] = extra_field()

    def __str__(self) -> str:
        return self._marked(f"MAP<{self.key}, {self.value}>")

    def to_json(self) -> Any:
        """Return the type as in schema files."""
        key, value = self.key.to_json(), self.value.to_json()
        return {"type": self._marked("MAP"), "key": key, "value": value, **self.extra}


@dataclass(frozen=True, slots=True)
class DataField:
    """A column, or a field of a ROW.

    Attributes:
        field_id: The id, which finds the field in files of older schemas whatever its name.
        name: The name, unique among siblings.
        default_value: The text of the value that writers use where none is given.
        extra: Members unknown to icecomb, which are written back.
    """

    field_id: int
    name: str
    field_type: DataType
    description: str | None = None
    default_value: str | None = None
    extra: Mapping[str, Any] = extra_field()

    def __str__(self) -> str:
        doc = f" COMMENT '{self.description}'" if self.description else ""
        return f"{self.name} {self.field_type}{doc}"

    def to_json(self) -> dict[str, Any]:
        """Return the field as in schema files."""
        out = {"id": self.field_id, "name": self.name, "type": self.field_type.to_json()}
        if self.description is not None:
            out["description"] = self.description
        if self.default_value is not None:
            out["defaultValue"] = self.default_value
        return {**out, **self.extra}


@dataclass(frozen=True, slots=True)
class RowType(DataType):
    """A tuple of named fields."""

    fields: tuple[DataField, ...]
    extra: Mapping[str, Any] = extra_field()

    def __str__(self) -> str:
        return self._marked(f"ROW<{', '.join(map(str, self.fields))}>")

    def to_json(self) -> Any:
        """Return the type as in schema files."""
        fields = [f.to_json() for f in self.fields]
        return {"type": self._marked("ROW"), "fields": fields, **self.extra}


def children(kind: DataType) -> tuple[DataType, ...]:
    """Return the types directly inside a type, but for the fields of a ROW."""
    if isinstance(kind, ArrayType | MultisetType | VectorType):
        return (kind.element,)
    return (kind.key, kind.value) if isinstance(kind, MapType) else ()


def nested_fields(kind: DataType) -> Iterator[DataField]:
    """Yield all fields of ROWs inside a type, at all depths, outer fields before inner ones."""
    if isinstance(kind, RowType):
        for field in kind.fields:
            yield field
            yield from nested_fields(field.field_type)
    for child in children(kind):
        yield from nested_fields(child)
