"""Spark's predicates against Iceberg's: whatever Spark selects, the expression selects too."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest
from hypothesis import example, given, strategies as st

from icecomb.format.errors import UnsupportedError
from icecomb.format.expressions.binding import bind
from icecomb.format.expressions.expression import AlwaysTrue
from icecomb.format.rows.read.row_filter import row_mask
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import (
    DecimalType,
    DoubleType,
    LongType,
    NestedField,
    StringType,
    StructType,
    UUIDType,
)
from icecomb.spark.planner.scan.predicates import exact_filter, row_filter

SCHEMA = Schema(
    (
        NestedField(1, "x", DoubleType()),
        NestedField(2, "n", LongType()),
        NestedField(3, "s", StringType()),
        NestedField(4, "p", StructType((NestedField(5, "q", LongType()),))),
        NestedField(6, "u", UUIDType()),
        NestedField(7, "d", DecimalType(9, 2)),
    )
)
VALUES = [None, math.nan, -math.inf, -1.0, 0.0, 1.0, 2.5, math.inf]
OPS = ["eq", "not_eq", "lt", "lt_eq", "gt", "gt_eq", "eq_null_safe"]


def _json(value):
    return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(str(value), value)


def _key(value):
    """Spark's order of doubles: NaN equals itself and is the greatest."""
    return (1, 0.0) if math.isnan(value) else (0, value)


def _spark(predicate, value):
    """What Spark says about one row: True, False or None (unknown)."""
    op = predicate["op"]
    if op == "not":
        inner = _spark(predicate["child"], value)
        return None if inner is None else not inner
    if op in {"and", "or"}:
        answers = [_spark(child, value) for child in predicate["children"]]
        decisive = op == "or"
        if decisive in answers:
            return decisive
        return None if None in answers else not decisive
    if op in {"is_null", "not_null"}:
        return (value is None) == (op == "is_null")
    if op == "in":
        if value is None:
            return None
        return any(_key(float(other)) == _key(value) for other in predicate["values"])
    literal = predicate["value"]
    if op == "eq_null_safe" and (value is None or literal is None):
        return value is None and literal is None
    if value is None:
        return None
    a, b = _key(value), _key(float(literal))
    return {
        "eq": a == b, "eq_null_safe": a == b, "not_eq": a != b,
        "lt": a < b, "lt_eq": a <= b, "gt": a > b, "gt_eq": a >= b,
    }[op]  # fmt: skip


def _leaves():
    literal = st.sampled_from([_json(v) for v in VALUES if v is not None])
    compare = st.builds(
        lambda op, value: {"op": op, "column": ["x"], "type": "double", "value": value},
        st.sampled_from(OPS), literal,
    )  # fmt: skip
    within = st.builds(
        lambda values: {"op": "in", "column": ["x"], "type": "double", "values": values},
        st.lists(literal, min_size=1, max_size=3),
    )
    null = st.sampled_from([{"op": op, "column": ["x"]} for op in ("is_null", "not_null")])
    unknown = st.just({"op": "eq_null_safe", "column": ["x"], "type": "double", "value": None})
    return compare | within | null | unknown


PREDICATES = st.recursive(
    _leaves(),
    lambda inner: st.builds(lambda c: {"op": "not", "child": c}, inner)
    | st.builds(
        lambda op, cs: {"op": op, "children": cs},
        st.sampled_from(["and", "or"]), st.lists(inner, min_size=2, max_size=3),
    ),
    max_leaves=6,
)  # fmt: skip


@given(st.lists(PREDICATES, max_size=3))
def test_every_row_spark_selects_is_selected(predicates):
    bound = bind(SCHEMA, row_filter(predicates, SCHEMA, case_sensitive=True), True)
    mask = row_mask(bound, {1: pa.array(VALUES, pa.float64())}, len(VALUES)).to_pylist()
    for value, selected in zip(VALUES, mask, strict=True):
        if all(_spark(p, value) is True for p in predicates):
            assert selected, (value, predicates)


@given(st.lists(PREDICATES, max_size=3))
@example([{"op": "not", "child": {"op": "eq", "column": ["x"], "type": "double", "value": "NaN"}}])
def test_an_exact_filter_selects_the_rows_that_spark_selects_and_no_others(predicates):
    try:
        exact = exact_filter(predicates, SCHEMA, case_sensitive=True)
    except UnsupportedError:
        return
    mask = row_mask(bind(SCHEMA, exact), {1: pa.array(VALUES, pa.float64())}, len(VALUES))
    expected = [all(_spark(p, value) is True for p in predicates) for value in VALUES]
    assert mask.to_pylist() == expected


@pytest.mark.parametrize(
    "predicate",
    [
        {"op": "eq", "column": ["gone"], "type": "long", "value": 1},
        {"op": "spark_udf", "column": ["n"]},
        {"op": "eq", "column": ["n"], "type": "integer", "value": 1},
        {"op": "eq", "column": ["s"], "type": "string collate UTF8_LCASE", "value": "a"},
        {"op": "eq", "column": ["u"], "type": "string", "value": "no uuid"},
        {"op": "gt", "column": ["d"], "type": "decimal(10,3)", "value": "1.005"},
        {"op": "is_null", "column": []},
        {"op": "in", "column": ["n"], "type": "long", "values": [1, None]},
        {
            "op": "not",
            "child": {"op": "in", "column": ["n"], "type": "long", "values": [1, None]},
        },
        {"op": "or", "children": [{"op": "is_null", "column": ["n"]}, {"op": "what"}]},
        {
            "op": "not",
            "child": {
                "op": "and",
                "children": [{"op": "is_null", "column": ["n"]}, {"op": "what"}],
            },
        },
    ],
)
def test_what_is_not_understood_is_left_to_spark_entirely(predicate):
    assert row_filter([predicate], SCHEMA, case_sensitive=True) == AlwaysTrue()


def test_only_the_conjunct_that_is_not_understood_is_dropped():
    known = {"op": "gt", "column": ["n"], "type": "long", "value": 5}
    both = {"op": "and", "children": [{"op": "what"}, known]}
    expected = row_filter([known], SCHEMA, case_sensitive=True)
    assert row_filter([both, {"op": "what"}], SCHEMA, case_sensitive=True) == expected
    assert str(expected) == "n > 5"


def test_names_lead_into_structs_and_are_matched_as_spark_matches_them():
    predicate = {"op": "eq", "column": ["P", "Q"], "type": "long", "value": 5}
    assert str(row_filter([predicate], SCHEMA, case_sensitive=False)) == "p.q = 5"
    assert row_filter([predicate], SCHEMA, case_sensitive=True) == AlwaysTrue()


def test_text_that_begins_with_a_prefix_is_understood_on_text_only():
    starts = {"op": "starts_with", "column": ["s"], "type": "string", "value": "ab"}
    assert str(row_filter([starts], SCHEMA, case_sensitive=True)) == "s STARTS WITH 'ab'"
