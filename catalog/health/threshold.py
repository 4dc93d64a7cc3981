"""Thresholds of findings: defaults of Iceberg, Amoro and Spark, and their reasons.

The size of small files, and the number of files worth a rewrite, come from the options of rewriting
data files.

A finding is a problem, and not only a warning, if half of the points of its part of the score are
lost, or at ten times the threshold.
"""

from __future__ import annotations

from typing import Final

DELETED_SHARE: Final = 0.1
"""Share of a partition's rows deleted by position: Amoro's
`self-optimizing.major.trigger.duplicate-ratio`."""
OVERLAP: Final = 2.0
"""Factor of manifests that a scan of a partition reads, compared to sorted ones."""
OVERLAP_MANIFESTS: Final = 5
"""Fewer manifests do not matter."""
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
"""Share of the table's bytes from which on a note becomes a warning."""

TARGET_BYTES: Final = 128 << 20
"""Amoro's `self-optimizing.target-size`, for the score."""
MIN_TARGET_SHARE: Final = 0.75
"""Amoro's `self-optimizing.min-target-size-ratio`."""
MINOR_FILES: Final = 12
"""Amoro's `self-optimizing.minor.trigger.file-count`."""
