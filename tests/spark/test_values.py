"""Internal values as the protocol writes them."""

from __future__ import annotations

import json
import math
import struct
import uuid
from decimal import Decimal

import pytest

from icecomb.format.spec.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    LongType,
    StringType,
    TimestamptzType,
    UUIDType,
)
from icecomb.spark.values import value_from_json, value_to_json

CASES = [
    (BooleanType(), True, True),
    (LongType(), -(2**63), -(2**63)),
    (DateType(), -1, -1),
    (TimestamptzType(), 1_700_000_000_000_001, 1_700_000_000_000_001),
    (DoubleType(), 0.1, 0.1),
    (DoubleType(), math.inf, "Infinity"),
    (DoubleType(), -math.inf, "-Infinity"),
    (
        DecimalType(38, 18),
        Decimal("12345678901234567890.000000000000000001"),
        "12345678901234567890.000000000000000001",
    ),
    (DecimalType(9, 2), Decimal("1E+3"), "1000"),
    (StringType(), "a\u2028b", "a\u2028b"),
    (BinaryType(), b"\x00\xff", "AP8="),
    (FixedType(2), b"ab", "YWI="),
    (UUIDType(), uuid.UUID(int=7), "00000000-0000-0000-0000-000000000007"),
    (LongType(), None, None),
]


@pytest.mark.parametrize(("iceberg_type", "value", "expected"), CASES)
def test_a_value_travels_and_comes_back(iceberg_type, value, expected):
    travelled = json.loads(json.dumps(value_to_json(iceberg_type, value), allow_nan=False))
    assert travelled == expected
    assert value_from_json(iceberg_type, travelled) == value


def test_nan_travels_as_text():
    assert value_to_json(DoubleType(), math.nan) == "NaN"
    assert math.isnan(value_from_json(DoubleType(), "NaN"))


def test_a_float_of_spark_is_the_number_that_files_have():
    single = struct.unpack("<f", struct.pack("<f", 0.1))[0]
    assert value_from_json(FloatType(), 0.1) == single != 0.1
    assert value_from_json(FloatType(), "-Infinity") == -math.inf


@pytest.mark.parametrize(
    ("iceberg_type", "value"),
    [
        (LongType(), 1.5),
        (LongType(), True),
        (LongType(), "1"),
        (StringType(), 1),
        (BooleanType(), 1),
        (DecimalType(5, 2), "1.005"),
        (UUIDType(), "not a uuid"),
        (UUIDType(), "AAAAAAAA-0000-0000-0000-000000000007"),
        (BinaryType(), "not base64!"),
    ],
)
def test_what_is_not_exactly_a_value_of_the_type_is_refused(iceberg_type, value):
    with pytest.raises((ValueError, ArithmeticError)):
        value_from_json(iceberg_type, value)
