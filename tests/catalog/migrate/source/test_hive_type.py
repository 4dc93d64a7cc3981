from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from icecomb.catalog.hive.parameters import hive_type
from icecomb.catalog.migrate.source.hive_type import parse_hive_type
from icecomb.catalog.migrate.source.source import convert
from icecomb.catalog.migrate.source.spark_type import parse_spark_type
from icecomb.format.errors import IcecombError, UnsupportedError, ValidationError
from icecomb.format.spec.types import DecimalType, IntegerType, LongType

PLAIN = [
    "boolean",
    "int",
    "bigint",
    "float",
    "double",
    "date",
    "string",
    "binary",
    "decimal(10,2)",
    "timestamp",
]
TYPES = st.recursive(
    st.sampled_from(PLAIN),
    lambda inner: st.one_of(
        inner.map(lambda t: f"array<{t}>"),
        st.tuples(st.sampled_from(PLAIN), inner).map(lambda p: f"map<{p[0]},{p[1]}>"),
        st.lists(inner, min_size=1, max_size=4).map(
            lambda ts: f"struct<{','.join(f'f{i}:{t}' for i, t in enumerate(ts))}>"
        ),
    ),
)


@given(TYPES)
def test_types_that_both_have_survive_the_round_trip(text: str) -> None:
    assert hive_type(parse_hive_type(text).type) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tinyint", "int"),
        ("SMALLINT", "int"),
        ("char(3)", "string"),
        ("varchar(20)", "string"),
        ("decimal", "decimal(10, 0)"),
        ("decimal( 7 , 3 )", "decimal(7, 3)"),
        ("timestamp", "timestamptz"),
        ("timestamp with local time zone", "timestamptz"),
    ],
)
def test_types_become_what_iceberg_java_makes_of_them(text: str, expected: str) -> None:
    assert str(parse_hive_type(text).type) == expected


def test_nanoseconds_are_those_of_timestamps_and_instants() -> None:
    text = "struct<a:timestamp,b:timestamp with local time zone,c:array<timestamplocaltz>>"
    found = parse_hive_type(text, timestamp="timestamp_ns").type
    assert str(found) == (
        "struct<0: a: optional timestamp_ns, 0: b: optional timestamptz_ns, "
        "0: c: optional list<timestamptz_ns>>"
    )
    assert str(parse_hive_type("timestamp", timestamp="timestamptz_ns").type) == "timestamptz_ns"
    # Spark's own have microseconds
    assert str(parse_spark_type("timestamp_ntz", timestamp="timestamp_ns").type) == "timestamp"


def test_lossy_conversions_are_noted_at_any_depth() -> None:
    converted = parse_hive_type("map<char(2),array<struct<`a b`:tinyint>>>")
    assert [note.split()[0] for note in converted.notes] == ["char(n)", "tinyint"]
    assert (
        parse_hive_type("timestamp", timestamp="timestamp").type.__class__.__name__
        == "TimestampType"
    )


@pytest.mark.parametrize("text", ["uniontype<int,string>", "interval_day_time", "void", "geometry"])
def test_types_without_an_equal_are_refused_by_name(text: str) -> None:
    with pytest.raises(UnsupportedError, match=text.partition("<")[0]):
        parse_hive_type(text)


@pytest.mark.parametrize(
    "text", ["", "array<int", "struct<>", "map<int>", "decimal(a)", "int int,", "array<>"]
)
def test_what_is_no_type_is_refused(text: str) -> None:
    with pytest.raises(IcecombError):
        parse_hive_type(text)


def test_sparks_own_form_is_read_too() -> None:
    raw = {"type": "array", "elementType": "timestamp_ntz", "containsNull": True}
    assert str(parse_spark_type(raw, timestamp="timestamptz").type) == "list<timestamp>"
    assert str(parse_spark_type("decimal(5,2)", timestamp="timestamptz").type) == "decimal(5, 2)"
    with pytest.raises(UnsupportedError):
        parse_spark_type("interval day to second", timestamp="timestamptz")


@given(st.integers(-(1 << 31), (1 << 31) - 1))
def test_whole_numbers_convert_exactly(number: int) -> None:
    assert convert(str(number), IntegerType()) == number
    assert convert(f"{number:+012d}", LongType()) == number


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("2147483648", IntegerType()),
        ("1.0", IntegerType()),
        ("", IntegerType()),
        ("1_0", LongType()),
        ("1.234", DecimalType(5, 2)),
        ("12345", DecimalType(5, 2)),
        ("NaN", DecimalType(5, 2)),
    ],
)
def test_what_does_not_fit_is_refused_and_not_rounded(text: str, kind: IntegerType) -> None:
    with pytest.raises(ValidationError):
        convert(text, kind)
