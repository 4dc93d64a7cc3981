"""Metrics of scan planning: the manifests and files that were read and skipped."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class PlanningMetrics:
    """Counts of one scan, updated by planning and named like Iceberg's scan metrics.

    Manifests that were not scanned were skipped. Skipped files are those in scanned manifests that
    cannot match or apply; the counts by kind of delete are of files that may apply.
    """

    total_data_manifests: int = 0
    scanned_data_manifests: int = 0
    skipped_data_files: int = 0
    total_delete_manifests: int = 0
    scanned_delete_manifests: int = 0
    skipped_delete_files: int = 0
    positional_delete_files: int = 0
    deletion_vectors: int = 0
    equality_delete_files: int = 0
