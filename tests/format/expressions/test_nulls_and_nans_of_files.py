"""What counts of nulls and NaNs tell of files: one of each kind, and each question."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

from icecomb.format.expressions.binding import bind
from icecomb.format.expressions.comparison import bounds_column
from icecomb.format.expressions.expression import (
    EqualTo,
    In,
    IsNaN,
    IsNull,
    LessThan,
    NotEqualTo,
    NotIn,
    NotNaN,
    NotNull,
)
from icecomb.format.expressions.metrics_evaluator import might_match, must_match
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import DoubleType, NestedField

SCHEMA = Schema(NestedField(1, "x", DoubleType()))
NAN = math.nan
FILES = {
    "nulls": [None, None, None],
    "NaNs": [NAN, NAN, NAN],
    "values": [1.0, 1.0, 1.0],
    "a null": [None, 1.0, 1.0],
    "a NaN": [NAN, 1.0, 1.0],
    "nulls and a NaN": [None, None, NAN],
    "a null and NaNs": [None, NAN, NAN],
    "a null and a NaN": [None, NAN, 1.0],
}
ROWS = list(FILES.values())


def is_nan(x: float | None) -> bool:
    return x is not None and math.isnan(x)


QUESTIONS = {
    "null": (IsNull("x"), lambda x: x is None),
    "not null": (NotNull("x"), lambda x: x is not None),
    "NaN": (IsNaN("x"), is_nan),
    "not NaN": (NotNaN("x"), lambda x: not is_nan(x)),
    "one": (EqualTo("x", 1.0), lambda x: x == 1.0),
    "not one": (NotEqualTo("x", 1.0), lambda x: x is not None and x != 1.0),
    "below one": (LessThan("x", 1.0), lambda x: x is not None and x < 1.0),
    "one or two": (In("x", [1.0, 2.0]), lambda x: x in (1.0, 2.0)),
    "neither one nor two": (NotIn("x", [1.0, 2.0]), lambda x: x is not None and x not in (1.0, 2.0)),
}  # fmt: skip


class Counted:
    """The metrics of these files, as a writer states them who counts everything."""

    record_count = pa.array([len(rows) for rows in ROWS], pa.int64())

    def value_count(self, _: int) -> pa.Array:
        return self.record_count

    def null_count(self, _: int) -> pa.Array:
        return pa.array([sum(x is None for x in rows) for rows in ROWS], pa.int64())

    def nan_count(self, _: int) -> pa.Array:
        return pa.array([sum(map(is_nan, rows)) for rows in ROWS], pa.int64())

    def bound(self, reference: Any) -> Any:
        found = [1.0 if 1.0 in rows else None for rows in ROWS]
        encoded = [
            None if x is None else pa.array([x]).buffers()[1].to_pybytes()[:8] for x in found
        ]
        return bounds_column(pa.array(encoded, pa.binary()), reference.field_type)  # fmt: skip

    lower_bound = upper_bound = bound


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_file_is_read_if_a_row_matches_and_taken_whole_only_if_all_do(question):
    predicate, matches = QUESTIONS[question]
    bound, metrics = bind(SCHEMA, predicate), Counted()
    might = dict(zip(FILES, might_match(bound, metrics).to_pylist(), strict=True))
    must = dict(zip(FILES, must_match(bound, metrics).to_pylist(), strict=True))
    for name, rows in FILES.items():
        if any(map(matches, rows)):
            assert might[name], name
        if not all(map(matches, rows)):
            assert not must[name], name


def test_what_counts_prove_is_not_read():
    wanted = {
        "null": {"NaNs", "values", "a NaN"},
        "not null": {"nulls"},
        "NaN": {"nulls", "values", "a null"},
        "not NaN": {"NaNs"},
        "one": {"nulls", "NaNs"},
    }
    for question, spared in wanted.items():
        bound = bind(SCHEMA, QUESTIONS[question][0])
        might = dict(zip(FILES, might_match(bound, Counted()).to_pylist(), strict=True))
        assert {name for name, read in might.items() if not read} == spared, question


def test_what_counts_prove_is_taken_whole():
    wanted = {
        "null": {"nulls"},
        "not null": {"NaNs", "values", "a NaN"},
        "NaN": {"NaNs"},
        "not NaN": {"nulls", "values", "a null"},
        "one": {"values"},
    }
    for question, whole in wanted.items():
        bound = bind(SCHEMA, QUESTIONS[question][0])
        must = dict(zip(FILES, must_match(bound, Counted()).to_pylist(), strict=True))
        assert {name for name, every in must.items() if every} == whole, question
