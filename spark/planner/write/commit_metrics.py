"""Metrics of a commit for Spark's UI, under Iceberg Java's names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_NAMES: Final = {
    "added-data-files": "addedDataFiles",
    "added-delete-files": "addedDeleteFiles",
    "added-equality-deletes": "addedEqualityDeletes",
    "added-equality-delete-files": "addedEqualityDeleteFiles",
    "added-files-size": "addedFileSizeInBytes",
    "added-position-deletes": "addedPositionalDeletes",
    "added-position-delete-files": "addedPositionalDeleteFiles",
    "added-records": "addedRecords",
    "deleted-data-files": "removedDataFiles",
    "removed-delete-files": "removedDeleteFiles",
    "removed-equality-deletes": "removedEqualityDeletes",
    "removed-equality-delete-files": "removedEqualityDeleteFiles",
    "removed-files-size": "removedFileSizeInBytes",
    "removed-position-deletes": "removedPositionalDeletes",
    "removed-position-delete-files": "removedPositionalDeleteFiles",
    "deleted-records": "removedRecords",
    "total-data-files": "totalDataFiles",
    "total-delete-files": "totalDeleteFiles",
    "total-equality-deletes": "totalEqualityDeletes",
    "total-files-size": "totalFileSizeInBytes",
    "total-position-deletes": "totalPositionalDeletes",
    "total-records": "totalRecords",
}
"""Iceberg Java's `CommitMetricsResult`: keys of a snapshot's summary."""


def commit_metrics(summary: Mapping[str, str]) -> dict[str, int]:
    """Return the metrics in a snapshot's summary; missing ones are left out."""
    return {name: int(summary[key]) for key, name in _NAMES.items() if key in summary}
