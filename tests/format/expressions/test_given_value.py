"""Scalars and columns of NumPy, pandas and Arrow as the literals of predicates."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from uuid import UUID

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from icecomb.format.errors import ExpressionError
from icecomb.format.expressions.binding import bind
from icecomb.format.expressions.expression import (
    AlwaysFalse,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
    NotIn,
    StartsWith,
)
from icecomb.format.expressions.forms.arrow_form import from_arrow
from icecomb.format.expressions.sql.parser import parse
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

KINDS = {
    "int": IntegerType(),
    "long": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "decimal": DecimalType(9, 2),
    "date": DateType(),
    "time": TimeType(),
    "timestamp": TimestampType(),
    "timestamptz": TimestamptzType(),
    "string": StringType(),
    "binary": BinaryType(),
    "boolean": BooleanType(),
    "uuid": UUIDType(),
}
SCHEMA = Schema(tuple(NestedField(i, n, k) for i, (n, k) in enumerate(KINDS.items(), 1)))
NOON = dt.datetime.fromisoformat("2024-01-31T12:00:00")
FEBRUARY = dt.datetime.fromisoformat("2024-02-01T00:00:00")
DAY = dt.date(2024, 1, 31)
KEY = UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")
UTC = dt.timezone.utc


def encoded(value: object) -> pa.Scalar:
    return pa.RunEndEncodedArray.from_arrays(pa.array([3], pa.int32()), pa.array([value]))[1]


GIVEN = [
    *((name, kind(7), 7) for name in ("int", "long", "double") for kind in (np.int8, np.int32, np.int64, np.uint64)),
    ("long", pd.Series([3, 7]).max(), 7),
    ("long", pd.Series([3, 7], dtype="Int64").max(), 7),
    ("long", pl.Series([3, 7]).max(), 7),
    ("long", pc.max(pa.array([3, 7])), 7),
    ("long", pa.scalar(7, pa.uint8()), 7),
    ("long", np.array(7), 7),
    ("long", pa.array([7]).dictionary_encode()[0], 7),
    ("long", encoded(7), 7),
    ("float", np.float32(0.1), 0.1),
    ("double", np.float16(0.5), 0.5),
    ("double", np.float64(0.1), 0.1),
    ("decimal", np.float64(0.1), Decimal("0.10")),
    ("decimal", np.int64(3), Decimal("3.00")),
    ("decimal", pa.scalar(Decimal("1.5")), Decimal("1.50")),
    ("date", np.datetime64("2024-01-31"), DAY),
    ("date", pa.scalar(DAY), DAY),
    ("date", pa.scalar(DAY, pa.date64()), DAY),
    ("date", pd.Timestamp("2024-01-31"), DAY),
    ("time", pa.scalar(dt.time(12, 30)), dt.time(12, 30)),
    ("time", pa.scalar(1_000, pa.time64("ns")), 1),
    *(("timestamp", np.datetime64("2024-01-31T12", unit), NOON) for unit in ("h", "s", "ms", "us", "ns")),
    ("timestamp", np.datetime64("2024-02"), FEBRUARY),
    ("timestamp", pd.Timestamp(NOON), NOON),
    *(("timestamp", pa.scalar(NOON, pa.timestamp(unit)), NOON) for unit in ("s", "ms", "us", "ns")),
    ("timestamptz", pd.Timestamp(NOON, tz="Europe/Berlin"), NOON.replace(hour=11, tzinfo=UTC)),
    ("timestamptz", pa.scalar(NOON, pa.timestamp("ns", "Europe/Berlin")), NOON.replace(tzinfo=UTC)),
    ("string", np.str_("a'b"), "a'b"),
    ("string", pa.scalar("x", pa.string_view()), "x"),
    ("string", pa.scalar("x", pa.large_string()), "x"),
    ("binary", np.bytes_(b"x"), b"x"),
    ("binary", bytearray(b"x"), b"x"),
    ("binary", memoryview(b"x"), b"x"),
    ("binary", pa.scalar(b"x", pa.binary_view()), b"x"),
    ("boolean", np.bool_(True), True),
    ("boolean", pa.scalar(False), False),
    ("uuid", pa.array([KEY.bytes], pa.uuid())[0], KEY),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "given", "meant"),
    GIVEN,
    ids=[f"{name} as {type(given).__name__}" for name, given, _ in GIVEN],
)
def test_a_scalar_of_another_library_is_the_value_it_holds(name, given, meant):
    for made, expected in (
        (EqualTo(name, given), EqualTo(name, meant)),
        (LessThan(name, given), LessThan(name, meant)),
        (In(name, [given, given]), EqualTo(name, meant)),
    ):
        assert bind(SCHEMA, made) == bind(SCHEMA, expected)
        assert bind(SCHEMA, parse(str(made))) == bind(SCHEMA, expected)


@pytest.mark.parametrize(
    "values",
    [
        np.array([1, 2]),
        pd.Series([1, 2, 2]),
        pd.Index([1, 2]),
        pd.Series([2, 1], dtype="category"),
        pa.array([1, 2]),
        pa.array([1, 2]).dictionary_encode(),
        pa.chunked_array([[1], [2]]),
        pl.Series([1, 2]),
        {1, 2},
        (n for n in (1, 2)),
    ],
    ids=lambda values: f"{type(values).__module__}.{type(values).__name__}",
)
def test_a_column_of_another_library_is_a_list_of_values(values):
    assert In("long", values) == In("long", [1, 2])


def test_times_of_columns_are_times_and_no_numbers():
    days = np.array(["2024-01-31T12", "2024-02-01"], "datetime64[ns]")
    meant = In("timestamp", [NOON, FEBRUARY])
    for values in (days, pd.Series(days), pa.array(days), pd.Series(days).array):
        assert In("timestamp", values) == meant


NULLS = [None, pd.NA, pd.NaT, np.datetime64("NaT"), pa.scalar(None), pa.scalar(None, pa.int64())]


@pytest.mark.parametrize("null", NULLS, ids=lambda v: type(v).__name__)
def test_the_null_of_every_library_is_told_as_null(null):
    for make in (lambda: EqualTo("long", null), lambda: NotIn("long", [1, null])):
        with pytest.raises(ExpressionError, match="null is never true") as refused:
            make()
        assert "IsNull" in refused.value.hint
    for nan in (np.float32("nan"), pa.scalar(float("nan"))):
        with pytest.raises(ExpressionError, match="NaN is never true"):
            EqualTo("double", nan)


MANY = [
    np.array([1]),
    pd.Series([1]),
    pd.Index([1]),
    pa.array([1]),
    pa.chunked_array([[1]]),
]


@pytest.mark.parametrize("many", MANY, ids=lambda v: type(v).__name__)
def test_several_values_are_no_single_one(many):
    for make in (lambda: EqualTo("long", many), lambda: In("long", [many, many])):
        with pytest.raises(ExpressionError, match="one value") as refused:
            make()
        assert "In(" in refused.value.hint


@pytest.mark.parametrize("wrong", [7, np.int64(7), np.array(7), [[1]], [{}]], ids=repr)
def test_what_is_no_list_of_plain_values_is_refused(wrong):
    with pytest.raises(ExpressionError, match="needs a list"):
        In("long", wrong)


FINE = 1706702400_000_000_001
"""2024-01-31 12:00 and a nanosecond."""
NANOSECONDS = [
    (np.datetime64("2024-01-31T12:00:00.000000001"), False),
    (np.array("2024-01-31T12:00:00.000000001", "datetime64[ns]"), False),
    (pd.Timestamp("2024-01-31T12:00:00.000000001"), False),
    (pa.scalar(FINE, pa.timestamp("ns")), False),
    (pd.Timestamp("2024-01-31T12:00:00.000000001", tz="UTC"), True),
    (pd.Timestamp("2024-01-31T13:00:00.000000001", tz="Europe/Berlin"), True),
    (pa.scalar(FINE, pa.timestamp("ns", "Europe/Berlin")), True),
]


@pytest.mark.parametrize(("value", "zoned"), NANOSECONDS, ids=range(len(NANOSECONDS)))
def test_nanoseconds_are_compared_exactly(value, zoned):
    suffix = "tz" if zoned else ""
    micros, nanos = FINE // 1000, f"timestamp{suffix}_ns"
    schema = Schema(NestedField(1, "m", f"timestamp{suffix}"), NestedField(2, "n", nanos))
    assert bind(schema, EqualTo("n", value)).literal == FINE
    assert bind(schema, LessThan("n", value)) == bind(schema, LessThan("n", FINE))
    assert bind(schema, EqualTo("m", value)) == AlwaysFalse()
    assert bind(schema, LessThan("m", value)) == bind(schema, LessThanOrEqual("m", micros))
    assert bind(schema, GreaterThanOrEqual("m", value)) == bind(schema, GreaterThan("m", micros))
    text = str(EqualTo("n", value))
    assert bind(schema, parse(text)) == bind(schema, EqualTo("n", value))
    other = Schema(NestedField(1, "n", "timestamp_ns" if zoned else "timestamptz_ns"))
    with pytest.raises(ExpressionError, match="zone"):
        bind(other, EqualTo("n", value))
    with pytest.raises(ExpressionError, match="not text"):
        bind(Schema(NestedField(1, "n", "string")), EqualTo("n", value))


INEXACT = [
    (np.datetime64("2024-01-31T12:00:00.000000000001"), "finer than nanoseconds"),
    (pa.scalar(1, pa.time64("ns")), "would lose data"),
    (np.datetime64("20000-01-01", "s"), "years 1 to 9999"),
    (pd.Timestamp(np.datetime64("20000-01-01", "s")), "years 1 to 9999"),
    (pa.scalar(2**60, pa.timestamp("us")), "No column can be compared"),
    (pa.scalar([1]), "No column can be compared"),
]


@pytest.mark.parametrize(("value", "reason"), INEXACT, ids=range(len(INEXACT)))
def test_times_that_have_no_value_of_python_are_refused_and_not_rounded(value, reason):
    with pytest.raises(ExpressionError, match=reason) as refused:
        EqualTo("timestamp", value)
    assert refused.value.hint


@pytest.mark.parametrize(
    "value",
    [
        np.timedelta64(5, "ns"),
        pd.Timedelta(5),
        np.complex64(1),
        np.longdouble(1),
        pd.Period("2024"),
    ],
    ids=repr,
)
def test_what_no_column_holds_is_refused_where_it_meets_the_column(value):
    for name in ("long", "double", "timestamp", "string"):
        with pytest.raises(ExpressionError):
            bind(SCHEMA, EqualTo(name, value))


def test_a_prefix_may_be_a_scalar_too():
    assert StartsWith("string", np.str_("a")) == StartsWith("string", "a")


def test_filters_of_arrow_take_the_views_that_a_column_may_be_of():
    made = from_arrow(pc.field("string") == pa.scalar("x", pa.string_view()))
    assert made == EqualTo("string", "x")
