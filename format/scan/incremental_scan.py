"""Incremental append scans: the rows that were appended between two snapshots."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, NoReturn

from icecomb.format.argument import MAX_LONG, checked_int
from icecomb.format.errors import ValidationError
from icecomb.format.manifests.manifest import ManifestContent
from icecomb.format.rows.values.scan_task import FileScanTask
from icecomb.format.scan.table_scan import TableScan
from icecomb.format.spec.metadata import existing_snapshot
from icecomb.format.spec.snapshot import Operation, Snapshot, ancestors_of

if TYPE_CHECKING:
    from icecomb.format.manifests.manifest import ManifestFile
    from icecomb.format.scan.delete_index import DeleteFileIndex
    from icecomb.format.scan.scan_planner import PlanningMetrics, ScanPlanner
    from icecomb.format.spec.partition import PartitionSpec


@dataclass(frozen=True, repr=False)
class IncrementalAppendScan(TableScan):
    """A scan of the rows appended after one snapshot, up to another.

    Only snapshots of operation `append` count: files that compaction, overwrites and row-level
    changes wrote are not read, and deletes are not applied. Rows come with the table's current
    schema. Other arguments are those of `TableScan`.

    Args:
        from_snapshot_id: Id of the snapshot to start after: its own files are not read. It may have
            expired. By default the scan starts with the oldest snapshot that is known.
        to_snapshot_id: Id of the last snapshot to read; the current one by default.
    """

    from_snapshot_id: int | None = None
    to_snapshot_id: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.snapshot_id is not None or self.ref is not None:
            raise ValidationError(
                "An incremental scan reads a range of snapshots, not one",
                hint="Pass from_snapshot_id and to_snapshot_id instead.",
            )
        self.snapshots()

    def snapshot(self) -> Snapshot | None:
        """Return the last snapshot to read; None when the table is empty."""
        if self.to_snapshot_id is None:
            return self.metadata.current_snapshot()
        return self.metadata.snapshot_by_id(self.to_snapshot_id)

    def snapshots(self) -> list[Snapshot]:
        """Return the append snapshots to read, oldest first.

        Raises:
            NoSuchSnapshotError: If the last snapshot does not exist.
            ValidationError: If the last snapshot does not descend from the first one.
        """
        last = self.snapshot()
        if last is None and self.to_snapshot_id is not None:
            existing_snapshot(self.metadata, self.to_snapshot_id)
        line = list(ancestors_of(self.metadata, None if last is None else last.snapshot_id))
        start = self.from_snapshot_id
        if start is not None:
            start = checked_int("from_snapshot_id", start, -MAX_LONG - 1, MAX_LONG)
            if start not in {known for one in line for known in _known_ids(one)}:
                raise ValidationError(
                    f"Snapshot {start} is not an ancestor of "
                    f"{None if last is None else last.snapshot_id}",
                    hint="Give snapshots of one branch, the older one first.",
                    snapshot_id=start,
                )
            line = list(takewhile(lambda one: one.snapshot_id != start, line))
        return [one for one in reversed(line) if one.operation == Operation.APPEND]

    def use_ref(self, name: str) -> NoReturn:
        """Refuse: an incremental scan reads a range of snapshots.

        Raises:
            ValidationError: Always.
        """
        raise ValidationError(
            f"An incremental scan cannot use branch or tag {name!r}",
            hint="Give the id of its snapshot as to_snapshot_id.",
        )

    def as_of(self, timestamp: object) -> NoReturn:
        """Refuse: an incremental scan reads a range of snapshots.

        Raises:
            ValidationError: Always.
        """
        raise ValidationError(
            f"An incremental scan cannot go back to {timestamp}",
            hint="Give the id of a snapshot as to_snapshot_id.",
        )

    def specs(self) -> list[PartitionSpec]:
        """Return all partition specs of the table: appended files may have been removed since."""
        return list(self.metadata.specs().values())

    def plan_files(self, metrics: PlanningMetrics | None = None) -> Iterator[FileScanTask]:
        """Plan the appended files, in the order of their commits; deletes are not applied.

        Args:
            metrics: Counts of scanned and skipped files are added to it as files are consumed.

        Raises:
            ExpressionError: If the filter does not fit the schema.
            CorruptFileError: If a manifest cannot be read.
        """
        planner, manifests, deletes = self._planning(metrics=metrics)
        return planner.plan_manifests(manifests, deletes, limit=self.limit)

    def _state(self) -> list[tuple[str, str]]:
        first = "the oldest" if self.from_snapshot_id is None else str(self.from_snapshot_id)
        return [*super()._state(), ("appends after", first)]

    def _planning(
        self, keep: Iterable[str] = (), metrics: PlanningMetrics | None = None
    ) -> tuple[ScanPlanner, list[ManifestFile], DeleteFileIndex]:
        from icecomb.format.manifests.manifest_list import read_manifests
        from icecomb.format.scan.delete_index import DeleteFileIndex
        from icecomb.format.scan.scan_planner import ScanPlanner

        appends, bound = self.snapshots(), self.bound_filter()
        # a list of format version 1 may not say which snapshot added a manifest: read each once
        manifests = {
            manifest.manifest_path: manifest
            for snapshot in appends
            for manifest in read_manifests(self.io, snapshot)
            if manifest.content is ManifestContent.DATA
            and manifest.added_snapshot_id in {None, snapshot.snapshot_id}
            and manifest.has_added_files()
        }
        planner = ScanPlanner(
            self.metadata,
            self.io,
            self.schema(),
            bound,
            read=self._read_columns(),
            added_by=[snapshot.snapshot_id for snapshot in appends],
            keep=keep,
            metrics=metrics,
        )
        if metrics is not None:
            metrics.total_data_manifests += len(manifests)
        return planner, list(manifests.values()), DeleteFileIndex()


def _known_ids(snapshot: Snapshot) -> tuple[int | None, int | None]:
    """Return the ids of a snapshot and of its parent, which may have expired."""
    return snapshot.snapshot_id, snapshot.parent_snapshot_id
