"""Bounds, statistics and partitions as Arrow arrays, compared with reading each value by itself."""

from __future__ import annotations

import uuid
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from icecomb.format.errors import ValidationError
from icecomb.format.inspect.readable_metrics import StatisticColumns, readable_metrics_field
from icecomb.format.rows.values.value_array import bounds_to_arrow, internal_to_arrow
from icecomb.format.spec.arrow_schema import scalar_to_pyarrow, type_to_pyarrow
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.single_value import to_bytes
from icecomb.format.spec.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

INT = st.integers(-(2**31), 2**31 - 1)
MICROS = st.integers(-(10**15), 10**15)
VALUES = [
    (BooleanType(), st.booleans()),
    (IntegerType(), INT),
    (LongType(), st.integers(-(2**63), 2**63 - 1)),
    (FloatType(), st.floats(width=32, allow_nan=False)),
    (DoubleType(), st.floats(allow_nan=False)),
    (DateType(), st.integers(-100_000, 100_000)),
    (TimeType(), st.integers(0, 86_399_999_999)),
    (TimestampType(), MICROS),
    (TimestamptzType(), MICROS),
    (StringType(), st.text(max_size=20)),
    (BinaryType(), st.binary(max_size=20)),
    (FixedType(5), st.binary(min_size=5, max_size=5)),
    (UUIDType(), st.uuids()),
    (DecimalType(9, 2), st.decimals(-9999999, 9999999, places=2)),
    (DecimalType(38, 0), st.integers(-(10**38) + 1, 10**38 - 1).map(Decimal)),
    (DecimalType(38, 38), st.integers(-(10**38) + 1, 10**38 - 1).map(lambda n: Decimal(f"{n}E-38"))),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "values"), VALUES, ids=lambda v: str(v) if isinstance(v, tuple) else None)  # fmt: skip
@given(data=st.data())
def test_bounds_read_as_their_values(kind, values, data):
    listed = data.draw(st.lists(st.none() | values, max_size=8))
    raw = [None if v is None else to_bytes(kind, v) for v in listed]
    for layout in (pa.binary(), pa.large_binary()):
        found = bounds_to_arrow(pa.array(raw, layout), kind)
        assert found.type == type_to_pyarrow(kind)
        found.validate(full=True)
        expected = [None if v is None else scalar_to_pyarrow(v, found.type).as_py() for v in listed]
        assert found.to_pylist() == expected


WIDTHS = {
    BooleanType(): (1,),
    IntegerType(): (4,),
    LongType(): (4, 8),
    FloatType(): (4,),
    DoubleType(): (4, 8),
    DateType(): (4,),
    TimeType(): (8,),
    TimestampType(): (8,),
    TimestamptzType(): (8,),
    UUIDType(): (16,),
}


@pytest.mark.parametrize(("kind", "widths"), WIDTHS.items(), ids=str)
@given(raw=st.lists(st.none() | st.binary(max_size=20), max_size=8))
def test_bytes_of_another_length_are_no_bound(kind, widths, raw):
    found = bounds_to_arrow(pa.array(raw, pa.binary()), kind)
    assert found.is_valid().to_pylist() == [v is not None and len(v) in widths for v in raw]


def test_a_decimal_bound_with_too_many_digits_is_no_bound():
    unscaled = (999, 1000, -999, -1000, 10**30, 10**38, -(10**38), 10**60)
    raw = [
        n.to_bytes(26, "big", signed=True).lstrip(b"\x00")
        if n > 0
        else n.to_bytes(16, "big", signed=True)
        for n in unscaled
    ]
    raw = [b"\x00" + v if n > 0 and v[0] > 127 else v for n, v in zip(unscaled, raw, strict=True)]
    found = bounds_to_arrow(pa.array([*raw, b""]), DecimalType(3, 2))
    found.validate(full=True)
    assert found.to_pylist() == [Decimal("9.99"), None, Decimal("-9.99"), *[None] * 6]


def test_promoted_columns_keep_the_bounds_of_old_files():
    old, new = to_bytes(IntegerType(), -5), to_bytes(LongType(), 2**40)
    assert bounds_to_arrow(pa.array([old, new, None]), LongType()).to_pylist() == [-5, 2**40, None]
    old, new = to_bytes(FloatType(), 0.5), to_bytes(DoubleType(), 0.1)
    assert bounds_to_arrow(pa.array([old, new]), DoubleType()).to_pylist() == [0.5, 0.1]


def test_a_truncated_fixed_bound_is_filled_up_and_too_long_a_one_unknown():
    raw = pa.array([b"ab", b"abcd", b"abcde", None])
    assert bounds_to_arrow(raw, FixedType(4)).to_pylist() == [b"ab\x00\x00", b"abcd", None, None]


def test_text_cut_inside_a_character_is_shown_as_far_as_it_goes():
    raw = pa.array(["grün".encode()[:3], b"ok"])
    assert bounds_to_arrow(raw, StringType()).to_pylist() == ["gr�", "ok"]


@pytest.mark.parametrize(
    ("kind", "stored", "values"),
    [
        (DateType(), pa.int32(), [19723, None]),
        (TimeType(), pa.int64(), [1, None]),
        (TimestamptzType(), pa.int64(), [1_700_000_000_000_000, None]),
        (UUIDType(), pa.binary(16), [uuid.UUID(int=7).bytes, None]),
        (LongType(), pa.int32(), [4, None]),
        (StringType(), pa.large_string(), ["a", None]),
        (DecimalType(12, 2), pa.decimal128(9, 2), [Decimal("1.50"), None]),
    ],
)
def test_partition_values_have_the_type_of_rows(kind, stored, values):
    found = internal_to_arrow(pa.array(values, stored), kind)
    assert found.type == type_to_pyarrow(kind)
    expected = [None if v is None else scalar_to_pyarrow(v, found.type).as_py() for v in values]
    assert found.to_pylist() == expected


STATISTIC = pa.large_list(pa.struct([("key", pa.int32()), ("value", pa.int64())]))
COUNTS = st.lists(
    st.none() | st.dictionaries(st.integers(1, 6), st.integers(0, 99), max_size=5), max_size=10
)


@given(COUNTS, st.integers(0, 3), st.integers(0, 7))
def test_a_column_of_a_statistic_is_what_each_map_says(maps, start, column):
    pairs = [None if m is None else [{"key": k, "value": v} for k, v in m.items()] for m in maps]
    lists = pa.array(pairs, STATISTIC)[start:]
    expected = [None if m is None else m.get(column) for m in maps[start:]]
    assert StatisticColumns(lists).column(column).to_pylist() == expected


def test_a_map_of_any_key_order_is_a_statistic():
    kind = pa.large_list(pa.struct([("value", pa.int64()), ("key", pa.int32())]))
    lists = pa.array([[{"value": 9, "key": 2}]], kind)
    assert StatisticColumns(lists).column(2).to_pylist() == [9]


def test_readable_metrics_name_every_primitive_field_in_order_of_names():
    schema = Schema(
        (
            NestedField(1, "z", LongType()),
            NestedField(2, "a", MapType(3, StringType(), 4, StructType((NestedField(5, "v", DateType()),)))),
            NestedField(6, "list", ListType(7, FixedType(3))),
        )
    )  # fmt: skip
    field = readable_metrics_field(schema, 1002)
    assert [f.name for f in field.field_type.fields] == ["a.key", "a.value.v", "list.element", "z"]
    metrics = field.field_type.fields[1].field_type.fields
    assert [str(f.field_type) for f in metrics] == ["long"] * 4 + ["date"] * 2
    ids = {f.field_id for c in field.field_type.fields for f in (c, *c.field_type.fields)}
    assert ids == set(range(1003, 1031))
    assert field.field_id == 1031


def test_columns_whose_full_names_clash_are_refused():
    inner = StructType((NestedField(2, "b", LongType()),))
    with pytest.raises(ValidationError, match=r"a\.b"):
        Schema((NestedField(1, "a", inner), NestedField(3, "a.b", LongType())))
