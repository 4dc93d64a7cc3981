"""Findings about the files of a table: their sizes, deletes, order, partitions and origin."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from icecomb.catalog.health.table_health import HealthFinding
from icecomb.catalog.health.threshold import (
    DELETED_SHARE,
    SERIOUS_SHARE,
    SKEW,
    SKEW_BYTES,
    of_count,
)
from icecomb.catalog.report.finding import Severity

if TYPE_CHECKING:
    from icecomb.catalog.health.examined import Examined


def file_findings(examined: Examined) -> Iterator[HealthFinding]:
    """Yield the findings about the files."""
    yield from _small_files(examined)
    yield from _delete_heavy(examined)
    yield from _equality_deletes(examined)
    yield from _dangling_deletes(examined)
    yield from _skewed(examined)
    yield from _unsorted(examined)
    yield from _old_spec(examined)


def _small_files(examined: Examined) -> Iterator[HealthFinding]:
    """Find files that `rewrite_data_files` selects for their size, by Iceberg's rules.

    A group is a partition; files of older specs are one group.
    """
    rewrite = examined.rewrite
    target = rewrite.target_bytes
    counts = [
        (table["small_files"], table["small_bytes"])
        for number, table in examined.census.partitions.items()
        if number == examined.metadata.default_spec_id
    ]
    older = examined.old_spec_ids
    old = [examined.census.total(name, older) for name in ("small_files", "small_bytes")]
    counts.append((np.array(old[:1], np.int64), np.array(old[1:], np.int64)))
    files = np.concatenate([each for each, _ in counts])
    sizes = np.concatenate([each for _, each in counts])
    worth = (files > 1) & ((files >= rewrite.min_input_files) | (sizes > target))
    if not worth.any():
        return
    count, size, most = int(files[worth].sum()), int(sizes[worth].sum()), int(files[worth].max())
    yield HealthFinding(
        "small-files",
        of_count(most, rewrite.min_input_files),
        f"{count:,} of {examined.facts.files:,} data files are below 3/4 of the target size, "
        f"up to {most:,} in a partition; they average {size // count:,} bytes",
        {
            "small_files": count,
            "small_bytes": size,
            "groups": int(worth.sum()),
            "most_in_a_group": most,
            "target_bytes": target,
        },
        examined.remedies.rewrite_data_files(),
    )


def _delete_heavy(examined: Examined) -> Iterator[HealthFinding]:
    parts = examined.census.partitions.values()
    names = ("position_deletes", "rows", "position_delete_files", "files")
    columns = [np.concatenate([t[name] for t in parts] or [_NONE]) for name in names]
    deleted, rows, delete_files, files = columns
    share = np.divide(deleted, rows, out=np.zeros(len(rows)), where=rows > 0)
    by_rows = share >= DELETED_SHARE
    least = examined.rewrite.min_input_files
    by_files = (delete_files >= least) & (delete_files > files) & (files > 0)
    heavy = by_rows | by_files
    if not heavy.any():
        return
    remedies = examined.remedies
    gone, there = int(deleted[heavy].sum()), int(rows[heavy].sum())
    by_count = of_count(int(delete_files[by_files].max(initial=0)), least)
    yield HealthFinding(
        "delete-heavy",
        Severity.PROBLEM if there and gone >= SERIOUS_SHARE * there else by_count,
        f"{gone:,} of {there:,} rows are deleted by position in {int(heavy.sum()):,} partitions, "
        f"by {int(delete_files[heavy].sum()):,} files: each scan reads these and filters rows",
        {
            "partitions": int(heavy.sum()),
            "position_deletes": gone,
            "rows": there,
            "position_delete_files": int(delete_files[heavy].sum()),
            "data_files": int(files[heavy].sum()),
            "greatest_share": round(float(share[heavy].max()), 4),
        },
        remedies.apply_deletes() if by_rows.any() else remedies.rewrite_position_delete_files(),
    )


def _equality_deletes(examined: Examined) -> Iterator[HealthFinding]:
    facts = examined.facts
    if facts.equality_delete_files:
        yield HealthFinding(
            "equality-deletes",
            of_count(facts.equality_delete_files, 1),
            f"{facts.equality_delete_files:,} files of equality deletes with "
            f"{facts.equality_deletes:,} rows: each scan compares rows with them, and some readers "
            "cannot",
            {
                "equality_delete_files": facts.equality_delete_files,
                "equality_deletes": facts.equality_deletes,
            },
            examined.remedies.convert_equality_deletes(),
        )


def _dangling_deletes(examined: Examined) -> Iterator[HealthFinding]:
    dangling = examined.census.dangling
    if dangling.files:
        yield HealthFinding(
            "dangling-deletes",
            Severity.WARNING,
            f"{dangling.files:,} delete files of {dangling.size:,} bytes no longer apply to any "
            "data file, and are planned with in each scan",
            {"delete_files": dangling.files, "bytes": dangling.size},
            examined.remedies.rewrite_data_files({"remove-dangling-deletes": "true"}),
        )


def _skewed(examined: Examined) -> Iterator[HealthFinding]:
    spec = examined.metadata.spec()
    table = examined.census.partitions.get(spec.spec_id)
    if table is None or spec.is_unpartitioned:
        return
    sizes = table["bytes"]
    sizes = sizes[table["files"] > 0]
    largest, median = (int(sizes.max()), int(np.median(sizes))) if len(sizes) else (0, 0)
    if largest > SKEW_BYTES and largest > SKEW * median:
        yield HealthFinding(
            "skewed-partitions",
            Severity.WARNING,
            f"The largest of {len(sizes):,} partitions has {largest:,} bytes, the median "
            f"{median:,}: no command fixes that; another field in the spec (table.update_spec, "
            "ALTER TABLE … ADD PARTITION FIELD bucket(…)) distributes new rows",
            {"partitions": len(sizes), "largest_bytes": largest, "median_bytes": median},
        )


def _unsorted(examined: Examined) -> Iterator[HealthFinding]:
    files, size = (examined.census.total(name) for name in ("unsorted_files", "unsorted_bytes"))
    if files >= examined.rewrite.min_input_files:
        yield HealthFinding(
            "unsorted",
            _from_share(size, examined.facts.size),
            f"{files:,} of {examined.facts.files:,} data files are not in the table's sort order: "
            "their bounds skip fewer files in a scan",
            {"files": files, "bytes": size, **_order(examined)},
            examined.remedies.rewrite_data_files({"rewrite-all": "true"}, strategy="sort"),
        )


def _old_spec(examined: Examined) -> Iterator[HealthFinding]:
    older = examined.old_spec_ids
    files, size = (examined.census.total(name, older) for name in ("files", "bytes"))
    if files:
        spec = examined.metadata.spec()
        yield HealthFinding(
            "old-spec",
            _from_share(size, examined.facts.size),
            f"{files:,} of {examined.facts.files:,} data files have an older partition spec: "
            "filters on the fields of the current one do not skip them",
            {"files": files, "bytes": size, "spec_id": spec.spec_id, "old_spec_ids": older},
            examined.remedies.rewrite_data_files({"rewrite-all": "true"}),
        )


def _order(examined: Examined) -> dict[str, Any]:
    return {"sort_order_id": examined.metadata.default_sort_order_id}


def _from_share(part: int, whole: int) -> Severity:
    """Return the severity: more than a note from about half of the bytes on."""
    return Severity.WARNING if whole and part >= whole * SERIOUS_SHARE else Severity.NOTE


_NONE = np.zeros(0, np.int64)
