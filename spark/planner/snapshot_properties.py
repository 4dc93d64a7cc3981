"""What a session and a write say that the summary of their snapshots is to have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from icecomb.format.operation.summary import snapshot_texts

if TYPE_CHECKING:
    from icecomb.spark.planner.options import Options
    from icecomb.spark.planner.protocol import MergedRows

_PREFIX: Final = "snapshot-property."
_MERGE_PREFIX: Final = "spark.merge-into.num-target-rows-"


def snapshot_properties(options: Options) -> dict[str, str]:
    """The keys that are asked for, without the prefixes of their settings and options.

    Raises:
        ValidationError: A key is the operation's own.
    """
    return snapshot_texts(options.with_prefix(_PREFIX))


def merged_rows(counted: MergedRows | None) -> dict[str, str]:
    """What a MERGE did to rows, by Iceberg Java's keys (BaseSparkWrite)."""
    if counted is None:
        return {}
    numbers = {
        "copied": counted.copied,
        "deleted": counted.deleted,
        "updated": counted.updated,
        "inserted": counted.inserted,
        "matched-updated": counted.matched_updated,
        "matched-deleted": counted.matched_deleted,
        "not-matched-by-source-updated": counted.unmatched_updated,
        "not-matched-by-source-deleted": counted.unmatched_deleted,
    }
    return {f"{_MERGE_PREFIX}{key}": str(n) for key, n in numbers.items() if n >= 0}
