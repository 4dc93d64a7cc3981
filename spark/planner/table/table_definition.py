"""Conversion of CREATE TABLE definitions to arguments of a catalog."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from icecomb.format.errors import UnsupportedError, ValidationError
from icecomb.format.property.table_property import (
    DATA_FORMAT,
    ENTRY_PROPERTIES,
    FOLDER_PATHS,
    FORMER_FOLDERS,
    GC_ENABLED,
    NAME_MAPPING,
    RESERVED_PROPERTIES,
)
from icecomb.spark.partitioning import partition_spec
from icecomb.spark.planner.table.table_name import name_or_location
from icecomb.spark.schema import defined_schema

if TYPE_CHECKING:
    from icecomb.format.spec.partition import PartitionSpec
    from icecomb.format.spec.schema import Schema
    from icecomb.format.spec.sort import SortOrder
    from icecomb.spark.planner.protocol.tables import TableDefinition, TableName
    from icecomb.spark.planner.table.states import TableState

STATEMENTS: Final = {
    "sort-order": "ALTER TABLE … WRITE ORDERED BY",
    "identifier-fields": "ALTER TABLE … SET IDENTIFIER FIELDS",
}
"""Properties that Iceberg Java shows but sets by a statement of its own, and that statement."""

_PROVIDER: Final = "provider"
# added by Spark to the properties of a new table; owner and comment stay properties
_SPARKS_OWN: Final = frozenset({_PROVIDER, "location", "external", "is_managed_location"})
# shown of every table by SHOW TBLPROPERTIES and SHOW CREATE TABLE
_SHOWN_FORMAT: Final = ("format", "iceberg/")
_FORMAT_VERSION: Final = "format-version"
# locations and ownership of a table's files, and the column mapping of files without ids, do not
# apply to another table's files; the owner is the user who creates the table
_OF_OWN_FILES: Final = (
    RESERVED_PROPERTIES
    | ENTRY_PROPERTIES
    | {
        *(each.key for each in FOLDER_PATHS),
        FORMER_FOLDERS.key,
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
    """Convert a table definition to the arguments of `Catalog.create_table`.

    The name may be a location, see `Catalogs.home`.
    """
    properties = definition.properties
    schema = defined_schema(definition.schema)
    unsorted = None
    return (
        name_or_location(definition.table),
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
    """Convert CREATE TABLE … LIKE to the arguments of `Catalog.create_table`.

    The columns with their comments and identifier fields, the partitions, the write order, the
    format version and the properties are those of the source, as in Iceberg Java's
    ``createTableLike``, without properties that apply to the source's own files only. Of a metadata
    table, and of a version whose columns are not the current ones, only the columns are used.

    Args:
        given: Properties of the statement, which take precedence, including ``provider`` and
            ``location``.
    """
    name, location = name_or_location(table), given.get("location")
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
    """Refuse properties that are set by a statement, which the hint names."""
    if key in STATEMENTS:
        raise UnsupportedError(
            f"{key!r} is not a table property: it is reserved for what it shows",
            hint=f"use {STATEMENTS[key]}",
        )


def _data_format(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the file format set by USING parquet, orc or avro, as in Iceberg Java."""
    provider = properties.get(_PROVIDER, "iceberg").lower()
    if provider in {"iceberg", "icecomb"}:
        return {}
    if provider not in {"parquet", "orc", "avro"}:
        raise ValidationError(
            f"This catalog creates Iceberg tables, not {provider}",
            hint="write USING iceberg, or create the table in spark_catalog",
        )
    given = properties.get(DATA_FORMAT.key, provider)
    if given.lower() != provider:
        raise ValidationError(
            f"USING {provider} contradicts '{DATA_FORMAT.key}'='{given}'",
            hint="leave one of them out, or make them equal",
        )
    return {DATA_FORMAT.key: provider}


def _own_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the user's properties, without those that SHOW CREATE TABLE adds.

    Iceberg Java ignores reserved properties of a new table, too, so that its text can be run again.
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
