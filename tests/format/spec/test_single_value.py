"""Single values as bytes and JSON, compared with the specification and PyIceberg."""

import json
import math
import struct
import uuid
from decimal import Decimal

import pytest
from hypothesis import assume, example, given, settings, strategies as st
from pyiceberg import conversions, types as peer_types

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
    GeometryType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UnknownType,
    UUIDType,
    VariantType,
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
    assume(not isinstance(value, float) or math.isfinite(value))  # JSON has no form of others
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
        (IntegerType(), 2**31),
        (LongType(), -(2**63) - 1),
        (FloatType(), 1e39),
        (FloatType(), float("nan")),
        (DoubleType(), float("inf")),
        (DoubleType(), 10**400),
        (DoubleType(), "1.0"),
        (DateType(), "+5881580-07-12"),
        (TimestampType(), "+294247-01-10T04:00:54.775808"),
        (TimestamptzType(), "2017-11-16T22:31:08+01:00"),
        (DecimalType(9, 2), "1.234"),
        (DecimalType(9, 2), "1.2"),
        (DecimalType(3, 2), "12.34"),
        (DecimalType(3, 2), "NaN"),
        (DecimalType(3, 2), "many"),
        (DecimalType(3, 2), 1.25),
        (FixedType(4), "00"),
        (FixedType(2), "00 00"),
        (BinaryType(), "0"),
        (BinaryType(), [0]),
        (UUIDType(), "x"),
        (UUIDType(), "{f79c3e09-677c-4bbd-a479-3f349cb785e7}"),
        (UUIDType(), "f79c3e09677c4bbda4793f349cb785e7"),
        (StringType(), 1),
        (ListType(1, IntegerType()), "12"),
        (ListType(1, IntegerType()), ["1"]),
        (ListType(1, IntegerType(), element_required=True), [1, None]),
        (MapType(1, StringType(), 2, IntegerType()), {"keys": ["a"], "values": []}),
        (MapType(1, StringType(), 2, IntegerType()), {"keys": ["a", "a"], "values": [1, 2]}),
        (MapType(1, StringType(), 2, IntegerType()), {"keys": [None], "values": [1]}),
        (MapType(1, StringType(), 2, IntegerType()), {"a": 1}),
        (StructType((NestedField(1, "f1", IntegerType()),)), [1]),
        (StructType((NestedField(1, "f1", IntegerType()),)), {"2": 1}),
    ],
)
def test_json_that_is_no_value_is_refused(kind, raw):
    with pytest.raises(ValidationError, match="is not a value of type"):
        single_value.from_json(kind, raw)


_ANY_TEXT = st.one_of(
    st.text(st.characters(exclude_categories=()), max_size=40),
    st.from_regex(
        r"[+-]?\d{4,6}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,9})?)?([+-]\d\d:\d\d|Z)?)?", fullmatch=True
    ),
    st.from_regex(r"[+-]?[0-9]{1,45}(\.[0-9]{0,12})?([eE][+-]?[0-9]{1,12})?", fullmatch=True),
    st.from_regex(r"[0-9a-fA-F-]{1,36}", fullmatch=True),
)
_ANY_JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), _ANY_TEXT),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["1", "2", "x"]), inner, max_size=3),
        st.fixed_dictionaries(
            {"keys": st.lists(inner, max_size=2), "values": st.lists(inner, max_size=2)}
        ),
    ),
    max_leaves=6,
)
_POINT = StructType(NestedField(1, "x", DecimalType(3, 2)), NestedField(2, "y", TimestampType()))
_KINDS = [
    *(kind for kind, _, _ in CASES),
    TimestampNanoType(),
    TimestamptzNanoType(),
    UnknownType(),
    VariantType(),
    GeometryType(),
    _POINT,
    ListType(1, DoubleType()),
    MapType(1, DateType(), 2, _POINT),
    MapType(1, _POINT, 2, LongType()),
]


@pytest.mark.parametrize("kind", _KINDS, ids=str)
@settings(deadline=None)
@given(raw=_ANY_JSON)
@example(raw="\ud800")
@example(raw=10**4000)
@example(raw="1e999999999")
def test_any_json_is_a_value_or_refused_by_name(kind, raw):
    try:
        value = single_value.from_json(kind, raw)
    except ValidationError:
        return
    assert single_value.from_json(kind, single_value.to_json(kind, value)) == value
    if kind.is_primitive and value is not None:
        assert len(single_value.to_bytes(kind, value)) <= 4 * len(str(raw)) + 16


def test_json_numbers_are_rounded_to_the_precision_of_their_type():
    assert (
        single_value.from_json(FloatType(), 0.1) == struct.unpack("<f", struct.pack("<f", 0.1))[0]
    )
    assert single_value.from_json(DoubleType(), 3) == 3.0
    assert (
        json.dumps(single_value.to_json(DoubleType(), single_value.from_json(DoubleType(), 3)))
        == "3.0"
    )


def test_a_value_of_another_type_has_no_bytes():
    for kind, value in ((IntegerType(), "a"), (IntegerType(), 2**31), (StringType(), 1)):
        with pytest.raises(ValidationError):
            single_value.to_bytes(kind, value)
