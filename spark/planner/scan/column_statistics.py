"""Numbers of distinct values of columns, from statistics files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from icecomb.format.statistics.statistics_file import newest_statistics
from icecomb.format.statistics.theta_sketch import BLOB_TYPE

if TYPE_CHECKING:
    from icecomb.format.scan.table_scan import TableScan


def distinct_values(scan: TableScan, field_ids: Iterable[int]) -> dict[str, int]:
    """Return the known numbers of distinct values, by field id as text.

    They are those of the scanned snapshot, or of its newest ancestor that has any, for all rows,
    whatever the scan's filter. The number is the property `ndv` of a sketch (Puffin specification,
    ``apache-datasketches-theta-v1``), which table metadata repeats; the statistics file is not
    read.

    Args:
        scan: The scan.
        field_ids: The field ids of the columns.
    """
    snapshot = scan.snapshot()
    file = newest_statistics(scan.metadata, None if snapshot is None else snapshot.snapshot_id)
    wanted = frozenset(field_ids)
    return {
        str(field_id): number for field_id, number in _sketched(file or {}) if field_id in wanted
    }


def _sketched(file: Mapping[str, Any]) -> Iterable[tuple[int, int]]:
    """Yield the columns of a statistics file with their numbers."""
    for blob in file.get("blob-metadata") or ():
        fields: list[int] = blob.get("fields") or []
        number: str = (blob.get("properties") or {}).get("ndv", "")
        if blob.get("type") == BLOB_TYPE and len(fields) == 1 and number.isdecimal():
            yield fields[0], int(number)
