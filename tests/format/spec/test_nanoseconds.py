"""Timestamps in nanoseconds as values; what is expected is Iceberg Java 1.12's."""

import pyarrow as pa
import pytest

from icecomb.format.errors import ValidationError
from icecomb.format.expressions.binding import bind
from icecomb.format.expressions.expression import AlwaysFalse, EqualTo, LessThan
from icecomb.format.expressions.sql.parser import parse
from icecomb.format.spec.promotion import can_promote
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.single_value import from_bytes, from_json, to_bytes, to_json
from icecomb.format.spec.transform import parse_transform
from icecomb.format.spec.types import (
    DateType,
    NestedField,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
)

LOCAL, ZONED = TimestampNanoType(), TimestamptzNanoType()
LEAST, MOST = -(1 << 63), (1 << 63) - 1
MOMENT = 1510871468123456789
TRANSFORMS = ("bucket[100]", "year", "month", "day", "hour")
SCHEMA = Schema((NestedField(1, "t", LOCAL), NestedField(2, "z", ZONED)))


@pytest.mark.parametrize(
    ("nanos", "text"),
    [
        (0, "1970-01-01T00:00:00"),
        (1, "1970-01-01T00:00:00.000000001"),
        (-1, "1969-12-31T23:59:59.999999999"),
        (1_000, "1970-01-01T00:00:00.000001"),
        (1_500_000_000, "1970-01-01T00:00:01.5"),
        (MOMENT, "2017-11-16T22:31:08.123456789"),
        (1510871460000000000, "2017-11-16T22:31:00"),
        (LEAST, "1677-09-21T00:12:43.145224192"),
        (MOST, "2262-04-11T23:47:16.854775807"),
    ],
)
def test_partition_paths_have_as_many_digits_as_iceberg_javas(nanos, text):
    identity = parse_transform("identity")
    assert identity.to_human_string(LOCAL, nanos) == text
    assert identity.to_human_string(ZONED, nanos) == f"{text}+00:00"


@pytest.mark.parametrize(
    ("nanos", "results"),
    [
        (0, (76, 0, 0, 0, 0)),
        (1, (76, 0, 0, 0, 0)),
        (-1, (12, -1, -1, -1, -1)),
        (1_000, (56, 0, 0, 0, 0)),
        (1_000_000, (20, 0, 0, 0, 0)),
        (MOMENT, (19, 47, 574, 17486, 419686)),
        (1510871468123456000, (19, 47, 574, 17486, 419686)),
        (1510871468123000000, (71, 47, 574, 17486, 419686)),
        (LEAST, (63, -293, -3508, -106752, -2562048)),
        (MOST, (78, 292, 3507, 106751, 2562047)),
    ],
)
def test_transforms_of_nanoseconds_are_those_of_their_microseconds(nanos, results):
    for text, expected in zip(TRANSFORMS, results, strict=True):
        transform = parse_transform(text)
        assert transform.apply(nanos, LOCAL) == transform.apply(nanos, ZONED) == expected
        assert transform.apply(nanos // 1000, TimestampType()) == expected
        array = transform.apply_array(pa.array([nanos, None], pa.timestamp("ns", "UTC")))
        stored = array.cast(pa.int32()) if pa.types.is_date32(array.type) else array
        assert stored.to_pylist() == [expected, None]


def test_nanoseconds_cannot_be_truncated():
    assert not parse_transform("truncate[10]").can_transform(LOCAL)


@pytest.mark.parametrize(
    ("kind", "nanos", "raw"),
    [
        (LOCAL, MOMENT, "2017-11-16T22:31:08.123456789"),
        (ZONED, MOMENT, "2017-11-16T22:31:08.123456789+00:00"),
        (LOCAL, 1_000, "1970-01-01T00:00:00.000001000"),
        (ZONED, -1, "1969-12-31T23:59:59.999999999+00:00"),
        (LOCAL, LEAST, "1677-09-21T00:12:43.145224192"),
        (ZONED, MOST, "2262-04-11T23:47:16.854775807+00:00"),
    ],
)
def test_single_values_have_eight_bytes_and_nine_digits(kind, nanos, raw):
    assert to_json(kind, nanos) == raw
    assert from_json(kind, raw) == nanos
    assert to_bytes(kind, nanos) == nanos.to_bytes(8, "little", signed=True)
    assert from_bytes(kind, to_bytes(kind, nanos)) == nanos


def test_a_single_value_is_read_with_the_digits_it_has():
    assert from_json(LOCAL, "1970-01-01T00:00:01.5") == 1_500_000_000
    assert from_json(ZONED, "1970-01-01T00:00:01Z") == 1_000_000_000


@pytest.mark.parametrize(
    ("kind", "raw"),
    [
        (LOCAL, "1970-01-01T00:00:00.0000000001"),
        (LOCAL, "1970-01-01.5"),
        (LOCAL, "1970-01-01T00:00.5"),
        (LOCAL, "1970-01-01T00:00:00+00:00"),
        (LOCAL, "2262-04-11T23:47:16.854775808"),
        (ZONED, "1677-09-21T00:12:43.145224191+00:00"),
        (ZONED, "1970-01-01T00:00:00.5"),
        (ZONED, "1970-01-01T00:00:00.5+01:00"),
        (ZONED, 5),
    ],
)
def test_what_is_no_moment_in_nanoseconds_is_no_single_value(kind, raw):
    with pytest.raises(ValidationError, match=f"not a value of type {kind}"):
        from_json(kind, raw)


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("t = '2017-11-16T22:31:08.123456789'", f"t = {MOMENT}"),
        ("t = '2017-11-16 22:31:08.12345'", "t = 1510871468123450000"),
        ("z >= '2017-11-16T23:31:08.123456789+01:00'", f"z >= {MOMENT}"),
        ("t < '2017-11-16'", "t < 1510790400000000000"),
        ("t <= timestamp_ns '1970-01-01T00:00:00.000000001'", "t <= 1"),
        ("t < '2300-01-01'", "t IS NOT NULL"),
        ("t > '2300-01-01'", "false"),
        ("t > '1600-01-01'", "t IS NOT NULL"),
        ("day(t) = '1970-01-02'", "t >= 86400000000000 AND t < 172800000000000"),
        ("hours(z) < 1", "z < 3600000000000"),
        ("years(t) >= -293", "t IS NOT NULL"),
        ("years(t) > 292", "false"),
    ],
)
def test_literals_of_nanoseconds_have_nine_digits_and_a_range(text, bound):
    found = bind(SCHEMA, parse(text))
    expected = bind(SCHEMA, parse(bound))
    assert found == expected


def test_a_literal_beyond_the_range_decides_a_comparison():
    assert bind(SCHEMA, EqualTo("t", "2262-04-11T23:47:16.854775808")) == AlwaysFalse()
    assert bind(SCHEMA, LessThan("t", "1677-09-21T00:12:43.145224192")).literal == LEAST


def test_microseconds_and_text_do_not_become_nanoseconds():
    for old in (TimestampType(), TimestamptzType(), StringType(), LOCAL):
        for new in (LOCAL, ZONED, TimestampType()):
            assert can_promote(old, new) is (old == new)
    assert not can_promote(DateType(), ZONED)
