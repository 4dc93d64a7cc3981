"""Partition specs, their paths, and sort orders."""

from decimal import Decimal

import pytest

from icecomb.format.errors import ValidationError
from icecomb.format.spec.partition import PartitionField, PartitionSpec, check_redundant
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.sort import NullOrder, SortDirection, SortField, SortOrder
from icecomb.format.spec.transform import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    TruncateTransform,
    UnknownTransform,
    VoidTransform,
)
from icecomb.format.spec.types import (
    BinaryType,
    DateType,
    DecimalType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
)

SCHEMA = Schema(
    (
        NestedField(1, "id", LongType()),
        NestedField(2, "city", StringType()),
        NestedField(3, "at", TimestampType()),
        NestedField(4, "price", DecimalType(9, 2)),
        NestedField(5, "raw", BinaryType()),
        NestedField(6, "home", StructType((NestedField(7, "zip", StringType()),))),
        NestedField(8, "tags", ListType(9, StringType())),
    )
)


def spec(*fields):
    return PartitionSpec(
        0, tuple(PartitionField(s, 1000 + i, t, n) for i, (s, t, n) in enumerate(fields))
    )


def test_the_partition_type_follows_the_transforms():
    partitioned = spec(
        (3, DayTransform(), "day"),
        (1, BucketTransform(4), "bucket"),
        (7, IdentityTransform(), "home.zip"),
        (4, TruncateTransform(10), "step"),
        (99, VoidTransform(), "gone"),
    )
    assert partitioned.partition_type(SCHEMA) == StructType(
        (
            NestedField(1000, "day", DateType()),
            NestedField(1001, "bucket", IntegerType()),
            NestedField(1002, "home.zip", StringType()),
            NestedField(1003, "step", DecimalType(9, 2)),
            NestedField(1004, "gone", StringType()),
        )
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        ("New York", "New+York"),
        ("a/b=c", "a%2Fb%3Dc"),
        ("ü", "%C3%BC"),
        ("\U0001f600", "%F0%9F%98%80"),
        ("~*-._", "%7E*-._"),
        ("100%", "100%25"),
        ("", ""),
        (None, "null"),
        ("a+b", "a%2Bb"),
    ],
)
def test_values_in_paths_are_encoded_as_java_does(value, text):
    assert (
        spec((2, IdentityTransform(), "city")).partition_to_path((value,), SCHEMA) == f"city={text}"
    )


def test_paths_join_all_fields_and_encode_names():
    partitioned = spec(
        (3, HourTransform(), "the hour"),
        (4, IdentityTransform(), "price"),
        (5, IdentityTransform(), "raw"),
    )
    path = partitioned.partition_to_path((419686, Decimal("1.50"), b"\xff\xfe"), SCHEMA)
    assert path == "the+hour=2017-11-16-22/price=1.50/raw=%2F%2F4%3D"
    with pytest.raises(ValidationError, match="3 fields"):
        partitioned.partition_to_path((1,), SCHEMA)


@pytest.mark.parametrize(
    "fields",
    [
        ((99, IdentityTransform(), "x"),),
        ((2, DayTransform(), "day"),),
        ((6, IdentityTransform(), "home"),),
        ((9, IdentityTransform(), "tag"),),
        ((1, BucketTransform(4), "city"),),
        ((1, IdentityTransform(), "city"),),
        ((1, BucketTransform(4), "b"), (2, BucketTransform(4), "b")),
        ((1, UnknownTransform("zorder"), "z"),),
        ((1, BucketTransform(4), ""),),
    ],
)
def test_a_spec_that_does_not_fit_is_refused(fields):
    with pytest.raises(ValidationError):
        spec(*fields).check(SCHEMA)


@pytest.mark.parametrize(
    "fields",
    [
        ((3, DayTransform(), "a"), (3, MonthTransform(), "b")),
        ((1, BucketTransform(4), "a"), (1, BucketTransform(4), "b")),
    ],
)
def test_a_field_that_says_less_than_another_fits_but_is_redundant(fields):
    found = spec(*fields)
    found.check(SCHEMA)
    with pytest.raises(ValidationError, match="redundant"):
        check_redundant(found.fields)


def test_a_spec_with_void_fields_is_kept_but_partitions_nothing():
    void = spec((99, VoidTransform(), "gone"))
    void.check(SCHEMA)
    assert void.is_unpartitioned
    assert not void.is_partitioned()
    assert void.partition_to_path((None,), SCHEMA) == "gone=null"


def test_specs_are_compatible_when_they_partition_alike():
    one = spec((1, BucketTransform(4), "b"))
    other = PartitionSpec(7, (PartitionField(1, 1005, BucketTransform(4), "b"),))
    assert one.compatible_with(other)
    assert one != other
    assert not one.compatible_with(spec((1, BucketTransform(5), "b")))
    assert not other.has_sequential_ids()
    assert PartitionSpec.from_json(other.to_json()) == other


def test_fields_of_one_spec_have_ids_all_or_none():
    raw = spec((1, BucketTransform(4), "a"), (2, BucketTransform(4), "b")).to_json()
    del raw["fields"][0]["field-id"]
    with pytest.raises(ValidationError, match="field-id"):
        PartitionSpec.from_json(raw)


def test_nulls_stand_where_the_direction_puts_them_unless_told():
    assert SortField(1).null_order is NullOrder.NULLS_FIRST
    assert SortField(1, direction=SortDirection.DESC).null_order is NullOrder.NULLS_LAST
    assert SortOrder.from_json(SortOrder(1, (SortField(1),)).to_json()).fields == (SortField(1),)


def test_a_finer_sort_order_satisfies_a_coarser_one():
    by_hour = SortOrder(1, (SortField(3, HourTransform()), SortField(1)))
    by_day = SortOrder(2, (SortField(3, DayTransform()),))
    assert by_hour.satisfies(by_day)
    assert not by_day.satisfies(by_hour)
    assert by_day.satisfies(SortOrder())
    assert not by_hour.satisfies(SortOrder(3, (SortField(3, DayTransform(), SortDirection.DESC),)))


@pytest.mark.parametrize(
    "raw",
    [
        {},
        {"order-id": 1},
        {"order-id": 1, "fields": [{"transform": "identity"}]},
        {"order-id": 1, "fields": [{"transform": "identity", "source-id": 1, "direction": "up"}]},
        {"fields": []},
    ],
)
def test_what_is_no_sort_order_is_refused(raw):
    with pytest.raises(ValidationError):
        SortOrder.from_json(raw)
