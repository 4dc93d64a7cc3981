"""From where on something is a finding: defaults of Iceberg, Amoro and Spark, and why.

What is small, and how many files are worth a rewrite, say the options of rewriting data files.

What is a problem, and not only a warning, is said by the score (half of the points of its part are
lost), or it is ten times the threshold.
"""

from __future__ import annotations

from typing import Final

DELETED_SHARE: Final = 0.1
"""Rows deleted by position, of those of a partition: Amoro's
`self-optimizing.major.trigger.duplicate-ratio`."""
OVERLAP: Final = 2.0
"""A scan of a partition reads so many times the manifests that it would if they were sorted."""
OVERLAP_MANIFESTS: Final = 5
"""With fewer manifests it does not matter."""
SNAPSHOTS: Final = 100
"""Snapshots that the table's own limits let expire: as many as Iceberg keeps metadata files
(`write.metadata.previous-versions-max`)."""
ALL_SNAPSHOTS: Final = 1000
"""Snapshots whatever their age: all of them are read and written by every commit."""
METADATA_BYTES: Final = 8 << 20
"""The metadata file is written whole by every commit; Iceberg keeps manifests to 8 MiB for that
reason (`commit.manifest.target-size-bytes`)."""
SKEW: Final = 5
"""The largest partition is so many times the median: Spark's
`spark.sql.adaptive.skewJoin.skewedPartitionFactor`."""
SKEW_BYTES: Final = 256 << 20
"""And it is larger than this: its `skewedPartitionThresholdInBytes`."""
MANY: Final = 10
"""So many times a threshold is a problem."""
SERIOUS_SHARE: Final = 0.5
"""What is only a note matters from this share of the table's bytes on."""

TARGET_BYTES: Final = 128 << 20
"""Amoro's `self-optimizing.target-size`, for the score."""
MIN_TARGET_SHARE: Final = 0.75
"""Its `self-optimizing.min-target-size-ratio`."""
MINOR_FILES: Final = 12
"""Its `self-optimizing.minor.trigger.file-count`."""
