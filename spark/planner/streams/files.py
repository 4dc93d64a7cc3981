"""Files of a snapshot that a stream reads, in a stable order."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from icecomb.format.expressions.expression import AlwaysTrue
from icecomb.format.manifests.manifest import ManifestContent
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.scan.delete_index import DeleteFileIndex
from icecomb.format.scan.scan_planner import ScanPlanner

if TYPE_CHECKING:
    import numpy.typing as npt

    from icecomb.format.manifests.manifest import ManifestFile
    from icecomb.format.rows.values.scan_task import FileScanTask
    from icecomb.format.spec.snapshot import Snapshot
    from icecomb.spark.planner.table.states import TableState


class SnapshotFiles:
    """The files that a snapshot added, or, with `everything`, all its files.

    They are in the order of its manifest list and of the entries in each manifest, by which the
    position in Iceberg Java's offsets is counted (``MicroBatches``). Deletes apply to all its
    files, as in any scan of that snapshot; files added by an append have none.
    """

    def __init__(self, state: TableState, snapshot: Snapshot, *, everything: bool) -> None:
        added = None if everything else [snapshot.snapshot_id]
        self._planner = ScanPlanner(
            state.metadata, state.io, state.metadata.schema(), AlwaysTrue(), added_by=added
        )
        self._everything = everything
        self._state = state
        self._snapshot = snapshot

    def rows(self) -> npt.NDArray[np.int64]:
        """Return the row count of each file."""
        manifests, _ = self._manifests()
        selected = self._planner.selected(manifests, DeleteFileIndex())
        counts = [one.column("record_count").to_numpy(zero_copy_only=False) for one in selected]
        return np.concatenate([np.zeros(0, np.int64), *counts]).astype(np.int64)

    def tasks(self, start: int, end: int | None) -> Sequence[FileScanTask]:
        """Return tasks of the whole files from a position to before another, None for all."""
        manifests, deletes = self._manifests()
        return list(islice(self._planner.plan_manifests(manifests, deletes), start, end))

    def _manifests(self) -> tuple[list[ManifestFile], DeleteFileIndex]:
        if self._everything:
            return self._planner.live(self._snapshot)
        # a list of format version 1 may not say who added a manifest
        by_it = {None, self._snapshot.snapshot_id}
        manifests = [
            manifest
            for manifest in read_manifests(self._state.io, self._snapshot)
            if manifest.content is ManifestContent.DATA
            and manifest.added_snapshot_id in by_it
            and manifest.has_added_files()
        ]
        return manifests, DeleteFileIndex()
