"""Columns that were dropped, found in the earlier schemas of a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from icecomb.format.errors import SchemaError
from icecomb.format.spec.column_history import schema_of
from icecomb.format.spec.types import StructType

if TYPE_CHECKING:
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.schema import Schema
    from icecomb.format.spec.types import NestedField


@dataclass(frozen=True, slots=True)
class DeletedColumn:
    """A column as it was when it was dropped, with the fields inside it.

    Attributes:
        written_since: Whether rows may have been written without it: a snapshot of the table
            may be newer than the drop.
    """

    field: NestedField
    was_identifier: bool
    written_since: bool


def find_deleted_column(
    metadata: TableMetadata, parent_id: int | None, name: str, *, case_sensitive: bool = True
) -> DeletedColumn:
    """Find the column that had a name last, in the schemas that metadata still has."""
    found = None
    for schema in metadata.schemas:
        for field in _siblings(schema, parent_id):
            if _same(field.name, name, case_sensitive=case_sensitive):
                found = field
    if found is None:
        raise SchemaError(
            f"Cannot undelete column {name!r}: no schema of the table has it there",
            hint="Check the name; expiration may have removed schemas that no snapshot needs.",
        )
    # a later definition may have a wider type, or no longer forbid nulls
    last = next(s for s in reversed(metadata.schemas) if s.contains(found.field_id))
    field = last.find_field(found.field_id)
    if not _same(field.name, name, case_sensitive=case_sensitive):
        now = metadata.schema().contains(field.field_id)
        raise SchemaError(
            f"Cannot undelete column {name!r}: it {'is' if now else 'was'} called {field.name!r} "
            f"{'now' if now else 'later'}",
            hint="Rename it." if now else f"Undelete {field.name!r}, and rename it then.",
        )
    return DeletedColumn(
        field,
        field.field_id in last.identifier_field_ids,
        _written_since(metadata, field.field_id),
    )


def _siblings(schema: Schema, parent_id: int | None) -> tuple[NestedField, ...]:
    if parent_id is None:
        return schema.fields
    if not schema.contains(parent_id):
        return ()
    kind = schema.find_field(parent_id).field_type
    return kind.fields if isinstance(kind, StructType) else ()


def _same(name: str, other: str, *, case_sensitive: bool) -> bool:
    return name == other if case_sensitive else name.lower() == other.lower()


def _written_since(metadata: TableMetadata, field_id: int) -> bool:
    """Return whether the newest snapshot was made with a schema that may lack a field."""
    snapshots = metadata.snapshots
    if not snapshots:
        return False
    written: Schema | None = schema_of(metadata, snapshots[-1])
    return written is None or not written.contains(field_id)
