from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from icecomb.format.arrow.value_codes import ValueCodes

NAN = float("nan")
VALUES = {
    pa.int32(): [0, 1, -1, 2**31 - 1, -(2**31)],
    pa.int64(): [0, 1, -1, 2**63 - 1, -(2**63), 2**32],
    pa.string(): ["", "a", "é", "a\x00", "x" * 100],
    pa.binary(): [b"", b"\x00", b"\xff", b"ab"],
    pa.binary(2): [b"ab", b"\x00\x00", b"\xff\xff"],
    pa.date32(): [dt.date(1970, 1, 1), dt.date(1, 1, 1), dt.date(9999, 12, 31)],
    pa.timestamp("us"): [dt.datetime(1970, 1, 1), dt.datetime(2020, 1, 1)],  # noqa: DTZ001
    pa.time64("us"): [dt.time(0), dt.time(23, 59, 59, 999999)],
    pa.bool_(): [True, False],
    pa.float64(): [0.5, NAN, 1e300],
    pa.decimal128(9, 2): [Decimal("0.00"), Decimal("-1.50")],
}


@st.composite
def columns(draw):
    kind = draw(st.sampled_from(list(VALUES)))
    value = st.none() | st.sampled_from(VALUES[kind])
    known, asked = draw(st.lists(value, max_size=6)), draw(st.lists(value, max_size=12))
    skip = draw(st.integers(0, 3))
    return kind, known, asked, skip


@given(columns())
def test_codes_are_those_of_the_known_values(case):
    """Nulls equal each other, and so do NaNs; arrays may be slices."""
    kind, known, asked, skip = case
    values = pa.array(known, kind).unique()
    array = pa.array([None] * skip + asked, kind).slice(skip)
    names = [repr(v) for v in values.to_pylist()]
    expected = [names.index(repr(v)) if repr(v) in names else -1 for v in asked]
    assert ValueCodes(values).of(array).tolist() == expected


@pytest.mark.parametrize("kind", [pa.int64(), pa.string()])
def test_many_values_are_told_apart(kind):
    numbers = np.random.default_rng(1).integers(0, 1 << 62, 200_000)
    known, others = pa.array(numbers[::2]).cast(kind), pa.array(numbers[1::2]).cast(kind)
    codes = ValueCodes(known)
    assert (codes.of(known) == np.arange(len(known))).all()
    assert (codes.of(others) == -1).all()


def test_values_with_one_hash_are_told_apart(monkeypatch):
    import polars as pl

    monkeypatch.setattr(pl.Series, "hash", lambda s: pl.Series([7] * len(s), dtype=pl.UInt64))
    one = ValueCodes(pa.array(["a"]))
    assert one.of(pa.array(["b", "a", None])).tolist() == [-1, 0, -1]
    two = ValueCodes(pa.array(["a", "b"]))
    assert two.of(pa.array(["b", "a", "c"])).tolist() == [1, 0, -1]
