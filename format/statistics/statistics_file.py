"""Statistics files: Puffin files about snapshots (spec: Table Statistics)."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from icecomb.format.errors import NoSuchSnapshotError
from icecomb.format.evolution.pending_update import PendingUpdate
from icecomb.format.rows.deletes.puffin_file import PuffinWriter
from icecomb.format.spec.ancestry import ancestors_of
from icecomb.format.spec.change.requirement import AssertTableUUID
from icecomb.format.spec.change.update import (
    Changes,
    SetPartitionStatisticsUpdate,
    SetStatisticsUpdate,
)
from icecomb.format.spec.metadata_file import metadata_folder
from icecomb.format.statistics.theta_sketch import BLOB_TYPE

if TYPE_CHECKING:
    from icecomb.format.rows.deletes.puffin_file import Blob
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.snapshot import Snapshot
    from icecomb.format.statistics.theta_sketch import ThetaSketch
    from icecomb.format.storage.file_io import FileIO


def newest_statistics(metadata: TableMetadata, snapshot_id: int | None) -> Mapping[str, Any] | None:
    """Return the statistics file of a snapshot, or of its newest ancestor that has one."""
    if not metadata.statistics:
        return None
    by_snapshot = {file.get("snapshot-id"): file for file in metadata.statistics}
    line = (snapshot.snapshot_id for snapshot in ancestors_of(metadata, snapshot_id))
    return next((by_snapshot[each] for each in line if each in by_snapshot), None)


def write_statistics(
    io: FileIO,
    metadata: TableMetadata,
    snapshot: Snapshot,
    sketches: Mapping[int, ThetaSketch],
    others: Iterable[tuple[Blob, bytes]] = (),
) -> dict[str, Any]:
    """Write the statistics file of a snapshot; return its description in table metadata.

    The file has `sketches` by field id, and `others`: more blobs, with their bytes.
    """
    location = f"{metadata_folder(metadata)}/{snapshot.snapshot_id}-{uuid.uuid4()}.stats"
    sequence_number = snapshot.sequence_number or 0
    with io.create_stream(location) as stream:
        puffin = PuffinWriter(stream)
        blobs = [
            puffin.add(
                sketch.content(),
                BLOB_TYPE,
                [field_id],
                {"ndv": str(sketch.estimate())},
                snapshot_id=snapshot.snapshot_id,
                sequence_number=sequence_number,
            )
            for field_id, sketch in sketches.items()
        ]
        blobs += [
            puffin.add(
                content,
                blob.type,
                blob.fields,
                blob.properties,
                snapshot_id=blob.snapshot_id,
                sequence_number=blob.sequence_number,
            )
            for blob, content in others
        ]
        size = puffin.finish()
    return {
        "snapshot-id": snapshot.snapshot_id,
        "statistics-path": location,
        "file-size-in-bytes": size,
        "file-footer-size-in-bytes": puffin.footer_size,
        "blob-metadata": [
            {
                "type": blob.type,
                "snapshot-id": blob.snapshot_id,
                "sequence-number": blob.sequence_number,
                "fields": list(blob.fields),
                "properties": dict(blob.properties),
            }
            for blob in blobs
        ],
    }


class SetStatistics(PendingUpdate):
    """An update that sets the statistics file of a snapshot.

    Args:
        statistics: The file's description in table metadata.
        delete: A function that deletes the file, if nothing was committed.
        of_partitions: Whether it has partition statistics.
    """

    def __init__(
        self,
        statistics: Mapping[str, Any],
        delete: Callable[[str], object],
        *,
        of_partitions: bool = False,
    ) -> None:
        super().__init__()
        self._statistics = statistics
        self._delete = delete
        self._update = SetPartitionStatisticsUpdate if of_partitions else SetStatisticsUpdate

    def apply(self, base: TableMetadata) -> Changes:
        """Implement `PendingUpdate.apply`; NoSuchSnapshotError if the snapshot has expired."""
        snapshot_id = self._statistics["snapshot-id"]
        if base.snapshot_by_id(snapshot_id) is None:
            raise NoSuchSnapshotError(
                f"Cannot set the statistics of snapshot {snapshot_id} of the table at "
                f"{base.location}: it has expired meanwhile",
                hint="Compute those of a newer snapshot.",
                snapshot_id=snapshot_id,
            )
        return Changes((AssertTableUUID(base.table_uuid),), (self._update(self._statistics),))

    def clean_up(self, committed: TableMetadata | None) -> None:
        """Implement `PendingUpdate.clean_up`."""
        if committed is None:
            self._delete(str(self._statistics["statistics-path"]))
