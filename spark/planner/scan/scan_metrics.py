"""Metrics of a scan for Spark's UI, under Iceberg Java's names."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from icecomb.format.scan.planning_metrics import PlanningMetrics

if TYPE_CHECKING:
    from icecomb.format.rows.values.scan_task import FileScanTask


class ScanMetrics:
    """Numbers of manifests and files scanned, skipped and found by planning.

    Args:
        planning: The metrics of planning, if it was measured.
        begun: The start of planning, in seconds of the monotonic clock; by default now.
    """

    def __init__(self, planning: PlanningMetrics | None = None, begun: float | None = None) -> None:
        self._planning = PlanningMetrics() if planning is None else planning
        self._begun = time.monotonic() if begun is None else begun
        self._data_files = self._data_bytes = self._delete_files = self._delete_bytes = 0

    def add_result(self, tasks: Iterable[FileScanTask], total_bytes: int) -> None:
        """Count the files to read, and the delete files of each, as Iceberg Java does."""
        self._data_bytes += total_bytes
        for task in tasks:
            self._data_files += 1
            if task.delete_files:
                self._delete_files += len(task.delete_files)
                self._delete_bytes += sum(file.content_length for file in task.delete_files)

    def to_json(self) -> dict[str, int]:
        """Return the metrics under Iceberg Java's names, one of which is in the singular."""
        seen = self._planning
        indexed = seen.positional_delete_files + seen.deletion_vectors + seen.equality_delete_files
        return {
            "totalPlanningDuration": round((time.monotonic() - self._begun) * 1000),
            "totalDataManifest": seen.total_data_manifests,
            "scannedDataManifests": seen.scanned_data_manifests,
            "skippedDataManifests": seen.total_data_manifests - seen.scanned_data_manifests,
            "resultDataFiles": self._data_files,
            "skippedDataFiles": seen.skipped_data_files,
            "totalDataFileSize": self._data_bytes,
            "totalDeleteManifests": seen.total_delete_manifests,
            "scannedDeleteManifests": seen.scanned_delete_manifests,
            "skippedDeleteManifests": seen.total_delete_manifests - seen.scanned_delete_manifests,
            "totalDeleteFileSize": self._delete_bytes,
            "resultDeleteFiles": self._delete_files,
            "equalityDeleteFiles": seen.equality_delete_files,
            "indexedDeleteFiles": indexed,
            "positionalDeleteFiles": seen.positional_delete_files,
            "skippedDeleteFiles": seen.skipped_delete_files,
        }
