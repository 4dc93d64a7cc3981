"""Columns of ``t.changes`` and CHANGES FROM: the table's, and those that describe the change."""

from __future__ import annotations

from typing import Final

from icecomb.format.errors import ValidationError
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import (
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestamptzType,
)

CHANGES: Final = "changes"
"""Its name below the table's."""

CHANGES_FROM: Final = "changes from"
"""CHANGES FROM with all rows of changed files; it is not selected by a name below the table's."""

CHANGED_ROWS: Final = "changed rows"
"""CHANGES FROM without rows that commits only moved, in tables with row lineage."""

UPDATED_ROWS: Final = "updated rows"
"""The same with updates, which are those of one row id."""

KINDS_OF_CHANGES_FROM: Final = (CHANGES_FROM, CHANGED_ROWS, UPDATED_ROWS)

CHANGE_TYPE: Final = NestedField(
    2147483543, "_change_type", StringType(), required=True, doc="INSERT or DELETE"
)
CHANGE_ORDINAL: Final = NestedField(
    2147483542, "_change_ordinal", IntegerType(), required=True, doc="Order of the commit"
)
COMMIT_SNAPSHOT_ID: Final = NestedField(
    2147483541, "_commit_snapshot_id", LongType(), required=True, doc="Snapshot of the commit"
)
COMMIT_VERSION: Final = NestedField(
    COMMIT_SNAPSHOT_ID.field_id,
    "_commit_version",
    LongType(),
    required=True,
    doc="Snapshot of the commit",
)
COMMIT_TIMESTAMP: Final = NestedField(
    CHANGE_ORDINAL.field_id,
    "_commit_timestamp",
    TimestamptzType(),
    required=True,
    doc="Time of the commit",
)
CHANGELOGS: Final = {
    CHANGES: (CHANGE_TYPE, CHANGE_ORDINAL, COMMIT_SNAPSHOT_ID),
    **dict.fromkeys(KINDS_OF_CHANGES_FROM, (CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP)),
}
"""Their own columns."""


def changelog_schema(schema: Schema, kind: str) -> Schema:
    """Return the columns of one of the `CHANGELOGS` of a table.

    Source: ``org.apache.iceberg.ChangelogUtil``, ids of ``MetadataColumns``;
    ``org.apache.spark.sql.connector.catalog.Changelog``.
    """
    for column in CHANGELOGS[kind]:
        if schema.contains(column.name):
            raise ValidationError(
                f"A table with a column {column.name} has no table of changes",
                hint="Rename the column.",
            )
    return Schema(*schema.fields, *CHANGELOGS[kind], schema_id=schema.schema_id)
