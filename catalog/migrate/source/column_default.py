"""Default values of columns in Spark's own tables, which only Spark knows.

In rows of files that lack a column Spark reads ``EXISTS_DEFAULT``; where a statement gives no value
it writes ``CURRENT_DEFAULT`` (ResolveDefaultColumns). Both stand in the metadata of top-level
columns in Spark's schema of the table, as SQL. Iceberg has both from format version 3 on, if they
are constants: the initial and the write default.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

from icecomb.catalog.hive.thrift.entity import HiveTable
from icecomb.catalog.migrate.source.spark_type import spark_schema
from icecomb.format.errors import IcecombError
from icecomb.format.evolution.schema_edit import given_default
from icecomb.format.expressions.sql.parser import constant_of
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import NestedField

_READ: Final = "EXISTS_DEFAULT"
_WRITTEN: Final = "CURRENT_DEFAULT"


@dataclass(frozen=True, slots=True)
class ColumnDefaults:
    """Spark's default values of a table's columns.

    Attributes:
        read: The SQL of values in rows of files that lack a column, by its name in lower case.
        written: The SQL of values where a statement gives none; likewise.
    """

    read: Mapping[str, str]
    written: Mapping[str, str]

    def in_schema(self, schema: Schema) -> Schema:
        """Return a schema with those default values that are constants of their columns' types."""
        return Schema(tuple(map(self._in_field, schema.fields)), schema.schema_id)

    def values(self, schema: Schema) -> dict[str, Any]:
        """Return the internal values in rows of files that lack a column, by lower-case name."""
        fields = {field.name.lower(): field for field in schema.fields}
        values = {
            name: _value(fields[name], sql) for name, sql in self.read.items() if name in fields
        }
        return {name: value for name, value in values.items() if value is not None}

    def _in_field(self, field: NestedField) -> NestedField:
        name = field.name.lower()
        return replace(
            field,
            initial_default=_value(field, self.read.get(name)),
            write_default=_value(field, self.written.get(name)),
        )


def column_defaults(table: HiveTable) -> ColumnDefaults:
    """Return Spark's default values of a table's columns that are not null."""
    keys = {key.name.lower() for key in table.partition_keys}
    read: dict[str, str] = {}
    written: dict[str, str] = {}
    raw = None
    with suppress(IcecombError):
        raw = spark_schema(table.parameters)
    for field in raw["fields"] if raw is not None else ():
        name = str(field["name"]).lower()
        told = field.get("metadata") or {}
        for key, found in ((_READ, read), (_WRITTEN, written)):
            sql = told.get(key)
            if isinstance(sql, str) and name not in keys and not _is_null(sql):
                found[name] = sql
    return ColumnDefaults(read, written)


def lost_defaults(schema: Schema, defaults: ColumnDefaults) -> frozenset[str]:
    """Return the names, in lower case, of columns whose default in old files a schema lacks."""
    kept = {f.name.lower() for f in schema.fields if f.initial_default is not None}
    return frozenset(defaults.read.keys() - kept)


def _value(field: NestedField, sql: str | None) -> Any:
    """Return a default as an internal value; None if it is not a constant of the field's type."""
    with suppress(IcecombError):
        return None if sql is None else given_default(field.field_type, constant_of(sql, ""), "")
    return None


def _is_null(sql: str) -> bool:
    with suppress(IcecombError):
        return constant_of(sql, "") is None
    return False
