"""The table ``t.changes``: a table's columns, and what happened to the row."""

from __future__ import annotations

from typing import Final

from icecomb.format.errors import ValidationError
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import IntegerType, LongType, NestedField, StringType

CHANGES: Final = "changes"
"""Its name below the table's."""

CHANGE_TYPE: Final = NestedField(
    2147483543, "_change_type", StringType(), required=True, doc="INSERT or DELETE"
)
CHANGE_ORDINAL: Final = NestedField(
    2147483542, "_change_ordinal", IntegerType(), required=True, doc="Order of the commit"
)
COMMIT_SNAPSHOT_ID: Final = NestedField(
    2147483541, "_commit_snapshot_id", LongType(), required=True, doc="Snapshot of the commit"
)
_COLUMNS: Final = (CHANGE_TYPE, CHANGE_ORDINAL, COMMIT_SNAPSHOT_ID)


def changelog_schema(schema: Schema) -> Schema:
    """The columns of the table of changes of a table.

    Source: ``org.apache.iceberg.ChangelogUtil``, ids of ``MetadataColumns``.

    Raises:
        ValidationError: A column of the table has the name of one of them.
    """
    for column in _COLUMNS:
        if schema.contains(column.name):
            raise ValidationError(
                f"A table with a column {column.name} has no table of changes",
                hint="rename the column",
            )
    return Schema(*schema.fields, *_COLUMNS, schema_id=schema.schema_id)
