"""Metadata columns: columns of scans that no table declares (spec: Reserved Field IDs)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from icecomb.format.errors import SchemaError, UnsupportedError
from icecomb.format.spec.types import (
    BooleanType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    StructType,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from icecomb.format.expressions.expression import BooleanExpression
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.partition import PartitionSpec
    from icecomb.format.spec.schema import Schema

FILE_PATH: Final = NestedField(
    2147483646,
    "_file",
    StringType(),
    required=True,
    doc="Path of the file in which a row is stored",
)
ROW_POSITION: Final = NestedField(
    2147483645, "_pos", LongType(), required=True, doc="Ordinal position of a row in its file"
)
IS_DELETED: Final = NestedField(
    2147483644,
    "_deleted",
    BooleanType(),
    required=True,
    doc="Whether the row is deleted; a scan that selects this keeps deleted rows",
)
SPEC_ID: Final = NestedField(
    2147483643, "_spec_id", IntegerType(), required=True, doc="Spec id of the file of a row"
)

PARTITION: Final = NestedField(
    2147483642,
    "_partition",
    StructType(()),
    doc="Partition of the file of a row, in the fields of all specs of the table",
)
"""The column without its fields, which `metadata_column` adds from the table."""

ROW_ID: Final = NestedField(
    2147483540, "_row_id", LongType(), doc="Implicit row ID that is automatically assigned"
)
LAST_UPDATED: Final = NestedField(
    2147483539,
    "_last_updated_sequence_number",
    LongType(),
    doc="Sequence number when the row was last updated",
)
LINEAGE: Final = (ROW_ID, LAST_UPDATED)
"""The columns of row lineage, which files of moved rows contain, behind the table's."""
LINEAGE_IDS: Final = frozenset(f.field_id for f in LINEAGE)
"""Their ids. Metrics of files say nothing of them: rows inherit what their file does not state."""
_LINEAGE_VERSION: Final = 3

METADATA_COLUMNS: Final = MappingProxyType(
    {f.name: f for f in (FILE_PATH, ROW_POSITION, IS_DELETED, SPEC_ID, PARTITION, *LINEAGE)}
)
"""The metadata columns by name."""

DELETE_FILE_PATH: Final = NestedField(2147483546, "file_path", StringType(), required=True)
"""The path column of a position delete file."""
DELETE_FILE_POS: Final = NestedField(2147483545, "pos", LongType(), required=True)
"""The position column of a position delete file."""
DELETE_FILE_ROW_ID: Final = 2147483544
"""The field id of the deleted row in a position delete file; its type is the table's."""


def lineage(metadata: TableMetadata) -> tuple[NestedField, ...]:
    """Return the columns that a row keeps when it moves to another file; none before version 3."""
    return LINEAGE if metadata.format_version >= _LINEAGE_VERSION else ()


def with_lineage(schema: Schema) -> Schema:
    """Return the columns of files into which rows with ids move.

    SchemaError is raised if a column of the table has the name of one of row lineage.
    """
    from icecomb.format.spec.schema import Schema

    taken = {f.name for f in schema.fields}
    for field in LINEAGE:
        if field.name in taken:
            raise SchemaError(
                f"Column {field.name!r} has the name of a column of row lineage, which files of "
                "moved rows must have",
                hint="Rename the table's column.",
                column=field.name,
            )
    return Schema((*schema.fields, *LINEAGE), schema.schema_id, schema.identifier_field_ids)


def filter_columns(schema: Schema) -> Schema:
    """Return the columns that filters may name: the table's, and those of row lineage.

    A column of the table hides one of row lineage.
    """
    from icecomb.format.spec.schema import Schema

    taken = {field.name.lower() for field in schema.fields}
    more = (field for field in LINEAGE if field.name not in taken)
    return Schema((*schema.fields, *more), schema.schema_id, schema.identifier_field_ids)


def bind_rows(
    metadata: TableMetadata,
    schema: Schema,
    row_filter: BooleanExpression,
    *,
    case_sensitive: bool = True,
) -> BooleanExpression:
    """Return a row filter bound to a table's columns and those of row lineage."""
    from icecomb.format.expressions.binding import bind
    from icecomb.format.expressions.bound import bound_references

    bound = bind(filter_columns(schema), row_filter, case_sensitive)
    asked = LINEAGE_IDS & {*bound_references(bound)}
    for field in LINEAGE:
        if field.field_id in asked:
            metadata_column(field.name, metadata)
    return bound


def metadata_column(
    name: str, metadata: TableMetadata, schema: Schema | None = None
) -> NestedField:
    """Return a metadata column as it is in a table; for `schema` see `partition_union`."""
    found = METADATA_COLUMNS[name]
    if found in LINEAGE and not lineage(metadata):
        raise UnsupportedError(
            f"{metadata.location} has no column {name}: its format version is "
            f"{metadata.format_version}, and rows have ids from version {_LINEAGE_VERSION} on",
            hint="Upgrade the table to version 3, or leave the column out.",
            column=name,
        )
    if found is not PARTITION:
        return found
    from icecomb.format.rows.values.partition_union import partition_union
    from icecomb.format.spec.schema import walk

    # Ids of partition fields start at 1000, which columns of a wide table reach, too.
    used = {f.field_id for schema in metadata.schemas for f in walk(schema.as_struct())}
    free = (number for number in count(1) if number not in used)
    union = partition_union(metadata, schema)
    fields = tuple(replace(f, field_id=next(free)) for f in union.fields)
    return replace(PARTITION, field_type=StructType(fields))


def partition_value(
    spec: PartitionSpec,
    partition: Sequence[Any],
    metadata: TableMetadata,
    kind: StructType | None = None,
) -> pa.Scalar:
    """Return the value of `_partition` for a file's rows; null in a table without partitions."""
    import pyarrow as pa

    from icecomb.format.rows.values.partition_union import partition_union
    from icecomb.format.spec.arrow_schema import field_to_pyarrow, scalar_to_pyarrow

    fields = partition_union(metadata).fields
    if kind is not None:
        own = zip(fields, kind.fields, strict=True)
        fields = tuple(replace(f, field_type=given.field_type) for f, given in own)
    kinds = [field_to_pyarrow(f, include_field_ids=False) for f in fields]
    if not kinds:
        return pa.scalar(None, pa.struct(kinds))
    known = {f.field_id: v for f, v in zip(spec.fields, partition, strict=True)}
    arrays = [
        pa.repeat(scalar_to_pyarrow(known.get(f.field_id), kind.type), 1)
        for f, kind in zip(fields, kinds, strict=True)
    ]
    return pa.StructArray.from_arrays(arrays, fields=kinds)[0]
