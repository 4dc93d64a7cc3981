"""Filters made with pyarrow select the rows here that they select there."""

from __future__ import annotations

import datetime as dt
import functools
import operator
import uuid
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest
from hypothesis import given, strategies as st

from icecomb.catalog import load_catalog
from icecomb.format.errors import ExpressionError
from icecomb.format.expressions.binding import bind
from icecomb.format.expressions.expression import (
    AlwaysFalse,
    AlwaysTrue,
    EqualTo,
    GreaterThan,
    In,
    IsNaN,
    IsNull,
    LessThan,
    LessThanOrEqual,
    NotEqualTo,
    NotNaN,
    NotNull,
    Or,
    StartsWith,
    rewrite_not,
)
from icecomb.format.expressions.filter_argument import as_expression
from icecomb.format.expressions.forms.arrow_form import from_arrow
from icecomb.format.rows.read.row_filter import row_mask
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import (
    BooleanType,
    DoubleType,
    LongType,
    NestedField,
    StringType,
)

a, b = pc.field("a"), pc.field("b")
NAN = float("nan")
UTC = dt.timezone.utc

SCHEMA = Schema(
    (
        NestedField(1, "n", LongType()),
        NestedField(2, "x", DoubleType()),
        NestedField(3, "s", StringType()),
        NestedField(4, "t", BooleanType()),
    )
)
ROWS = pa.table(
    {
        "n": pa.array([1, 2, 3, None, -1, 3, 0], pa.int64()),
        "x": pa.array([1.5, NAN, None, 0.0, -0.0, float("inf"), 2.0], pa.float64()),
        "s": pa.array(["", "a", "ab", None, "b", "abc", "A"], pa.string()),
        "t": pa.array([True, False, None, True, False, True, None], pa.bool_()),
    }
)


def selected(expression) -> list[int]:
    bound = bind(SCHEMA, rewrite_not(expression))
    columns = {field.field_id: ROWS[field.name].combine_chunks() for field in SCHEMA.fields}
    mask = row_mask(bound, columns, ROWS.num_rows) if columns else None
    return [row for row, chosen in enumerate(mask.to_pylist()) if chosen]


def selected_by_pyarrow(expression) -> list[int]:
    rows = ROWS.append_column("row", pa.array(range(ROWS.num_rows)))
    # of pyarrow's functions only is_in tells -0.0 from 0.0; for us they are equal everywhere
    place = rows.column_names.index("x")
    rows = rows.set_column(place, "x", pc.add(rows["x"], 0.0))
    return rows.filter(expression)["row"].to_pylist()


CONSTANTS = {
    "n": st.sampled_from([0, 1, 3, 2**40]),
    "x": st.sampled_from([0.0, 1.5, 2.0, float("inf"), NAN]),
    "s": st.sampled_from(["", "a", "ab", "b"]),
    "t": st.booleans(),
}
COMPARISONS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]


@st.composite
def predicates(draw):
    name = draw(st.sampled_from("nxst"))
    column = pc.field(name)
    constants = CONSTANTS[name] | st.none()
    kinds = ["compare", "mirrored", "in", "is_null", "is_valid"]
    kinds += {"x": ["nan_is_null", "is_nan"], "s": ["prefix"], "t": ["itself"]}.get(name, [])
    kind = draw(st.sampled_from(kinds))
    if kind in ("compare", "mirrored"):
        kind_of = ROWS.schema.field(name).type
        constant = pc.scalar(pa.scalar(draw(constants), kind_of))
        sides = (column, constant) if kind == "compare" else (constant, column)
        return draw(st.sampled_from(COMPARISONS))(*sides)
    if kind == "in":
        values = pa.array(draw(st.lists(constants, max_size=4)), ROWS.schema.field(name).type)
        if draw(st.booleans()):
            return column.isin(values)
        options = pc.SetLookupOptions(values, skip_nulls=True)
        return pc.Expression._call("is_in", [column], options)
    return {
        "is_null": column.is_null,
        "is_valid": column.is_valid,
        "nan_is_null": lambda: column.is_null(nan_is_null=True),
        "is_nan": lambda: pc.is_nan(column),
        "prefix": lambda: pc.starts_with(column, draw(CONSTANTS["s"])),
        "itself": lambda: column,
    }[kind]()


EXPRESSIONS = st.recursive(
    predicates() | st.sampled_from([pc.scalar(True), pc.scalar(False)]),
    lambda inner: (
        st.builds(operator.and_, inner, inner)
        | st.builds(operator.or_, inner, inner)
        | st.builds(operator.invert, inner)
    ),
    max_leaves=6,
)


@given(EXPRESSIONS)
def test_the_same_rows_are_selected(expression):
    assert selected(from_arrow(expression)) == selected_by_pyarrow(expression)


@pytest.mark.parametrize(
    ("given_one", "expected"),
    [
        (a > 3, GreaterThan("a", 3)),
        (pc.scalar(3) > a, LessThan("a", 3)),
        (ds.field("a") == "x", EqualTo("a", "x")),
        ((a > 3) & (b != 1), GreaterThan("a", 3) & NotEqualTo("b", 1)),
        (~(a > 3), LessThanOrEqual("a", 3) | IsNaN("a")),
        (~(a == 3), NotEqualTo("a", 3)),
        (a.isin([1, 2]), In("a", [1, 2])),
        (a.isin([1, None]), EqualTo("a", 1) | IsNull("a")),
        (a.isin([]), AlwaysFalse()),
        (a.is_valid(), NotNull("a")),
        (~a.is_null(), NotNull("a")),
        (pc.is_nan(a), IsNaN("a")),
        (~pc.is_nan(a), NotNull("a") & NotNaN("a")),
        (pc.starts_with(a, "x"), StartsWith("a", "x")),
        (pc.field("a", "b", "c") > 3, GreaterThan("a.b.c", 3)),
        (a, EqualTo("a", True)),
        (~a, EqualTo("a", False)),
        (pc.scalar(True), AlwaysTrue()),
        (a == pa.scalar(None, pa.int64()), AlwaysFalse()),
        (a == NAN, AlwaysFalse()),
        (a != NAN, NotNull("a")),
    ],
    ids=str,
)
def test_what_becomes_of_an_expression(given_one, expected):
    assert from_arrow(given_one) == expected


@pytest.mark.parametrize("name", ["a b", "a > 3", '"', "x\ny", "ä", "'", "call", "is_null(a)"])
def test_any_name_of_a_column_is_taken_as_it_is(name):
    assert from_arrow(pc.field(name) > 3) == GreaterThan(name, 3)


MOMENT = dt.datetime(2024, 2, 29, 12, 30, 15, 123456)  # noqa: DTZ001 - a time without a zone


@pytest.mark.parametrize(
    ("scalar", "expected"),
    [
        (pa.scalar(3, pa.uint8()), 3),
        (pa.scalar(2**63, pa.uint64()), 2**63),
        (pa.scalar(0.5, pa.float32()), 0.5),
        (pa.scalar("x", pa.large_string()), "x"),
        (pa.scalar("x").cast(pa.dictionary(pa.int8(), pa.string())), "x"),
        (pa.scalar(b"\0\xff"), b"\0\xff"),
        (pa.scalar(b"ab", pa.binary(2)), b"ab"),
        (pa.scalar(Decimal("-1.50")), Decimal("-1.50")),
        (pa.scalar(dt.date(2024, 2, 29)), dt.date(2024, 2, 29)),
        (pa.scalar(dt.date(2024, 2, 29), pa.date64()), dt.date(2024, 2, 29)),
        (pa.scalar(dt.time(1, 2, 3, 4)), dt.time(1, 2, 3, 4)),
        (pa.scalar(3_000, pa.time64("ns")), dt.time(0, 0, 0, 3)),
        (pa.scalar(MOMENT), MOMENT),
        (pa.scalar(MOMENT, pa.timestamp("ns")), MOMENT),
        (pa.scalar(MOMENT, pa.timestamp("us", "UTC")), MOMENT.replace(tzinfo=UTC)),
        (pa.scalar(0, pa.timestamp("s", "America/New_York")), dt.datetime(1970, 1, 1, tzinfo=UTC)),
        (pa.scalar(-1, pa.timestamp("us")), dt.datetime(1969, 12, 31, 23, 59, 59, 999_999)),  # noqa: DTZ001
        (pa.scalar(uuid.UUID(int=7).bytes, pa.uuid()), uuid.UUID(int=7)),
    ],
    ids=lambda value: str(getattr(value, "type", "")),
)
def test_constants_keep_value_and_zone(scalar, expected):
    found = from_arrow(a == scalar).literal
    assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("given_one", "message"),
    [
        (a + 1 > 3, r"greater\(add_checked\(a, 1\), 3\)"),
        (a > b, r"greater\(a, b\)"),
        (pc.scalar(1) == pc.scalar(1), r"equal\(1, 1\)"),
        (a.cast("int32") > 3, r"greater\(cast\(a\), 3\)"),
        ((b > 1) & (pc.utf8_lower(a) == "x"), r"equal\(utf8_lower\(a\), x\)"),
        (pc.starts_with(a, "x", ignore_case=True), r"starts_with\(a\)"),
        (pc.match_substring(a, "x"), r"match_substring\(a\)"),
        (pc.and_(a, b), r"and_\(a, b\)"),
        (pc.scalar(3), "converted exactly: 3"),
        (pc.field(0) > 3, "FieldPath"),
        (a == dt.timedelta(1), "duration"),
        (a == pa.scalar(1, pa.time64("ns")), "lose data"),
        (a == pa.scalar([1]), "no column can hold"),
    ],
    ids=str,
)
def test_what_has_no_counterpart_is_refused_by_name(given_one, message):
    with pytest.raises(ExpressionError, match=message):
        from_arrow(given_one)


def test_long_chains_are_taken_over():
    chain = functools.reduce(operator.or_, [a == n for n in range(3000)])
    found = from_arrow(chain)
    assert isinstance(found, Or)
    assert len(found.operands) == 3000


@pytest.mark.parametrize(
    "far",
    [
        pa.scalar(2**61, pa.timestamp("us")),
        pa.scalar(2**61, pa.timestamp("us", "UTC")),
        pa.scalar(-(2**61), pa.timestamp("us", "Asia/Kolkata")),
        pa.scalar(2**40, pa.timestamp("s")),
        pa.scalar(2**31 - 1, pa.date32()),
        pa.scalar(2**60, pa.date64()),
    ],
    ids=lambda far: str(far.type),
)
@pytest.mark.parametrize(
    "ask",
    [
        lambda far: a < far,
        lambda far: ~(far >= a),
        lambda far: a.isin(pa.array([far])),
        lambda far: pc.is_null(pc.add(a, far)),
        lambda far: pc.field("x") & pc.scalar(far),
    ],
    ids=["compared", "mirrored", "listed", "in a call", "alone"],
)
def test_times_outside_of_the_years_of_python_are_refused_with_the_filter(ask, far):
    with pytest.raises(ExpressionError, match=r"filter that can be converted|no column can hold"):
        from_arrow(ask(far))


def test_other_things_are_no_filters():
    for wrong in (3, pc.field, pa.scalar(True), pa.array([True])):
        with pytest.raises(ExpressionError, match="Not a row filter"):
            as_expression(wrong)


def test_scans_deletes_and_metadata_tables_take_filters_of_pyarrow(tmp_path):
    lake = load_catalog("files", type="hadoop", warehouse=str(tmp_path))
    lake.create_namespace("db")
    table = lake.create_table(("db", "t"), SCHEMA)
    table.append(ROWS)
    found = table.scan(pc.field("n") >= 2).filter(~pc.field("s").is_null()).to_arrow()
    assert found["n"].to_pylist() == [2, 3, 3]
    with pytest.raises(ExpressionError, match="Cannot find column 'm'"):
        table.scan(pc.field("m") > 2).to_arrow()
    table.delete(pc.field("n") == 3)
    assert table.scan().count() == 5
    assert table.inspect.files(row_filter=pc.field("record_count") == 5).num_rows == 1
    assert table.inspect.files(row_filter=pc.field("record_count") == 7).num_rows == 0
