"""Estimates of columns, from statistics files and manifests, for Spark's cost-based optimizer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from icecomb.format.statistics.statistics_file import newest_statistics
from icecomb.format.statistics.theta_sketch import BLOB_TYPE
from icecomb.spark.planner.protocol.scans import ColumnEstimate
from icecomb.spark.values import shown_to_json

if TYPE_CHECKING:
    from icecomb.format.scan.table_scan import TableScan


def column_estimates(
    scan: TableScan, field_ids: Iterable[int], rows: int
) -> dict[str, ColumnEstimate]:
    """Return estimates of columns whose number of distinct values is known, by id as text.

    The numbers are those of the scanned snapshot, or of its newest ancestor that has any, for all
    rows: the property `ndv` of a sketch (Puffin specification, ``apache-datasketches-theta-v1``),
    which table metadata repeats; the statistics file is not read. Nulls, minima and maxima are
    those of the files that the scan's filter selects.
    """
    snapshot = scan.snapshot()
    file = newest_statistics(scan.metadata, None if snapshot is None else snapshot.snapshot_id)
    wanted = frozenset(field_ids)
    distinct = {each: number for each, number in _sketched(file or {}) if each in wanted}
    if not distinct:
        return {}
    schema, found = scan.schema(), {}
    for field_id, known in scan.column_ranges(distinct).items():
        kind, nulls = schema.find_type(field_id), known.nulls
        # numbers of the statistics file are older than values that came since
        values = 0 if known.is_empty else max(1, min(distinct[field_id], rows - (nulls or 0)))
        found[str(field_id)] = ColumnEstimate(
            values,
            None if nulls is None else min(nulls, rows),
            shown_to_json(kind, known.lower),
            shown_to_json(kind, known.upper),
        )
    return found


def _sketched(file: Mapping[str, Any]) -> Iterable[tuple[int, int]]:
    """Yield the columns of a statistics file with their numbers."""
    for blob in file.get("blob-metadata") or ():
        fields: list[int] = blob.get("fields") or []
        number: str = (blob.get("properties") or {}).get("ndv", "")
        if blob.get("type") == BLOB_TYPE and len(fields) == 1 and number.isdecimal():
            yield fields[0], int(number)
