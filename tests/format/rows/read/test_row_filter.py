"""Predicates on rows."""

from __future__ import annotations

import pyarrow as pa
import pytest

from icecomb.format.expressions.binding import bind
from icecomb.format.expressions.sql.parser import parse
from icecomb.format.rows.read.row_filter import row_mask
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import DoubleType, FloatType, NestedField


@pytest.mark.parametrize(
    ("kind", "stored"), [(FloatType(), pa.float32()), (DoubleType(), pa.float64())]
)
@pytest.mark.parametrize("zero", ["0.0", "-0.0"])
def test_both_zeros_are_one_value_in_lists_as_in_comparisons(kind, stored, zero):
    schema = Schema((NestedField(1, "f", kind),))
    values = pa.array([0.0, -0.0, 1.5, 2.5, None, float("nan")], stored)
    found = {
        text: row_mask(bind(schema, parse(text), True), {1: values}, len(values)).to_pylist()
        for text in (f"f in ({zero}, 1.5)", f"f not in ({zero}, 1.5)", f"f = {zero} or f = 1.5")
    }
    assert list(found.values()) == [
        [True, True, True, False, False, False],
        [False, False, False, True, False, True],
        [True, True, True, False, False, False],
    ]
