from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from icecomb.format.row_changes.merge import differing

NAN = float("nan")
KIND = pa.struct(
    [
        ("f", pa.float64()),
        ("l", pa.list_(pa.list_(pa.int64()))),
        ("m", pa.map_(pa.string(), pa.struct([("x", pa.float64())]))),
    ]
)
numbers = st.none() | st.sampled_from([NAN, 0.0, 1.5])
values = st.none() | st.fixed_dictionaries(
    {
        "f": numbers,
        "l": st.none()
        | st.lists(st.none() | st.lists(st.none() | st.integers(0, 1), max_size=2), max_size=2),
        "m": st.none()
        | st.lists(
            st.tuples(st.sampled_from("ab"), st.none() | st.fixed_dictionaries({"x": numbers})),
            max_size=2,
            unique_by=lambda entry: entry[0],
        ),
    }
)


def plain(value):
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


@given(rows=st.lists(st.tuples(values, values), max_size=12), cut=st.integers(0, 3))
def test_nested_values_differ_where_python_says_so(rows, cut):
    left = pa.array([a for a, _ in rows], KIND).slice(cut)
    right = pa.array([b for _, b in rows], KIND).slice(cut)
    assert differing(left, right).tolist() == [plain(a) != plain(b) for a, b in rows[cut:]]
    assert not differing(left, left).any()


@pytest.mark.parametrize(
    "one",
    [
        pa.array([True]),
        pa.array(["a"]),
        pa.array([b"a"]),
        pa.array([dt.date(2024, 1, 31)]),
        pa.array([Decimal("1.50")]),
        pa.array([0], pa.timestamp("us", tz="UTC")),
        pa.array([b"0123"], pa.binary(4)),
        pa.ExtensionArray.from_storage(pa.uuid(), pa.array([bytes(16)], pa.binary(16))),
    ],
    ids=lambda one: str(one.type),
)
def test_nulls_are_equal_to_each_other_only(one):
    null = pa.nulls(1, one.type)
    assert differing(one, null).tolist() == [True]
    assert differing(null, null).tolist() == [False]
    assert differing(one, one).tolist() == [False]


def test_values_of_type_unknown_never_differ():
    assert differing(pa.nulls(3), pa.nulls(3)).tolist() == [False] * 3
