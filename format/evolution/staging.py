"""Write-audit-publish: snapshots of a table that are not part of any branch yet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from icecomb.format.errors import NoSuchSnapshotError, ValidationError
from icecomb.format.property.table_property import WAP_ENABLED

if TYPE_CHECKING:
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.snapshot import Snapshot

WAP_ID: Final = "wap.id"
"""The summary key of a staged snapshot's id, chosen by its writer."""
PUBLISHED_WAP_ID: Final = "published-wap-id"
"""The summary key of the `WAP_ID` of the staged change that a snapshot published."""

ONTO_PARENT: Final = "icecomb.onto-parent"
"""The summary key that marks an append whose rows depend on the content of its parent."""


def is_audited(metadata: TableMetadata) -> bool:
    """Return whether the table's property `WAP_ENABLED` is true."""
    return WAP_ENABLED.of(metadata.properties)


def is_staged(metadata: TableMetadata, snapshot_properties: Mapping[str, str]) -> bool:
    """Return whether an operation with these snapshot properties is staged, on no branch."""
    return is_audited(metadata) and WAP_ID in snapshot_properties


def staged_snapshot(metadata: TableMetadata, wap_id: str) -> Snapshot:
    """Return the only snapshot that was staged under an id."""
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
            hint="Cherry-pick one of them by its id.",
        )
    return found[0]
