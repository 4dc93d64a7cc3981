"""Partition transforms under Spark's names; the names of fields are Iceberg Java's."""

from __future__ import annotations

import pytest

from icecomb.format.errors import UnsupportedError, ValidationError
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import (
    DateType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestamptzType,
)
from icecomb.spark.partitioning import name_path, partition_spec, spark_transforms

SCHEMA = Schema(
    (
        NestedField(1, "id", LongType()),
        NestedField(2, "ts", TimestamptzType()),
        NestedField(3, "day", DateType()),
        NestedField(4, "s", StringType()),
        NestedField(5, "p", StructType((NestedField(6, "q", StringType()),))),
    )
)


def _spark(name, *arguments):
    return {
        "name": name,
        "arguments": [
            {"value": a} if isinstance(a, int) else {"column": list(a)} for a in arguments
        ],
    }


@pytest.mark.parametrize(
    ("spark", "name", "iceberg", "back"),
    [
        (_spark("identity", ["s"]), "s", "identity", None),
        (_spark("years", ["ts"]), "ts_year", "year", None),
        (_spark("months", ["day"]), "day_month", "month", None),
        (_spark("days", ["ts"]), "ts_day", "day", None),
        (_spark("day", ["ts"]), "ts_day", "day", _spark("days", ["ts"])),
        (_spark("HOURS", ["ts"]), "ts_hour", "hour", _spark("hours", ["ts"])),
        (_spark("bucket", 16, ["id"]), "id_bucket", "bucket[16]", None),
        (_spark("bucket", ["ID"], 16), "id_bucket", "bucket[16]", _spark("bucket", 16, ["id"])),
        (_spark("truncate", 4, ["p", "q"]), "p.q_trunc", "truncate[4]", None),
    ],
)
def test_a_transform_gets_java_s_name_and_comes_back_under_spark_s(spark, name, iceberg, back):
    spec = partition_spec([spark], SCHEMA)
    [field] = spec.fields
    assert (field.name, str(field.transform), field.field_id) == (name, iceberg, 1000)
    assert spark_transforms(spec, SCHEMA) == [back or spark]


def test_fields_are_numbered_from_1000_and_void_ones_are_not_shown():
    spec = partition_spec([_spark("void", ["s"]), _spark("days", ["ts"])], SCHEMA)
    assert [(f.field_id, f.name) for f in spec.fields] == [(1000, "s_null"), (1001, "ts_day")]
    assert spark_transforms(spec, SCHEMA) == [_spark("days", ["ts"])]


@pytest.mark.parametrize(
    ("transforms", "error", "message"),
    [
        ([_spark("zorder", ["id"])], UnsupportedError, "no partition transform 'zorder'"),
        ([_spark("bucket", 4, ["id"], ["s"])], UnsupportedError, "of 2 columns"),
        ([_spark("bucket", ["id"])], ValidationError, "one number"),
        ([_spark("bucket", 0, ["id"])], ValidationError, "one number of at least 1"),
        ([_spark("days", 3, ["ts"])], ValidationError, "takes a column and no number"),
        ([_spark("days", ["s"])], ValidationError, "string"),
        ([_spark("identity", ["p"])], ValidationError, "struct"),
        ([_spark("identity", ["gone"])], ValidationError, "gone"),
        ([_spark("days", ["ts"]), _spark("day", ["ts"])], ValidationError, "ts_day twice"),
    ],
)
def test_what_iceberg_cannot_partition_by_is_refused(transforms, error, message):
    with pytest.raises(error, match=message):
        partition_spec(transforms, SCHEMA)


def test_a_path_of_names_leads_to_a_nested_field():
    assert name_path(SCHEMA, 6) == ["p", "q"]


def test_hours_beside_days_are_refused_for_a_new_table_as_in_iceberg_java():
    # PartitionSpec.Builder.checkForRedundantPartitions, which Spark's CREATE TABLE goes through
    with pytest.raises(ValidationError, match="redundant"):
        partition_spec([_spark("days", ["ts"]), _spark("hours", ["ts"])], SCHEMA)
    [day, _] = partition_spec([_spark("days", ["ts"]), _spark("days", ["day"])], SCHEMA).fields
    assert day.name == "ts_day"
