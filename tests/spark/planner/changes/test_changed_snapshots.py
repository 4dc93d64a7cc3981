"""Which snapshots the options of a changelog choose."""

from __future__ import annotations

import pyarrow as pa
import pytest

from icecomb.catalog.hadoop.catalog import HadoopCatalog
from icecomb.format.errors import ValidationError
from icecomb.spark.planner.changes.files import changed_snapshots


@pytest.fixture
def table(tmp_path):
    catalog = HadoopCatalog("lake", {"warehouse": str(tmp_path)})
    catalog.create_namespace("db")
    made = catalog.create_table("db.t", pa.schema([("id", pa.int64())]))
    for number in range(3):
        made.append(pa.table({"id": [number]}))
    return made


def test_the_first_is_left_out_and_the_last_is_not(table):
    first, second, third = table.snapshots()
    assert changed_snapshots(table.metadata, {}) == [first, second, third]
    ids = {"start-snapshot-id": str(first.snapshot_id), "end-snapshot-id": str(second.snapshot_id)}
    assert changed_snapshots(table.metadata, ids) == [second]
    times = {"start-timestamp": str(first.timestamp_ms), "end-timestamp": str(second.timestamp_ms)}
    assert changed_snapshots(table.metadata, times) == [second]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        # as org.apache.iceberg.spark.source.SparkScanBuilder says it
        (
            {"start-timestamp": "7", "end-timestamp": "6"},
            "Cannot set start-timestamp to be greater",
        ),
        (
            {"start-timestamp": "7", "end-timestamp": "7"},
            "Cannot set start-timestamp to be greater",
        ),
        ({"start-timestamp": "7", "start-snapshot-id": "7"}, "both given"),
        ({"end-timestamp": "7", "end-snapshot-id": "7"}, "both given"),
        ({"end-timestamp": "noon"}, "an integer"),
    ],
)
def test_what_contradicts_itself_is_refused(table, options, said):
    with pytest.raises(ValidationError, match=said):
        changed_snapshots(table.metadata, options)
