"""Columns whose ids or names were reused for others: what files have there, how refs are read.

A table that was replaced keeps its snapshots, branches and tags. Iceberg Java gives the columns of
the new table the ids that the old one had under their names, whatever their types
(TypeUtil.assignFreshIds). So files that are live in a branch, or because `main` was moved, may
have values, bounds and partitions of another type under an id.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from icecomb.format.spec.promotion import unlike_columns
from icecomb.format.spec.snapshot import NO_PARENT, ancestors_of

if TYPE_CHECKING:
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.schema import Schema
    from icecomb.format.spec.snapshot import Snapshot

SOURCE_SNAPSHOT = "source-snapshot-id"
"""The key in a snapshot's summary of the snapshot whose files it took over."""


def schema_of(metadata: TableMetadata, snapshot: Snapshot) -> Schema | None:
    """Return the schema that was current when a snapshot was created; None if it is unknown."""
    for schema in metadata.schemas:
        if schema.schema_id == snapshot.schema_id:
            return schema
    return None


def unlike_in_table(metadata: TableMetadata, schema: Schema) -> frozenset[int]:
    """Return columns of a schema that another one of the table has with an unreadable type.

    Unreadable is a type whose values cannot be read with the one in ``schema``; see `can_go_on`.
    """
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
    """Return ids of the columns that the files a snapshot added have with another type.

    None if the schema that the files were written with is unknown.
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
    """Return the schema with which the head of a branch is read: mostly the current one.

    Where an id, or a name since the table was replaced, now stands for another column, it is the
    one that the snapshot was created with. A replaced table begins with a snapshot without a
    parent; where ancestors have expired nothing tells it from one whose column was dropped and
    added again, and ids count, as the specification says (Column Projection).
    """
    now, own = metadata.schema(), schema_of(metadata, snapshot)
    if own is None or own is now:
        return now
    if unlike_columns(own, now):
        return own
    names = (own.find_column_name(i) or "" for i in own.field_ids if not now.contains(i))
    if not any(map(now.contains, names)):
        return now
    if metadata.current_snapshot_id is None:
        return own
    main, branch = (
        _root(metadata, each) for each in (metadata.current_snapshot_id, snapshot.snapshot_id)
    )
    return now if main is None or branch is None or main == branch else own


def _root(metadata: TableMetadata, snapshot_id: int | None) -> int | None:
    """Return the id of the oldest ancestor; None if there is none, or it has expired."""
    oldest = [*ancestors_of(metadata, snapshot_id)][-1:]
    return next((s.snapshot_id for s in oldest if s.parent_snapshot_id in (None, NO_PARENT)), None)
