"""Single values as bytes and JSON, compared with the specification and PyIceberg."""

import uuid
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg import conversions
from pyiceberg import types as peer_types

from icecomb.format.errors import ValidationError
from icecomb.format.spec import single_value
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

INTS = st.integers(-(2**31), 2**31 - 1)
LONGS = st.integers(-(2**63), 2**63 - 1)
CASES = [
    (BooleanType(), peer_types.BooleanType(), st.booleans()),
    (IntegerType(), peer_types.IntegerType(), INTS),
    (LongType(), peer_types.LongType(), LONGS),
    (FloatType(), peer_types.FloatType(), st.floats(width=32, allow_nan=False)),
    (DoubleType(), peer_types.DoubleType(), st.floats(allow_nan=False)),
    (DateType(), peer_types.DateType(), INTS),
    (TimeType(), peer_types.TimeType(), st.integers(0, 86_399_999_999)),
    (TimestampType(), peer_types.TimestampType(), LONGS),
    (TimestamptzType(), peer_types.TimestamptzType(), LONGS),
    (StringType(), peer_types.StringType(), st.text()),
    (UUIDType(), peer_types.UUIDType(), st.uuids()),
    (FixedType(4), peer_types.FixedType(4), st.binary(min_size=4, max_size=4)),
    (BinaryType(), peer_types.BinaryType(), st.binary()),
    (DecimalType(20, 3), peer_types.DecimalType(20, 3), st.decimals(-(10**9), 10**9, places=3)),
]


@pytest.mark.parametrize(("kind", "peer", "strategy"), CASES, ids=str)
@settings(deadline=None)
@given(data=st.data())
def test_bytes_are_those_of_pyiceberg_and_come_back(kind, peer, strategy, data):
    value = data.draw(strategy)
    raw = single_value.to_bytes(kind, value)
    assert raw == conversions.to_bytes(peer, value)
    assert single_value.from_bytes(kind, raw) == value


@pytest.mark.parametrize(("kind", "peer", "strategy"), CASES, ids=str)
@settings(deadline=None)
@given(data=st.data())
def test_json_comes_back(kind, peer, strategy, data):
    value = data.draw(strategy)
    if isinstance(kind, (TimestampType, TimestamptzType)):
        value //= 16  # five digits of a year
    assert single_value.from_json(kind, single_value.to_json(kind, value)) == value


@pytest.mark.parametrize(
    ("kind", "value", "raw"),
    [
        (DateType(), 17486, "2017-11-16"),
        (TimeType(), 81068123456, "22:31:08.123456"),
        (TimestampType(), 1510871468123456, "2017-11-16T22:31:08.123456"),
        (TimestamptzType(), 1510871468123456, "2017-11-16T22:31:08.123456+00:00"),
        (DecimalType(9, 2), Decimal("14.20"), "14.20"),
        (
            UUIDType(),
            uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7"),
            "f79c3e09-677c-4bbd-a479-3f349cb785e7",
        ),
        (FixedType(4), b"\x00\x01\x02\xff", "000102ff"),
        (ListType(1, IntegerType()), [1, None, 3], [1, None, 3]),
        (
            MapType(1, StringType(), 2, IntegerType()),
            {"a": 1, "b": 2},
            {"keys": ["a", "b"], "values": [1, 2]},
        ),
        (
            StructType((NestedField(1, "f1", IntegerType()), NestedField(2, "f2", StringType()))),
            {1: 1, 2: "bar"},
            {"1": 1, "2": "bar"},
        ),
    ],
)
def test_json_is_that_of_the_specification(kind, value, raw):
    assert single_value.to_json(kind, value) == raw
    assert single_value.from_json(kind, raw) == value


def test_bounds_from_before_a_promotion_are_read():
    assert single_value.from_bytes(LongType(), b"\xff\xff\xff\xff") == -1
    assert single_value.from_bytes(DoubleType(), b"\x00\x00\x80\x3f") == 1.0


@pytest.mark.parametrize(
    ("kind", "raw"),
    [
        (IntegerType(), b"\x01"),
        (LongType(), b"\x01" * 5),
        (StringType(), b"\xff"),
        (UUIDType(), b"\x01"),
        (BooleanType(), b""),
    ],
)
def test_bytes_that_are_no_value_are_refused(kind, raw):
    with pytest.raises(ValidationError, match=str(kind)):
        single_value.from_bytes(kind, raw)


@pytest.mark.parametrize(
    ("kind", "raw"),
    [
        (IntegerType(), "1"),
        (IntegerType(), True),
        (DateType(), "2017-02-29"),
        (TimestampType(), "2017-11-16T22:31:08+00:00"),
        (TimestamptzType(), "2017-11-16T22:31:08"),
        (DecimalType(9, 2), "1.234"),
        (FixedType(4), "00"),
        (UUIDType(), "x"),
        (StringType(), 1),
    ],
)
def test_json_that_is_no_value_is_refused(kind, raw):
    with pytest.raises(ValidationError):
        single_value.from_json(kind, raw)


def test_a_value_of_another_type_has_no_bytes():
    for kind, value in ((IntegerType(), "a"), (IntegerType(), 2**31), (StringType(), 1)):
        with pytest.raises(ValidationError):
            single_value.to_bytes(kind, value)
