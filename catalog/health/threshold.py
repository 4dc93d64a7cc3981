"""Thresholds of findings: defaults of Iceberg, Amoro and Spark, and their reasons.

The size of small files, and the number of files worth a rewrite, come from the options of rewriting
data files.

A finding is a problem, and not only a warning, at ten times the threshold, or where half of the
rows of the partitions are deleted.
"""

from __future__ import annotations

from typing import Final

from icecomb.catalog.report.finding import Severity

DELETED_SHARE: Final = 0.1
"""Share of a partition's rows deleted by position: Amoro's
`self-optimizing.major.trigger.duplicate-ratio`."""
SNAPSHOTS: Final = 100
"""Snapshots that may expire by the table's own limits: as many as Iceberg keeps metadata files
(`write.metadata.previous-versions-max`)."""
ALL_SNAPSHOTS: Final = 1000
"""Snapshots of any age: all of them are read and written by every commit."""
METADATA_BYTES: Final = 8 << 20
"""The metadata file is written whole by every commit; Iceberg keeps manifests to 8 MiB for that
reason (`commit.manifest.target-size-bytes`)."""
SKEW: Final = 5
"""Factor of the largest partition compared to the median: Spark's
`spark.sql.adaptive.skewJoin.skewedPartitionFactor`."""
SKEW_BYTES: Final = 256 << 20
"""Least bytes of that partition: Spark's `skewedPartitionThresholdInBytes`."""
MANY: Final = 10
"""Factor of a threshold that makes a problem."""
SERIOUS_SHARE: Final = 0.5
"""Share of the table's bytes from which on a note becomes a warning, and of deleted rows from which
on a warning becomes a problem."""


def of_count(count: int, threshold: int) -> Severity:
    """Return the severity of a count: a problem at ten times its threshold."""
    return Severity.PROBLEM if count >= MANY * threshold else Severity.WARNING
