"""Ancestry of snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from icecomb.format.errors import CorruptFileError
from icecomb.format.spec.snapshot import Snapshot
from icecomb.format.spec.values.json_sequence import lazily

if TYPE_CHECKING:
    from collections.abc import Iterator

    from icecomb.format.spec.metadata import TableMetadata

NO_PARENT: Final = -1
"""The parent id that some writers record where there is no parent."""


def ancestors_of(metadata: TableMetadata, snapshot_id: int | None) -> Iterator[Snapshot]:
    """Yield a snapshot, its parent and so on, newest first, up to one that has expired."""
    at, seen = snapshot_id, set[int]()
    while at is not None and (snapshot := metadata.snapshot_by_id(at)) is not None:
        if at in seen:
            raise CorruptFileError(
                f"The metadata of the table at {metadata.location} is damaged: snapshot {at} is "
                "among its own ancestors",
                hint="Go back to an older metadata file, or set main to a snapshot whose ancestors "
                "are intact.",
                path=metadata.location,
            )
        seen.add(at)
        yield snapshot
        at = snapshot.parent_snapshot_id


def parents_of(metadata: TableMetadata) -> dict[int, int | None]:
    """Return the parents of all snapshots by id; decodes no snapshot, as there may be many."""
    snapshots = lazily(metadata.snapshots, Snapshot.from_json)
    pairs = zip(
        snapshots.members("snapshot-id"), snapshots.members("parent-snapshot-id"), strict=True
    )
    return {number: None if parent == NO_PARENT else parent for number, parent in pairs}


def is_ancestor(metadata: TableMetadata, snapshot_id: int, of: int | None) -> bool:
    """Return whether a snapshot is ``of`` or one of its ancestors."""
    return any(found.snapshot_id == snapshot_id for found in ancestors_of(metadata, of))


def latest_ancestor_before(
    metadata: TableMetadata, timestamp_ms: int, of: int | None
) -> Snapshot | None:
    """Return a snapshot's newest ancestor, or itself, created strictly before a time.

    The rule of a rollback, as in Iceberg Java (SetSnapshotOperation.rollbackToTime): ancestors, and
    not the log, show what was rolled back since, or came in by a branch. Where an ancestor has
    expired, those before it are unknown.
    """
    older = (s for s in ancestors_of(metadata, of) if s.timestamp_ms < timestamp_ms)
    return max(older, key=lambda snapshot: snapshot.timestamp_ms, default=None)
