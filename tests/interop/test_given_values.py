"""Values as people give them in Python, read by Iceberg Java: text where the spec says text."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest

from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import LongType, NestedField, TimestampType

pytestmark = pytest.mark.full("Iceberg Java in a second Spark")

NAMES = ("interop", "given")
SUMMARY = {"batch": 5, "share": 0.5, "late": True, "none": float("nan"), "list": [1]}
DAY = dt.datetime(2024, 1, 31, 10)  # noqa: DTZ001
ROWS = pa.table(
    {
        "id": pa.array([1, 2], pa.int64()),
        "ts": pa.array([DAY, DAY + dt.timedelta(hours=1)], pa.timestamp("us")),
    }
)


@pytest.fixture
def table(catalog):
    catalog.create_namespace_if_not_exists(NAMES[0])
    table = catalog.create_table(
        NAMES,
        Schema(NestedField(1, "id", LongType()), NestedField(2, "ts", TimestampType())),
        partition_spec=PartitionSpec(PartitionField(2, 1000, "day", "ts_day")),
        properties={"format-version": 2, "write.target-file-size-bytes": 1 << 20, "on": True},
    )
    yield table
    catalog.drop_table(NAMES)


def test_iceberg_java_reads_a_table_made_of_numbers(table, iceberg_java):
    name = "ice." + ".".join(NAMES)
    table.append(ROWS, SUMMARY)
    with table.update_spec() as spec:
        spec.add_field("ts", "hour")
    table.append(ROWS)
    with table.manage_snapshots() as manage:
        manage.create_branch(
            np.int64(table.current_snapshot().snapshot_id),
            "kept",
            max_ref_age_ms=2**63 - 1,
            min_snapshots_to_keep=2**31 - 1,
        )
    assert iceberg_java.sql(f"SELECT id, count(*) FROM {name} GROUP BY id ORDER BY id") == [
        [1, 2],
        [2, 2],
    ]
    keys = ", ".join(f"summary['{key}']" for key in SUMMARY)
    [first, _] = iceberg_java.sql(f"SELECT {keys} FROM {name}.snapshots ORDER BY committed_at")
    assert first == ["5", "0.5", "true", "nan", "[1]"]
    [kept] = iceberg_java.sql(
        f"SELECT max_reference_age_in_ms, min_snapshots_to_keep FROM {name}.refs WHERE name = 'kept'"
    )
    assert kept == [2**63 - 1, 2**31 - 1]
    shown = iceberg_java.sql(f"SHOW TBLPROPERTIES {name}")
    assert ["on", "true"] in shown
    # and Java writes on into days and hours
    iceberg_java.sql(f"INSERT INTO {name} VALUES (3, TIMESTAMP_NTZ '2024-01-31 12:00:00')")
    assert sorted(
        table.refresh().scan("ts >= '2024-01-31T11:00:00'").to_arrow()["id"].to_pylist()
    ) == [
        2,
        2,
        3,
    ]
