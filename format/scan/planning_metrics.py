"""Metrics of scan planning: the manifests and files that were read and skipped."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class PlanningMetrics:
    """Counts of one scan, updated by planning and named like Iceberg's scan metrics.

    Attributes:
        total_data_manifests: Data manifests of the snapshot.
        scanned_data_manifests: Data manifests that were read; the others were skipped.
        skipped_data_files: Files in manifests that were read that cannot match.
        total_delete_manifests: Delete manifests of the snapshot.
        scanned_delete_manifests: Delete manifests that were read; the others were skipped.
        skipped_delete_files: Delete files in manifests that were read that cannot apply.
        positional_delete_files: Position delete files that may apply.
        deletion_vectors: Deletion vectors that may apply.
        equality_delete_files: Equality delete files that may apply.
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
