"""What a CREATE TABLE says, as a catalog takes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from icecomb.format.errors import UnsupportedError, ValidationError
from icecomb.format.spec.table_property import (
    DATA_FORMAT,
    DATA_PATH,
    ENTRY_PROPERTIES,
    FOLDER_STORAGE_PATH,
    GC_ENABLED,
    METADATA_PATH,
    NAME_MAPPING,
    OBJECT_STORE_PATH,
    RESERVED_PROPERTIES,
)
from icecomb.spark.partitioning import partition_spec
from icecomb.spark.planner.table_name import name_or_place
from icecomb.spark.schema import iceberg_schema

if TYPE_CHECKING:
    from icecomb.format.spec.partition import PartitionSpec
    from icecomb.format.spec.schema import Schema
    from icecomb.format.spec.sort import SortOrder
    from icecomb.spark.planner.protocol import TableDefinition, TableName
    from icecomb.spark.planner.states import TableState

STATEMENTS: Final = {
    "sort-order": "ALTER TABLE … WRITE ORDERED BY",
    "identifier-fields": "ALTER TABLE … SET IDENTIFIER FIELDS",
}
"""Names under which Iceberg Java shows what has a statement of its own, and that statement."""

_PROVIDER: Final = "provider"
# what Spark says about a new table beside the user's own properties; owner and comment stay
# properties
_SPARKS_OWN: Final = frozenset({_PROVIDER, "location", "external", "is_managed_location"})
# SHOW TBLPROPERTIES and SHOW CREATE TABLE show it of every table
_SHOWN_FORMAT: Final = ("format", "iceberg/")
_FORMAT_VERSION: Final = "format-version"
# where a table's files are, whether they may be those of others, and how columns are found in files
# without ids: what is said about the files of one table is not true of another one's; the owner is
# who makes the table
_OF_OWN_FILES: Final = (
    RESERVED_PROPERTIES
    | ENTRY_PROPERTIES
    | {
        DATA_PATH.key,
        FOLDER_STORAGE_PATH.key,
        OBJECT_STORE_PATH.key,
        METADATA_PATH.key,
        NAME_MAPPING.key,
        GC_ENABLED.key,
        "migrated",
        "snapshot",
        "owner",
    }
)


def parsed_definition(
    definition: TableDefinition,
) -> tuple[tuple[str, ...], Schema, str | None, PartitionSpec, None, dict[str, str]]:
    """What a catalog makes tables of: the arguments of `Catalog.create_table`.

    The name may be a place, which `Catalogs.home` has the name of.

    Raises:
        UnsupportedError: The statement says USING something else, or a format that Spark tables
            are not written in.
        ValidationError: A property contradicts the statement, or has a statement of its own.
    """
    properties = definition.properties
    schema = iceberg_schema(definition.schema)
    unsorted = None
    return (
        name_or_place(definition.table),
        schema,
        properties.get("location"),
        partition_spec(definition.partitioning, schema),
        unsorted,
        _own_properties(properties) | _data_format(properties),
    )


def copied_definition(
    table: TableName, source: TableState, given: Mapping[str, str]
) -> tuple[
    tuple[str, ...], Schema, str | None, PartitionSpec | None, SortOrder | None, dict[str, str]
]:
    """What CREATE TABLE … LIKE makes: the arguments of `Catalog.create_table`.

    The columns with their comments and identifier fields, the partitions, the write order, the
    format version and the properties are those of the source, as in Iceberg Java's
    ``createTableLike``; left out is what is true of the source's own files only. A metadata table,
    and a version whose columns are not today's, give their columns alone.

    Args:
        table: The new table's name.
        source: The table that it is to be like.
        given: Properties of the statement, which win; ``provider`` and ``location`` among them.

    Raises:
        UnsupportedError: See `parsed_definition`.
        ValidationError: See `parsed_definition`.
    """
    name, location = name_or_place(table), given.get("location")
    own = _own_properties(given) | _data_format(given)
    metadata = source.metadata
    if source.metadata_table is not None:
        return name, source.schema, location, None, None, own
    copied = {
        key: value for key, value in metadata.properties.items() if key not in _OF_OWN_FILES
    } | {_FORMAT_VERSION: str(metadata.format_version)}
    if source.schema.schema_id != metadata.current_schema_id:
        return name, source.schema, location, None, None, copied | own
    return name, source.schema, location, metadata.spec(), metadata.sort_order(), copied | own


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
    """USING parquet, orc or avro: an Iceberg table whose files are that, as for Iceberg Java."""
    provider = properties.get(_PROVIDER, "iceberg").lower()
    if provider in {"iceberg", "icecomb"}:
        return {}
    if provider not in {"parquet", "orc", "avro"}:
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
        if not shown and key not in _SPARKS_OWN:
            own[key] = value
    return own
