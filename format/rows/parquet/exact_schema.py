"""A check that a Parquet file's columns are exactly a table's, so that row groups can be copied.

Columns that readers would convert (promoted types, other units of time, two-level lists), fill from
elsewhere (added columns) or leave out are not exact. Names do not count: Iceberg goes by field ids,
and files without ids get them from the table's name mapping, as in readers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow.parquet as pq

from icecomb.format.rows.parquet.compact_protocol import BINARY, I32, Struct
from icecomb.format.rows.parquet.raw_footer import (
    CONVERTED,
    FIELD_ID,
    LOGICAL,
    NAME,
    NUM_CHILDREN,
    REPEATED,
    REPETITION,
    NotCopyableError,
)
from icecomb.format.rows.values.arrow_projection import FileField
from icecomb.format.rows.values.arrow_values import reading_cast
from icecomb.format.rows.values.statistics import logical_type
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UnknownType,
    UUIDType,
    VariantType,
)

_REQUIRED, _OPTIONAL = range(2)
_PLAIN: Final[tuple[str, dict[str, Any]]] = ("None", {})
_MICROS: Final = {"timeUnit": "microseconds"}
_NANOS: Final = {"timeUnit": "nanoseconds"}
_FORMS: Final[dict[type[PrimitiveType], tuple[str, tuple[tuple[str, dict[str, Any]], ...]]]] = {
    BooleanType: ("BOOLEAN", (_PLAIN,)),
    IntegerType: ("INT32", (_PLAIN, ("Int", {"bitWidth": 32, "isSigned": True}))),
    LongType: ("INT64", (_PLAIN, ("Int", {"bitWidth": 64, "isSigned": True}))),
    FloatType: ("FLOAT", (_PLAIN,)),
    DoubleType: ("DOUBLE", (_PLAIN,)),
    DateType: ("INT32", (("Date", {}),)),
    TimeType: ("INT64", (("Time", _MICROS),)),
    TimestampType: ("INT64", (("Timestamp", {**_MICROS, "isAdjustedToUTC": False}),)),
    TimestamptzType: ("INT64", (("Timestamp", {**_MICROS, "isAdjustedToUTC": True}),)),
    TimestampNanoType: ("INT64", (("Timestamp", {**_NANOS, "isAdjustedToUTC": False}),)),
    TimestamptzNanoType: ("INT64", (("Timestamp", {**_NANOS, "isAdjustedToUTC": True}),)),
    StringType: ("BYTE_ARRAY", (("String", {}),)),
    UUIDType: ("FIXED_LEN_BYTE_ARRAY", (("UUID", {}),)),
    BinaryType: ("BYTE_ARRAY", (_PLAIN,)),
    FixedType: ("FIXED_LEN_BYTE_ARRAY", (_PLAIN,)),
}
"""The physical type of each type, and its possible annotations (spec: Parquet)."""
_VARIANT_PARTS: Final = ("metadata", "value")
_DECIMALS: Final = frozenset({"INT32", "INT64", "FIXED_LEN_BYTE_ARRAY"})


def exact_elements(
    elements: Sequence[Struct],
    fields: Sequence[FileField],
    columns: pq.ParquetSchema,
    schema: Schema,
) -> list[Struct]:
    """Return the schema of a file, depth-first, with the table's names and field ids.

    It raises NotCopyableError if a column is not exactly the table's.
    """
    return _Comparison(elements, columns).all(fields, schema)


class _Comparison:
    def __init__(self, elements: Sequence[Struct], columns: pq.ParquetSchema) -> None:
        self._elements = elements
        self._columns = columns
        self._at = 0
        self._found: list[Struct] = []

    def all(self, fields: Sequence[FileField], schema: Schema) -> list[Struct]:
        root = self._next("table")
        root.drop(FIELD_ID, REPETITION)
        self._fields(fields, schema.fields, "")
        return self._found

    def _fields(
        self, found: Sequence[FileField], wanted: Sequence[NestedField], before: str
    ) -> None:
        wanted = [f for f in wanted if not isinstance(f.field_type, UnknownType)]
        ids = [f.field_id for f in found]
        if ids != [f.field_id for f in wanted]:
            where = f" in {before.rstrip('.')}" if before else ""
            names = ", ".join(f"{f.name} ({f.field_id})" for f in found)
            raise NotCopyableError(
                f"its columns{where} are not the table's current columns in order: {names}"
            )
        for f, field in zip(found, wanted, strict=True):
            self._field(f, field, f"{before}{field.name}")

    def _field(self, found: FileField, field: NestedField, path: str) -> None:
        element = self._next(field.name, field.field_id)
        # Iceberg's writer in Spark makes columns required that cannot be null in a query.
        allowed = {_REQUIRED} if field.required else {_REQUIRED, _OPTIONAL}
        if element.get(REPETITION) not in allowed:
            raise NotCopyableError(f"column {path} is not required in it, or repeated")
        kind = field.field_type
        if isinstance(kind, StructType):
            if element.get(NUM_CHILDREN, 0) != len(found.children) or _annotated(element):
                raise NotCopyableError(f"column {path} is {found.arrow_type} in it")
            self._fields(found.children, kind.fields, f"{path}.")
        elif isinstance(kind, ListType):
            self._repeated(found, "list", 1, path)
            self._field(found.children[0], kind.element_field, f"{path}.element")
        elif isinstance(kind, MapType):
            self._repeated(found, "key_value", 2, path)
            key, value = found.children
            self._field(key, kind.key_field, f"{path}.key")
            self._field(value, kind.value_field, f"{path}.value")
        elif isinstance(kind, VariantType):
            self._variant(found, element, path)
        else:
            if found.children or not isinstance(kind, PrimitiveType):
                raise NotCopyableError(f"column {path} is {found.arrow_type} in it")
            self._value(found, kind, path)

    def _repeated(self, found: FileField, name: str, children: int, path: str) -> None:
        """Match the group that the specification requires between a list or map and its content."""
        outer = self._found[-1]
        element = self._next(name)
        right = (
            outer.get(NUM_CHILDREN) == 1
            and _annotated(outer)
            and element.get(REPETITION) == REPEATED
            and element.get(NUM_CHILDREN) == children
            and self._name == name
            and len(found.children) == children
        )
        if not right:
            raise NotCopyableError(f"column {path} is not nested as Iceberg nests it")
        element.drop(FIELD_ID)

    def _variant(self, found: FileField, element: Struct, path: str) -> None:
        """Match the group of a variant, which must not be shredded: variants are written whole."""
        parts = [child.name for child in found.children]
        if sorted(parts) != list(_VARIANT_PARTS) or not _annotated(element):
            raise NotCopyableError(f"column {path} is shredded in it, or not a variant")
        for child in found.children:
            part = self._next(child.name)
            part.drop(FIELD_ID)
            column = self._columns.column(child.leaves[0])
            if part.get(REPETITION) != _REQUIRED or column.physical_type != "BYTE_ARRAY":
                raise NotCopyableError(f"column {path} is {found.arrow_type} in it")

    def _value(self, found: FileField, kind: PrimitiveType, path: str) -> None:
        reading_cast(found.arrow_type, kind, path)
        column = self._columns.column(found.leaves[0])
        logical = logical_type(column)
        if isinstance(kind, DecimalType):
            exact = (
                column.physical_type in _DECIMALS
                and logical["Type"] == "Decimal"
                and (column.precision, column.scale) == (kind.precision, kind.scale)
            )
        else:
            physical, annotations = _FORMS.get(type(kind), ("", ()))
            exact = column.physical_type == physical and any(
                logical["Type"] == name and more.items() <= logical.items()
                for name, more in annotations
            )
        if isinstance(kind, FixedType):
            exact = exact and column.length == len(kind)
        if not exact:
            raise NotCopyableError(
                f"column {path} is {column.physical_type} {column.logical_type} in it, "
                f"{kind} in the table"
            )

    def _next(self, name: str, field_id: int | None = None) -> Struct:
        """Return the next element, with its name and id in the table."""
        if self._at >= len(self._elements):
            raise NotCopyableError("its schema has fewer columns than the table")
        original = self._elements[self._at]
        self._at += 1
        self._name = original[NAME].decode(errors="replace")
        element = original.copy()
        element.put(NAME, BINARY, name.encode())
        if field_id is not None:
            element.put(FIELD_ID, I32, field_id)
        self._found.append(element)
        return element


def _annotated(element: Struct) -> bool:
    return LOGICAL in element or CONVERTED in element
