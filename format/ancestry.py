"""Which snapshot came from which."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from icecomb.format.metadata import TableMetadata
    from icecomb.format.snapshot import Snapshot


def ancestors_of(metadata: TableMetadata, snapshot_id: int | None) -> Iterator[Snapshot]:
    """A snapshot, its parent and so on, the newest first; ends where one has expired."""
    at = snapshot_id
    while at is not None and (snapshot := metadata.snapshot_by_id(at)) is not None:
        yield snapshot
        at = snapshot.parent_snapshot_id


def is_ancestor(metadata: TableMetadata, snapshot_id: int, of: int | None) -> bool:
    """Whether a snapshot is this one, or one that it came from."""
    return any(found.snapshot_id == snapshot_id for found in ancestors_of(metadata, of))
