"""Schemas, specs and orders as PyIceberg writes them down mean the same here."""

from __future__ import annotations

from dataclasses import replace

import pyiceberg.partitioning as peer_partitioning
import pyiceberg.schema as peer_schema
import pyiceberg.table.sorting as peer_sorting
import pyiceberg.transforms as peer_transforms
import pyiceberg.types as peer_types
import pytest

from icecomb.format.errors import SchemaError, ValidationError
from icecomb.format.spec import partition, schema, sort, transform, types


class Ours:
    """The names of PyIceberg's documentation, from icecomb."""

    Schema = schema.Schema
    PartitionSpec, PartitionField = partition.PartitionSpec, partition.PartitionField
    SortOrder, SortField = sort.SortOrder, sort.SortField
    SortDirection, NullOrder = sort.SortDirection, sort.NullOrder
    DayTransform, BucketTransform = transform.DayTransform, transform.BucketTransform
    types = types


class Theirs:
    """The same from PyIceberg."""

    Schema = peer_schema.Schema
    PartitionSpec = peer_partitioning.PartitionSpec
    PartitionField = peer_partitioning.PartitionField
    SortOrder, SortField = peer_sorting.SortOrder, peer_sorting.SortField
    SortDirection, NullOrder = peer_sorting.SortDirection, peer_sorting.NullOrder
    DayTransform = peer_transforms.DayTransform
    BucketTransform = peer_transforms.BucketTransform
    types = peer_types


def documented_schema(lib):
    t = lib.types
    return lib.Schema(
        t.NestedField(1, "datetime", t.TimestampType(), required=True),
        t.NestedField(field_id=2, name="symbol", field_type=t.StringType(), required=True),
        t.NestedField(
            3,
            "details",
            t.StructType(
                t.NestedField(4, "created_by", t.StringType(), required=False),
                t.NestedField(5, "bid", t.DoubleType()),
            ),
        ),
        t.NestedField(
            6, "tags", t.ListType(element_id=7, element=t.StringType(), element_required=True)
        ),
        t.NestedField(8, "m", t.MapType(9, t.StringType(), 10, t.LongType(), value_required=False)),
        schema_id=3,
        identifier_field_ids=[1, 2],
    )


def test_a_schema():
    ours, theirs = documented_schema(Ours), documented_schema(Theirs)
    assert ours.to_json() == theirs.model_dump(mode="json", by_alias=True, exclude_none=True)
    assert ours == schema.Schema(ours.fields, 3, (1, 2))
    assert replace(ours, schema_id=4).fields == ours.fields
    assert schema.Schema(*ours.fields) == schema.Schema(list(ours.fields))
    assert schema.Schema(fields=ours.fields).fields == ours.fields


def test_a_struct():
    field = types.NestedField(1, "a", "long")
    assert types.StructType(field) == types.StructType((field,)) == types.StructType([field])
    assert types.StructType(fields=(field,)) == types.StructType(field)
    assert hash(types.StructType(field)) == hash(types.StructType((field,)))
    assert types.StructType() == types.StructType(())
    assert replace(types.StructType(field), extra={"x": 1}).extra == {"x": 1}


@pytest.mark.parametrize("written", ["object", "text"])
def test_a_partition_spec(written):
    def spec(lib):
        day = lib.DayTransform() if written == "object" else "day"
        return lib.PartitionSpec(
            lib.PartitionField(source_id=1, field_id=1000, transform=day, name="datetime_day"),
            lib.PartitionField(2, 1001, lib.BucketTransform(16), "b"),
            spec_id=2,
        )

    ours = spec(Ours)
    assert ours.to_json() == spec(Theirs).model_dump(mode="json", by_alias=True)
    assert ours.fields[0].transform == transform.DayTransform()
    assert ours == partition.PartitionSpec(2, ours.fields)
    assert partition.PartitionSpec(*ours.fields).spec_id == Theirs.PartitionSpec().spec_id == 0
    assert replace(ours, spec_id=5).fields == ours.fields


@pytest.mark.parametrize("written", ["object", "text"])
def test_a_sort_order(written):
    def order(lib):
        return lib.SortOrder(
            lib.SortField(
                source_id=2, transform="identity" if written == "text" else lib.BucketTransform(4)
            ),
            lib.SortField(
                1,
                direction="desc" if written == "text" else lib.SortDirection.DESC,
                null_order="nulls-first" if written == "text" else lib.NullOrder.NULLS_FIRST,
            ),
        )

    ours = order(Ours)
    theirs = order(Theirs)
    assert ours.to_json() == theirs.model_dump(mode="json", by_alias=True)
    assert ours.order_id == 1
    assert ours == sort.SortOrder(1, ours.fields)
    assert sort.SortOrder(*ours.fields, order_id=3).order_id == 3
    assert sort.SortOrder() == sort.UNSORTED_SORT_ORDER


FIELD = types.NestedField(1, "a", types.LongType())
PART = partition.PartitionField(1, 1000, "identity", "a")
KEY = sort.SortField(1)


@pytest.mark.parametrize(
    "make",
    [
        lambda: partition.PartitionSpec(PART, "x"),
        lambda: partition.PartitionSpec(0, PART),
        lambda: partition.PartitionSpec(0, (FIELD,)),
        lambda: partition.PartitionSpec(FIELD),
        lambda: partition.PartitionSpec((PART,)),
        lambda: sort.SortOrder(KEY, "x"),
        lambda: sort.SortOrder(1, KEY),
        lambda: sort.SortOrder((KEY,)),
        lambda: sort.SortOrder(1, (PART,)),
        lambda: schema.Schema(FIELD, 5),
        lambda: schema.Schema("a"),
        lambda: schema.Schema((FIELD, "b")),
        lambda: schema.Schema({"a": FIELD}),
        lambda: types.StructType(FIELD, 5),
        lambda: types.StructType(FIELD, fields=[FIELD]),
        lambda: types.StructType("a"),
        lambda: types.StructType((FIELD, "b")),
        lambda: partition.PartitionField(1, 1000, 5, "a"),
        lambda: sort.SortField(1, direction="down"),
        lambda: sort.SortField(1, null_order="last"),
        lambda: types.ListType(1, 5),
        lambda: types.ListType(1),
        lambda: schema.Schema(FIELD, scheme_id=5),
    ],
)
def test_what_is_neither_spelling_is_refused(make):
    with pytest.raises((ValidationError, SchemaError, TypeError)):
        make()


def test_the_string_of_a_type_is_that_type():
    assert types.ListType(1, "string", True) == types.ListType(1, types.StringType(), True)
    assert types.MapType(1, "string", 2, "decimal(9, 2)") == types.MapType(
        1, types.StringType(), 2, types.DecimalType(9, 2)
    )


def test_a_part_of_a_list_or_map_has_either_of_its_names():
    long = types.LongType()
    assert types.ListType(1, element=long) == types.ListType(1, long)
    assert types.MapType(1, key=long, value_id=2, value=long) == types.MapType(1, long, 2, long)
    assert replace(types.ListType(1, long), element_id=2) == types.ListType(2, long)
    assert replace(types.MapType(1, long, 2, long), value_required=True).value_required
    for make in (
        lambda: types.ListType(1, long, element=long),
        lambda: types.MapType(1, long, 2, long, key=long),
        lambda: types.MapType(1, long),
        lambda: types.ListType(1),
    ):
        with pytest.raises(SchemaError):
            make()
