"""Summary properties of snapshots, from a session's settings and a write's options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from icecomb.format.operation.summary import snapshot_texts

if TYPE_CHECKING:
    from icecomb.spark.planner.options import Options
    from icecomb.spark.planner.protocol.writes import MergedRows

_PREFIX: Final = "snapshot-property."
_MERGE_PREFIX: Final = "spark.merge-into.num-target-rows-"


def snapshot_properties(options: Options) -> dict[str, str]:
    """Return the requested keys, without the prefixes of settings and options."""
    return snapshot_texts(options.with_prefix(_PREFIX))


def merged_rows(
    counted: MergedRows | None, written: int, removed: int | None = None
) -> dict[str, str]:
    """Return a MERGE's row counts under Iceberg Java's keys (BaseSparkWrite).

    Spark counts rows twice when a task whose executor was lost runs again: counts that contradict
    the files are left out.

    Args:
        written: Number of rows in the new data files.
        removed: Number of rows in the removed files, or deleted by the new deletes; None if
            unknown.
    """
    if counted is None or not _agrees(counted, written, removed):
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


def _agrees(counted: MergedRows, written: int, removed: int | None) -> bool:
    def total(*counts: int) -> int:
        # -1 if it was not counted
        return sum(count for count in counts if count > 0)

    return (
        written == total(counted.copied, counted.updated, counted.inserted)
        and removed in {None, total(counted.copied, counted.updated, counted.deleted)}
        and max(counted.updated, 0) == total(counted.matched_updated, counted.unmatched_updated)
        and max(counted.deleted, 0) == total(counted.matched_deleted, counted.unmatched_deleted)
    )
