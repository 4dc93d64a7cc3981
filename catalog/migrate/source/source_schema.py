"""The Iceberg schema and partition spec of a Hive table.

Partition columns become ordinary columns at the end, as Spark and Hive show them, with an identity
partition field each: the files lack them, so their values come from the partition constants of the
data files. All columns are optional, because Hive does not enforce NOT NULL.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from icecomb.catalog.hive.thrift.entity import FieldSchema, HiveTable
from icecomb.catalog.migrate.source.hive_type import NarrowType, Path, parse_hive_type
from icecomb.catalog.migrate.source.spark_type import parse_spark_field, spark_schema
from icecomb.format.errors import IcecombError
from icecomb.format.spec.partition import PartitionSpec, identity_spec
from icecomb.format.spec.schema import Schema, assign_fresh_schema_ids, children, with_children
from icecomb.format.spec.types import IcebergType, NestedField


@dataclass(frozen=True, slots=True)
class SourceSchema:
    """The Iceberg view of a Hive table's columns.

    Attributes:
        schema: The schema, with fresh field ids, without the columns that have problems.
        spec: Identity on each partition column; unpartitioned if there is none.
        notes: Column name to notes on its conversion.
        problems: The columns that cannot be converted, and why.
    """

    schema: Schema
    spec: PartitionSpec
    notes: Mapping[str, tuple[str, ...]]
    problems: tuple[tuple[str, str], ...]


def source_schema(table: HiveTable, timestamp: str) -> SourceSchema:
    """Return the Iceberg schema and spec of a Hive table; problems are collected, not raised.

    Args:
        table: The table, in whose parameters Spark keeps spelling and exact types.
        timestamp: See `Choices`.
    """
    columns = (*table.storage.columns, *table.partition_keys)
    recorded = _spark_fields(table.parameters, columns)
    fields: list[NestedField] = []
    notes: dict[str, tuple[str, ...]] = {}
    problems: list[tuple[str, str]] = []
    seen: set[str] = set()
    for column in columns:
        if column.name.lower() in seen:
            problems.append((column.name, "the name occurs twice, ignoring case"))
            continue
        seen.add(column.name.lower())
        raw = recorded.get(column.name.lower())
        try:
            field, remarks = _field(column, raw, timestamp)
        except IcecombError as error:
            problems.append((column.name, error.message))
            continue
        fields.append(field)
        if remarks:
            notes[field.name] = remarks
    schema = assign_fresh_schema_ids(Schema(_numbered(fields)))
    keys = (key.name for key in table.partition_keys)
    known = [schema.find_field(k, False) for k in keys if schema.contains(k, case_sensitive=False)]
    return SourceSchema(schema, identity_spec(known), notes, tuple(problems))


def narrow_columns(table: HiveTable) -> dict[Path, NarrowType]:
    """Return the types of a Hive table's columns that hold less than those of Iceberg."""
    found: dict[Path, NarrowType] = {}
    for column in table.storage.columns:
        with suppress(IcecombError):
            narrow = parse_hive_type(column.type).narrow
            found |= {(column.name.lower(), *path): kind for path, kind in narrow.items()}
    return found


def _field(
    column: FieldSchema, recorded: Mapping[str, Any] | None, timestamp: str
) -> tuple[NestedField, tuple[str, ...]]:
    plain = parse_hive_type(column.type, timestamp=timestamp)
    doc = column.comment or None
    if recorded is None:
        return NestedField(0, column.name, plain.type, doc=doc), plain.notes
    try:
        field, notes = parse_spark_field(recorded, timestamp=timestamp)
    except IcecombError:
        return NestedField(0, column.name, plain.type, doc=doc), plain.notes
    if _shape(field.field_type) != _shape(plain.type):
        note = f"{column.type} in the metastore counts, not {field.field_type} as Spark recorded"
        return NestedField(0, column.name, plain.type, doc=doc), (*plain.notes, note)
    return replace(field, doc=doc or field.doc), notes


def _spark_fields(
    parameters: Mapping[str, str], columns: Iterable[FieldSchema]
) -> dict[str, Mapping[str, Any]]:
    try:
        raw = spark_schema(parameters)
    except IcecombError:
        return {}
    if raw is None:
        return {}
    fields = {str(field["name"]).lower(): field for field in raw["fields"]}
    # Hive altered the table since Spark recorded the schema: Spark falls back then, too.
    return fields if list(fields) == [column.name.lower() for column in columns] else {}


def _shape(field_type: IcebergType) -> Any:
    inner = children(field_type)
    if not inner:
        # Hive has one timestamp type: whether Spark's has a zone is not a contradiction.
        return "timestamp" if str(field_type).startswith("timestamp") else str(field_type)
    return type(field_type).__name__, [(f.name.lower(), _shape(f.field_type)) for f in inner]


def _numbered(fields: Iterable[NestedField]) -> tuple[NestedField, ...]:
    numbers = count(1)

    def numbered(field: NestedField) -> NestedField:
        number = next(numbers)
        inner = [numbered(child) for child in children(field.field_type)]
        return replace(field, field_id=number, field_type=with_children(field.field_type, inner))

    return tuple(numbered(field) for field in fields)
