"""What a CREATE TABLE says, as a catalog takes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from icecomb.format.errors import UnsupportedError, ValidationError
from icecomb.format.spec.table_property import DATA_FORMAT, RESERVED_PROPERTIES
from icecomb.spark.partitioning import partition_spec
from icecomb.spark.planner.table_name import identifier
from icecomb.spark.schema import iceberg_schema

if TYPE_CHECKING:
    from icecomb.format.spec.partition import PartitionSpec
    from icecomb.format.spec.schema import Schema
    from icecomb.spark.planner.protocol import TableDefinition

STATEMENTS: Final = {
    "sort-order": "ALTER TABLE … WRITE ORDERED BY",
    "identifier-fields": "ALTER TABLE … SET IDENTIFIER FIELDS",
}
"""Names under which Iceberg Java shows what has a statement of its own, and that statement."""

_PROVIDER: Final = "provider"
# what Spark says about a new table beside the user's own properties; owner and comment stay
# properties
_SPARKS_OWN: Final = frozenset({_PROVIDER, "location", "external", "is_managed_location"})
_OPTION_COPY: Final = "option."
# SHOW TBLPROPERTIES and SHOW CREATE TABLE show it of every table
_SHOWN_FORMAT: Final = ("format", "iceberg/")
_FORMAT_VERSION: Final = "format-version"


def parsed_definition(
    definition: TableDefinition,
) -> tuple[tuple[str, ...], Schema, str | None, PartitionSpec, None, dict[str, str]]:
    """What a catalog makes tables of: the arguments of `Catalog.create_table`.

    Raises:
        UnsupportedError: The statement says USING something else, or a format that Spark tables
            are not written in.
        ValidationError: A property contradicts the statement, or has a statement of its own.
    """
    properties = definition.properties
    schema = iceberg_schema(definition.schema)
    unsorted = None
    return (
        identifier(definition.table),
        schema,
        properties.get("location"),
        partition_spec(definition.partitioning, schema),
        unsorted,
        _own_properties(properties) | _data_format(properties),
    )


def check_has_no_statement(key: str) -> None:
    """Refuse as a property what is set by a statement.

    Raises:
        ValidationError: The statement is named.
    """
    if key in STATEMENTS:
        raise ValidationError(
            f"{key!r} is no property of a table: it is reserved for what it shows",
            hint=f"use {STATEMENTS[key]}",
        )


def _data_format(properties: Mapping[str, str]) -> dict[str, str]:
    """USING parquet: an Iceberg table whose files are Parquet, as for Iceberg Java."""
    provider = properties.get(_PROVIDER, "iceberg").lower()
    if provider in {"iceberg", "icecomb"}:
        return {}
    if provider in {"orc", "avro"}:
        raise UnsupportedError(
            f"USING {provider}: icecomb's Spark writes Parquet files only",
            hint="write USING iceberg; with the property 'write.format.default'="
            f"'{provider}' other engines write such files",
        )
    if provider != "parquet":
        raise UnsupportedError(
            f"This catalog creates Iceberg tables, not {provider}",
            hint="write USING iceberg, or create the table in spark_catalog",
        )
    given = properties.get(DATA_FORMAT.key, provider)
    if given.lower() != provider:
        raise ValidationError(
            f"USING {provider} contradicts '{DATA_FORMAT.key}'='{given}'",
            hint="say one of both, or the same",
        )
    return {DATA_FORMAT.key: provider}


def _own_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """The user's properties; what SHOW CREATE TABLE shows of a table's state is passed over.

    Iceberg Java passes over reserved properties of a new table, too: so its text can be run again.
    """
    own = {}
    for key, value in properties.items():
        check_has_no_statement(key)
        name, prefix = _SHOWN_FORMAT
        shown = key in RESERVED_PROPERTIES - {_FORMAT_VERSION} or (
            key == name and value.startswith(prefix)
        )
        # Spark says what OPTIONS has twice, and what ROW FORMAT has only so
        copied = key.startswith(_OPTION_COPY) and key.removeprefix(_OPTION_COPY) in properties
        if not shown and not copied and key not in _SPARKS_OWN:
            own[key] = value
    return own
