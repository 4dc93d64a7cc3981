"""Write, audit, publish: snapshots that are part of a table, but of no branch yet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from icecomb.format.errors import NoSuchSnapshotError, ValidationError
from icecomb.format.spec.table_property import WAP_ENABLED

if TYPE_CHECKING:
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.snapshot import Snapshot

"""The table property that lets operations be staged by a `WAP_ID`."""
WAP_ID: Final = "wap.id"
"""The key of a snapshot's summary that names what was staged."""
PUBLISHED_WAP_ID: Final = "published-wap-id"
"""The key of a summary that says which staged change a snapshot made part of a branch."""

ONTO_PARENT: Final = "icecomb.onto-parent"
"""The key of a summary that says that an append's rows depend on what its parent has."""


def is_audited(metadata: TableMetadata) -> bool:
    """Whether the table's property `WAP_ENABLED` is true."""
    return WAP_ENABLED.of(metadata.properties)


def is_staged(metadata: TableMetadata, snapshot_properties: Mapping[str, str]) -> bool:
    """Whether an operation with these snapshot properties leaves all branches as they are."""
    return is_audited(metadata) and WAP_ID in snapshot_properties


def staged_snapshot(metadata: TableMetadata, wap_id: str) -> Snapshot:
    """The snapshot that was staged under an id.

    Raises:
        NoSuchSnapshotError: There is none.
        ValidationError: There are several; one of them can be picked by its snapshot id.
    """
    found = [s for s in metadata.snapshots if (s.summary or {}).get(WAP_ID) == wap_id]
    if not found:
        raise NoSuchSnapshotError(
            f"Nothing was staged under {WAP_ID} {wap_id!r}",
            hint="It may have expired; list the table's snapshots.",
        )
    if len(found) > 1:
        ids = ", ".join(str(snapshot.snapshot_id) for snapshot in found)
        raise ValidationError(
            f"{len(found)} snapshots were staged under {WAP_ID} {wap_id!r}: {ids}",
            hint="Pick one: manage_snapshots().cherry_pick(snapshot_id).",
        )
    return found[0]
