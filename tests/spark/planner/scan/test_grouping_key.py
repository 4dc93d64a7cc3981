"""By what the tasks of a scan are told apart, where the session asks for that."""

from __future__ import annotations

from decimal import Decimal

import pytest

from icecomb.format.errors import ConfigurationError
from icecomb.format.manifests.manifest import DataFile
from icecomb.format.rows.values.scan_task import FileScanTask
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import (
    DecimalType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestamptzType,
    UUIDType,
)
from icecomb.spark.planner.scan.read_options import ReadOptions
from icecomb.spark.planner.scan.scan import GroupingKey, SplitSize

INNER = StructType((NestedField(8, "x", LongType(), required=False),))
COLUMNS = {
    1: ("id", LongType()),
    2: ("s", StringType()),
    3: ("ts", TimestamptzType()),
    4: ("u", UUIDType()),
    5: ("d", DecimalType(18, 2)),
    7: ("st", INNER),
}
SCHEMA = Schema(tuple(NestedField(i, name, t, required=False) for i, (name, t) in COLUMNS.items()))
ALL = tuple(COLUMNS)


def spec(spec_id, *fields):
    """A spec of (field id, source id, transform)."""
    return PartitionSpec(
        spec_id, tuple(PartitionField(s, i, transform, f"p{i}") for i, s, transform in fields)
    )


def task(of, *partition, size=100, number=0):
    path = f"file:/t/{of.spec_id}-{number}-{partition}.parquet"
    file = DataFile(
        file_path=path,
        partition=partition,
        record_count=10,
        file_size_in_bytes=size,
        spec_id=of.spec_id,
    )
    return FileScanTask(file, spec=of)


def transforms(tasks, read=ALL):
    return [field.transform["name"] for field in GroupingKey.of(tasks, SCHEMA, read).fields]


def test_only_fields_of_all_specs_whose_columns_are_read_tell_tasks_apart():
    old = spec(0, (1000, 1, "bucket[4]"), (1001, 2, "identity"), (1002, 3, "day"))
    void = spec(1, (1000, 1, "bucket[4]"), (1001, 2, "void"), (1002, 3, "day"))
    new = spec(2, (1003, 2, "identity"), (1002, 3, "day"))
    [a, b, c] = task(old, 1, "x", 9), task(void, 1, None, 9), task(new, "x", 9)
    assert transforms([a]) == ["bucket", "identity", "days"]
    assert transforms([a, b]) == ["bucket", "days"]
    assert transforms([a, b, c]) == ["days"]
    assert transforms([a], read=(1,)) == ["bucket"]
    assert transforms([a], read=()) == transforms([]) == []
    # an id that version 1 gave to another field
    assert transforms([a, task(spec(3, (1000, 1, "bucket[8]")), 1)]) == []


def test_what_spark_would_take_for_something_else_tells_nothing_apart():
    odd = spec(
        0,
        (1000, 4, "bucket[4]"),
        (1001, 2, "truncate[3]"),
        (1002, 8, "identity"),
        (1003, 3, "void"),
    )
    assert transforms([task(odd, 1, "abc", 5, None)]) == []
    assert transforms([task(spec(0, (1000, 4, "identity")), None)]) == ["identity"]


def test_a_task_has_one_key_whatever_the_sizes_and_files_of_a_key_are_packed_together():
    first = spec(0, (1000, 5, "identity"), (1001, 1, "bucket[4]"))
    second = spec(1, (1001, 1, "bucket[4]"), (1000, 5, "identity"))
    tasks = [
        task(first, Decimal("1.10"), 0),
        task(second, 0, Decimal("1.10")),
        task(first, None, 0),
        task(second, None, Decimal("1.10"), number=1),
        task(first, Decimal("1.10"), 0, size=5000, number=2),
    ]
    key = GroupingKey.of(tasks, SCHEMA, ALL)
    assert [field.type for field in key.fields] == ["integer", "decimal(18,2)"]
    found = [
        (values, len(group.tasks))
        for values, group in key.task_groups(tasks, SplitSize(target=1000, open_cost=1))
    ]
    assert sorted(found, key=str) == [
        ((0, "1.10"), 1),
        ((0, "1.10"), 1),
        ((0, "1.10"), 1),
        ((0, "1.10"), 1),
        ((0, "1.10"), 1),
        ((0, "1.10"), 2),
        ((0, None), 1),
        ((None, "1.10"), 1),
    ]
    # without a key all are packed together, and nothing is said
    [(values, group)] = GroupingKey().task_groups(tasks, SplitSize(target=10**6, open_cost=1))
    assert (values, len(group.tasks)) == ((), 5)


def test_the_session_says_whether_partitions_stay_apart_and_the_query_where_tasks_run():
    setting = "spark.sql.iceberg.planning.preserve-data-grouping"
    assert not ReadOptions({}).keeps_partitions_apart()
    assert ReadOptions({}, {setting: "TRUE"}).keeps_partitions_apart()
    with pytest.raises(ConfigurationError, match="preserve-data-grouping"):
        ReadOptions({}, {setting: "perhaps"}).keeps_partitions_apart()
    off = {"spark.sql.iceberg.locality.enabled": "false"}
    assert [ReadOptions({}).is_local(on_hdfs=on_hdfs) for on_hdfs in (True, False)] == [True, False]
    assert not ReadOptions({}, off).is_local(on_hdfs=True)
    assert ReadOptions({"locality": "true"}, off).is_local(on_hdfs=False)
