"""Columns whose ids or names were given to others: what files have there, and how refs are read.

A table that was replaced goes on with its snapshots, branches and tags. Iceberg Java gives the
columns of the new table the ids that the old one had under their names, whatever their types
(TypeUtil.assignFreshIds). So files that are alive in a branch, or by a move of `main`, may have
values, bounds and partitions of another type under an id.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from icecomb.format.spec.ancestry import NO_PARENT, ancestors_of
from icecomb.format.spec.promotion import unlike_columns

if TYPE_CHECKING:
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.schema import Schema
    from icecomb.format.spec.snapshot import Snapshot

SOURCE_SNAPSHOT = "source-snapshot-id"
"""The key of a snapshot's summary that names the one whose files it took over."""


def schema_of(metadata: TableMetadata, snapshot: Snapshot) -> Schema | None:
    """The schema that was current when a snapshot was made; None where that is not known."""
    for schema in metadata.schemas:
        if schema.schema_id == snapshot.schema_id:
            return schema
    return None


def unlike_in_table(metadata: TableMetadata, schema: Schema) -> frozenset[int]:
    """The columns of a schema that any schema of the table has with a type that cannot go on."""
    known = metadata.unlike_by_schema
    found = known.get(id(schema))
    if found is None or found[0] is not schema:
        others = (old for old in metadata.schemas if old is not schema)
        ids = frozenset[int]().union(*(unlike_columns(old, schema) for old in others))
        found = known[id(schema)] = schema, ids
    return found[1]


def unlike_in_snapshot(
    metadata: TableMetadata, snapshot_id: int | None, schema: Schema
) -> frozenset[int] | None:
    """The columns of a schema that files which a snapshot added have with another type.

    Returns:
        The columns; None where it is not known with which schema the files were written.
    """
    found: frozenset[int] = frozenset()
    at = snapshot_id
    for _ in range(2):
        snapshot = None if at is None else metadata.snapshot_by_id(at)
        written = None if snapshot is None else schema_of(metadata, snapshot)
        if snapshot is None or written is None:
            return None
        found |= unlike_columns(written, schema)
        source = snapshot.summary.get(SOURCE_SNAPSHOT)
        if source is None:
            break
        at = None
        with suppress(ValueError):
            at = int(source)
    return found


def reading_schema(metadata: TableMetadata, snapshot: Snapshot) -> Schema:
    """The schema that the head of a branch is read with: the current one where that says the same.

    Where an id, or a name since the table was replaced, stands for another column by now, it is the
    one that the snapshot was made with. A replaced table begins with a snapshot without a parent.
    """
    now, own = metadata.schema(), schema_of(metadata, snapshot)
    if own is None or own is now:
        return now
    if unlike_columns(own, now):
        return own
    names = (own.find_column_name(i) or "" for i in own.field_ids if not now.contains(i))
    if not any(map(now.contains, names)):
        return now
    line = _line(metadata, metadata.current_snapshot_id)
    return own if line.isdisjoint(_line(metadata, snapshot.snapshot_id)) else now


def _line(metadata: TableMetadata, snapshot_id: int | None) -> set[int | None]:
    """A snapshot and those it came from, the newest that has expired among them."""
    found = list(ancestors_of(metadata, snapshot_id))
    parents = {s.parent_snapshot_id for s in found[-1:]} - {None, NO_PARENT}
    return {s.snapshot_id for s in found} | parents
