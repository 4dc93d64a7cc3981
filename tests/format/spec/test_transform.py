"""Partition transforms: the specification's hash values, PyIceberg, and Arrow against scalars."""

import uuid
from datetime import date, datetime, timezone
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st
from pyiceberg import transforms as peer, types as peer_types

from icecomb.format.errors import UnsupportedError, ValidationError
from icecomb.format.spec.transform import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    TruncateTransform,
    UnknownTransform,
    VoidTransform,
    YearTransform,
    bucket_hash,
    human_string,
    parse_transform,
)
from icecomb.format.spec.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)
from icecomb.format.spec.values.temporal import (
    civil_from_days,
    days_from_civil,
    parse_timestamp,
    parse_timestamptz,
)

INTS = st.integers(-(2**31), 2**31 - 1)
LONGS = st.integers(-(2**63), 2**63 - 1)
MICROS = st.integers(-(2**55), 2**55)
DECIMALS = st.decimals(-999999, 999999, places=2)
CASES = {
    "int": (IntegerType(), pa.int32(), INTS),
    "long": (LongType(), pa.int64(), LONGS),
    "decimal": (DecimalType(20, 2), pa.decimal128(20, 2), DECIMALS),
    "date": (DateType(), pa.date32(), INTS),
    "time": (TimeType(), pa.time64("us"), st.integers(0, 86_399_999_999)),
    "timestamp": (TimestampType(), pa.timestamp("us"), MICROS),
    "timestamptz": (TimestamptzType(), pa.timestamp("us", "UTC"), MICROS),
    "string": (StringType(), pa.string(), st.text()),
    "uuid": (UUIDType(), pa.uuid(), st.uuids()),
    "fixed": (FixedType(3), pa.binary(3), st.binary(min_size=3, max_size=3)),
    "binary": (BinaryType(), pa.binary(), st.binary()),
}
TRANSFORMS = [
    *map(BucketTransform, (1, 16, 1000003)),
    *map(TruncateTransform, (1, 3, 10, 2**31 - 1)),
    YearTransform(),
    MonthTransform(),
    DayTransform(),
    HourTransform(),
    IdentityTransform(),
    VoidTransform(),
]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (34, 2017239379),
        (Decimal("14.20"), -500754589),
        (17486, -653330422),
        (81068000000, -662762989),
        (parse_timestamp("2017-11-16T22:31:08"), -2047944441),
        (parse_timestamp("2017-11-16T22:31:08.000001"), -1207196810),
        (parse_timestamptz("2017-11-16T14:31:08-08:00"), -2047944441),
        ("iceberg", 1210000089),
        (uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7"), 1488055340),
        (b"\x00\x01\x02\x03", -188683207),
    ],
)
def test_bucket_hashes_are_those_of_the_specification(value, expected):
    assert bucket_hash(value) == expected


def storage(kind, values, arrow):
    if kind == "uuid":
        return pa.ExtensionArray.from_storage(
            arrow, pa.array([v and v.bytes for v in values], pa.binary(16))
        )
    if kind in {"date", "time", "timestamp", "timestamptz"}:
        integer = pa.int32() if kind == "date" else pa.int64()
        return pa.array(values, integer).cast(arrow)
    return pa.array(values, arrow)


def internal(array):
    if isinstance(array, pa.ExtensionArray):
        return [None if v is None else uuid.UUID(bytes=v) for v in array.storage.to_pylist()]
    if pa.types.is_date(array.type):
        return array.cast(pa.int32()).to_pylist()
    if pa.types.is_timestamp(array.type) or pa.types.is_time(array.type):
        return array.cast(pa.int64()).to_pylist()
    return array.to_pylist()


@pytest.mark.parametrize("kind", CASES)
@pytest.mark.parametrize("transform", TRANSFORMS, ids=str)
@settings(deadline=None, max_examples=30)
@given(data=st.data())
def test_an_array_is_transformed_as_its_values_are(kind, transform, data):
    source, arrow, strategy = CASES[kind]
    values = data.draw(st.lists(st.none() | strategy, max_size=20))
    array = storage(kind, values, arrow)
    if not transform.can_transform(source):
        with pytest.raises(ValidationError):
            transform.apply_array(array)
        with pytest.raises(ValidationError):
            transform.check(source)
        return
    expected = [transform.apply(v, source) for v in values]
    assert internal(transform.apply_array(array)) == expected


def test_chunks_dictionaries_and_slices_are_arrays_too():
    chunked = pa.chunked_array([[1, 12], [None, -1]], pa.int64())
    assert TruncateTransform(10).apply_array(chunked).to_pylist() == [0, 10, None, -10]
    assert TruncateTransform(10).apply_array(chunked.slice(1)).to_pylist() == [10, None, -10]
    text = pa.array(["iceberg", "icecomb", None]).dictionary_encode()
    assert TruncateTransform(4).apply_array(text).to_pylist() == ["iceb", "icec", None]
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array([34, None]))
    assert BucketTransform(4).apply_array(runs).to_pylist() == [3, 3, None]
    assert BucketTransform(4).apply_array(pa.array([5, 34, 7]).slice(1, 1)).to_pylist() == [3]
    assert BucketTransform(4).apply_array(pa.chunked_array([], pa.int64())).type == pa.int32()


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_timestamps_of_every_unit_are_rounded_down(unit):
    array = pa.array([datetime(1969, 12, 31, 23, 59, 59)], pa.timestamp(unit))  # noqa: DTZ001
    assert HourTransform().apply_array(array).to_pylist() == [-1]
    assert DayTransform().apply_array(array).to_pylist() == [date(1969, 12, 31)]
    assert MonthTransform().apply_array(array).to_pylist() == [-1]
    assert YearTransform().apply_array(array).to_pylist() == [-1]


PEERS = {
    "int": peer_types.IntegerType(),
    "long": peer_types.LongType(),
    "decimal": peer_types.DecimalType(20, 2),
    "date": peer_types.DateType(),
    "timestamp": peer_types.TimestampType(),
    "string": peer_types.StringType(),
    "binary": peer_types.BinaryType(),
}


@pytest.mark.parametrize("kind", PEERS)
@pytest.mark.parametrize("text", ["bucket[7]", "truncate[5]", "year", "month", "day", "hour"])
@settings(deadline=None, max_examples=50)
@given(data=st.data())
def test_values_are_transformed_as_pyiceberg_does(kind, text, data):
    source, _, strategy = CASES[kind]
    transform = parse_transform(text)
    theirs = peer.parse_transform(text)
    assert transform.can_transform(source) == theirs.can_transform(PEERS[kind])
    if not transform.can_transform(source):
        return
    if kind in {"date", "timestamp"}:  # datetime, which PyIceberg uses, ends at these years
        low, high = days_from_civil(2, 1, 1), days_from_civil(9998, 1, 1)
        step = 1 if kind == "date" else 86_400_000_000
        strategy = st.integers(low * step, high * step)
    if text == "truncate[5]" and kind in {"int", "long"}:
        strategy = st.integers(-(2**31) + 5, 2**31 - 1)  # where ours wraps as Java does
    value = data.draw(strategy)
    assert transform.apply(value, source) == theirs.transform(PEERS[kind])(value)


def test_truncate_wraps_at_the_lowest_integer_as_java_does():
    assert TruncateTransform(10).apply(-(2**31), IntegerType()) == 2**31 - 2
    assert TruncateTransform(10).apply(-(2**63), LongType()) == 2**63 - 2


def test_text_is_cut_between_code_points():
    assert TruncateTransform(2).apply("a\U0001f600b", StringType()) == "a\U0001f600"
    array = TruncateTransform(2).apply_array(pa.array(["a\U0001f600b"]))
    assert array.to_pylist() == ["a\U0001f600"]


@settings(deadline=None)
@given(days=st.integers(-(2**40), 2**40))
def test_days_and_calendar_dates_are_each_others_inverse(days):
    assert days_from_civil(*civil_from_days(days)) == days


@settings(deadline=None)
@given(days=st.integers(date.min.toordinal(), date.max.toordinal()))
def test_calendar_dates_are_those_of_python(days):
    day = date.fromordinal(days)
    assert civil_from_days(days - date(1970, 1, 1).toordinal()) == (day.year, day.month, day.day)


@pytest.mark.parametrize(
    ("transform", "source", "value", "text"),
    [
        (YearTransform(), DateType(), 47, "2017"),
        (YearTransform(), DateType(), -1, "1969"),
        (MonthTransform(), DateType(), 574, "2017-11"),
        (MonthTransform(), DateType(), -1, "1969-12"),
        (DayTransform(), DateType(), 17486, "2017-11-16"),
        (DayTransform(), TimestampType(), -1, "1969-12-31"),
        (HourTransform(), TimestampType(), 419686, "2017-11-16-22"),
        (HourTransform(), TimestampType(), -1, "1969-12-31-23"),
        (BucketTransform(4), StringType(), 3, "3"),
        (IdentityTransform(), StringType(), None, "null"),
        (VoidTransform(), LongType(), None, "null"),
    ],
)
def test_partition_values_have_a_text_for_people(transform, source, value, text):
    assert transform.to_human_string(source, value) == text


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (BooleanType(), True, "true"),
        (TimeType(), 81068000000, "22:31:08"),
        (TimeType(), 81060000000, "22:31"),
        (TimeType(), 81068000100, "22:31:08.000100"),
        (TimeType(), 81068100000, "22:31:08.100"),
        (TimestampType(), 1510871468000000, "2017-11-16T22:31:08"),
        (TimestamptzType(), 1510871468000001, "2017-11-16T22:31:08.000001Z"),
        (DecimalType(9, 2), Decimal("14.20"), "14.20"),
        (BinaryType(), b"\x00\xff", "AP8="),
        (DoubleType(), 1e7, "1.0E7"),
        (DoubleType(), 123.0, "123.0"),
        (DoubleType(), 1.25e-4, "1.25E-4"),
        (FloatType(), 0.10000000149011612, "0.1"),
        (FloatType(), 3.4028234663852886e38, "3.4028235E38"),
        (DoubleType(), float("-inf"), "-Infinity"),
        (DoubleType(), float("nan"), "NaN"),
    ],
)
def test_values_have_the_text_java_gives_them(kind, value, text):
    assert human_string(kind, value) == text


@pytest.mark.parametrize("transform", TRANSFORMS, ids=str)
def test_a_transform_is_written_and_read_as_its_name(transform):
    assert parse_transform(transform.to_json()) == transform


def test_an_unknown_transform_is_kept_but_not_applied():
    transform = parse_transform("zorder[3]")
    assert transform == UnknownTransform("zorder[3]")
    assert transform.to_json() == "zorder[3]"
    with pytest.raises(UnsupportedError, match="zorder"):
        transform.apply(1, LongType())
    with pytest.raises(UnsupportedError, match="zorder"):
        transform.apply_array(pa.array([1]))


def test_a_transform_without_width_is_refused():
    for text in ("bucket[0]", "truncate[0]"):
        with pytest.raises(ValidationError):
            parse_transform(text)


@pytest.mark.parametrize("name", ["bucket", "truncate"])
@pytest.mark.parametrize("width", ["0", "2147483648", "99999999999999999999"])
def test_a_width_beyond_javas_integers_is_refused(name, width):
    with pytest.raises(ValidationError, match=f"{width}, must be 1 to 2147483647"):
        parse_transform(f"{name}[{width}]")


def test_decimals_are_truncated_with_any_width_and_overflow_is_said():
    wide = TruncateTransform(2147483647)
    values = ["9999999999.99", "-0.01", "0.00", "-9999999999.99"]
    # multiples of 2147483647 in units of 0.01, rounded down
    expected = ["9985798958.55", "-21474836.47", "0.00", "-10007273795.02"]
    array = pa.array(map(Decimal, values), pa.decimal128(12, 2))
    assert [str(v) for v in wide.apply_array(array).to_pylist()] == expected
    kind = DecimalType(12, 2)
    assert [wide.apply(Decimal(v), kind) for v in values] == list(map(Decimal, expected))
    # -9.99 in steps of 0.10 has one digit more than the column
    short = pa.array([Decimal("-9.99")], pa.decimal128(3, 2))
    assert TruncateTransform(10).apply_array(short).to_pylist() == [Decimal("-10.00")]
    most = pa.array([Decimal(1 - 10**38)], pa.decimal128(38, 0))
    with pytest.raises(ValidationError, match="more than 38 digits"):
        TruncateTransform(10).apply_array(most)


def test_finer_time_orders_satisfy_coarser_ones():
    assert HourTransform().satisfies_order_of(DayTransform())
    assert not YearTransform().satisfies_order_of(DayTransform())
    assert IdentityTransform().satisfies_order_of(MonthTransform())
    assert not IdentityTransform().satisfies_order_of(BucketTransform(4))
    assert not BucketTransform(4).preserves_order


def test_a_struct_has_no_partition_value():
    for transform in (IdentityTransform(), BucketTransform(2), TruncateTransform(2)):
        with pytest.raises(ValidationError):
            transform.apply({}, StructType())


def test_zoned_timestamps_are_rounded_in_utc():
    moment = datetime(2017, 11, 16, 23, 0, tzinfo=timezone.utc)
    array = pa.array([moment], pa.timestamp("us", "America/New_York"))
    assert DayTransform().apply_array(array).to_pylist() == [date(2017, 11, 16)]
    assert HourTransform().apply_array(array).to_pylist() == [419687]
