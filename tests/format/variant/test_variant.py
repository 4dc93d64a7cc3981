"""Variants: bytes of the specification's examples, round trips, and bytes that are none."""

from __future__ import annotations

import json
import random
import struct
import uuid
from datetime import date, datetime, time, timedelta, timezone
from decimal import Context, Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from icecomb.format import Variant, variants_from_arrow, variants_to_arrow
from icecomb.format.errors import IcecombError, SchemaError, UnsupportedError, ValidationError

UTC = timezone.utc
IDENTIFIER = uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")
PRIMITIVES = [
    (None, "00"),
    (True, "04"),
    (False, "08"),
    (-128, "0c 80"),
    (128, "10 80 00"),
    (-32769, "14 ff 7f ff ff"),
    (1 << 31, "18 00 00 00 80 00 00 00 00"),
    (1.5, "1c 00 00 00 00 00 00 f8 3f"),
    (Decimal("12.34"), "20 02 d2 04 00 00"),
    (Decimal("-1234567890.5"), "24 01 c7 e3 23 20 fd ff ff ff"),
    (Decimal("0.0000000001"), "24 0a 01 00 00 00 00 00 00 00"),
    (date(1970, 1, 2), "2c 01 00 00 00"),
    (datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), "30 40 42 0f 00 00 00 00 00"),
    (datetime.fromisoformat("1970-01-01T00:00:01"), "34 40 42 0f 00 00 00 00 00"),
    (b"\x01\x02", "3c 02 00 00 00 01 02"),
    (time(0, 0, 1), "44 40 42 0f 00 00 00 00 00"),
    (pa.scalar(1, pa.timestamp("ns", "UTC")), "48 01 00 00 00 00 00 00 00"),
    (pa.scalar(1, pa.timestamp("ns")), "4c 01 00 00 00 00 00 00 00"),
    (IDENTIFIER, "50 00 11 22 33 44 55 66 77 88 99 aa bb cc dd ee ff"),
    ("", "01"),
    ("n/a", "0d 6e 2f 61"),
    ("a" * 63, "fd" + "61" * 63),
    ("a" * 64, "40 40 00 00 00" + "61" * 64),
    ([], "03 00 00"),
    ({}, "02 00 00"),
]
"""Values, and their bytes by the tables of the specification."""


@pytest.mark.parametrize(("value", "encoded"), PRIMITIVES, ids=lambda each: repr(each)[:20])
def test_values_are_encoded_as_the_specification_says(value, encoded):
    variant = Variant.of(value)
    assert variant == Variant(b"\x01\x00\x00", bytes.fromhex(encoded))
    assert variant.to_python() == value
    assert type(variant.to_python()) is type(value)


@pytest.mark.parametrize(
    ("value", "encoded", "read"),
    [
        (1 << 63, "28 00 00 00 00 00 00 00 00 80 00 00 00 00 00 00 00 00", 1 << 63),
        (np.float32(1.5), "38 00 00 c0 3f", 1.5),
        (np.int64(1), "18 01 00 00 00 00 00 00 00", 1),
        (pa.scalar(1, pa.int16()), "10 01 00", 1),
        (np.bool_(True), "04", True),
        (np.uint8(200), "10 c8 00", 200),
        (Decimal("1E+3"), "20 00 e8 03 00 00", Decimal(1000)),
        (bytearray(b"a"), "3c 01 00 00 00 61", b"a"),
        (pd.Timestamp("1970-01-01T00:00:00.000001"), "34 01 00 00 00 00 00 00 00", datetime.fromisoformat("1970-01-01T00:00:00.000001")),
        (pd.Timestamp(1, tz="Europe/Vienna"), "48 01 00 00 00 00 00 00 00", pa.scalar(1, pa.timestamp("ns", "UTC"))),
        (pd.NaT, "00", None),
        (np.datetime64(1, "ns"), "4c 01 00 00 00 00 00 00 00", pa.scalar(1, pa.timestamp("ns"))),
        (pa.scalar(None, pa.int64()), "00", None),
        (datetime(1970, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))), "30" + " 00" * 8, datetime(1970, 1, 1, tzinfo=UTC)),
        ((1,), "03 01 00 02 0c 01", [1]),
    ],
    ids=lambda each: repr(each)[:20],
)  # fmt: skip
def test_a_scalar_decides_its_type(value, encoded, read):
    variant = Variant.of(value)
    assert variant.value == bytes.fromhex(encoded)
    assert variant.to_python() == read


def test_names_are_sorted_in_the_dictionary_and_in_objects():
    variant = Variant.of({"b": 1, "a": {"c": None}})
    assert variant.metadata == bytes.fromhex("11 03 00 01 02 03") + b"abc"
    inner = "02 01 02 00 01 00"
    assert variant.value == bytes.fromhex(f"02 02 00 01 00 06 08 {inner} 0c 01")
    assert list(variant.to_python()) == ["a", "b"]


@pytest.mark.parametrize("count", [255, 256, 70_000])
def test_many_members_have_wider_numbers(count):
    fields = {f"name {at:06d}": at for at in range(count)}
    for value in (fields, list(range(count))):
        variant = Variant.of(value)
        large = variant.value[0] >> (6 if isinstance(value, dict) else 4) & 1
        assert large == (count > 255)
        assert variant.to_python() == value


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({1: 2}, "name of a field is 1"),
        (range(2), "is of type"),
        (Decimal("NaN"), "not finite"),
        (10**38, "more than 38 digits"),
        (Decimal("1E+99999999"), "more than 38 digits"),
        ("\ud800", "half of a character"),
        ({"\ud800": 1}, "half of a character"),
        (time(1, tzinfo=UTC), "with a zone"),
        (pa.scalar([1]), "is of type list"),
        (pa.scalar(1 << 62, pa.timestamp("s")), r"timestamp\[s\] out of range"),
        (np.timedelta64(1, "s"), "is of type duration"),
        (np.datetime64("2024", "Y"), "is of type datetime64"),
        (object(), "is of type object"),
    ],
    ids=lambda each: each[:20] if isinstance(each, str) else type(each).__name__,
)
def test_what_has_no_variant_form_is_refused(value, problem):
    with pytest.raises(SchemaError, match=problem):
        Variant.of([value])


def nested(levels, *, of=list):
    value = []
    for _ in range(levels - 1):
        value = [value] if of is list else {"a": value}
    return value


@pytest.mark.parametrize("of", [list, dict])
def test_levels_are_limited_on_both_ways(of):
    assert Variant.of(nested(500, of=of)).to_python() == nested(500, of=of)
    with pytest.raises(SchemaError, match="more than 500 levels"):
        Variant.of(nested(1000, of=of))
    with pytest.raises(SchemaError, match="levels"):
        Variant.from_json("[" * 100_000 + "]" * 100_000)
    value = b"\x03\x00\x00"
    for _ in range(999):
        value = b"\x0f\x01" + (0).to_bytes(4, "little") + len(value).to_bytes(4, "little") + value
    with pytest.raises(ValidationError, match="more than 500 levels"):
        Variant(b"\x01\x00\x00", value).to_python()


NAMES = b"\x01\x02\x00\x01\x02ab"


@pytest.mark.parametrize(
    ("metadata", "value", "problem"),
    [
        (b"", b"\x00", "metadata is empty"),
        (b"\x01", b"\x00", "too short"),
        (b"\x01\x00\x01", b"\x00", "names in its metadata reach"),
        (b"\x01\x02\x00\x02\x01ab", b"\x00", "one after the other"),
        (b"\x01\x01\x00\x01\xff", b"\x00", "not UTF-8"),
        (b"\xc1\xff\xff\xff\xff", b"\x00", "too short"),
        (NAMES, b"", "empty"),
        (NAMES, b"\x0c", "ends at 2, of 1"),
        (NAMES, b"\x09a", "ends at 3, of 2"),
        (NAMES, b"\x05\xff", "not UTF-8"),
        (NAMES, b"\x3c\x05\x00\x00\x00a", "ends at 10, of 6"),
        (NAMES, b"\x03", "is cut"),
        (NAMES, b"\x13\xff\xff\xff\x7f", "reach beyond its end"),
        (NAMES, b"\x03\x01\x00\x05\x00", "ends at 9, of 5"),
        (NAMES, b"\x03\x01\x01\x01\x00", "a value is empty"),
        (NAMES, b"\x02\x01\x02\x00\x01\x00", "name 2, its metadata has 2"),
        (NAMES, b"\x02\x02\x00\x00\x00\x01\x02\x00\x00", "'a' twice"),
        (NAMES, b"\x03\x02\x00\x00\x02\x0c\x01", "share bytes"),
        (NAMES, b"\x20\x27\x01\x00\x00\x00", "scale 39"),
        (NAMES, b"\x28\x00" + b"\xff" * 15 + b"\x7f", "more than 38 digits"),
        (NAMES, b"\x44" + b"\xff" * 8, "time of day is -1"),
    ],
)  # fmt: skip
def test_bytes_that_contradict_each_other_are_refused(metadata, value, problem):
    with pytest.raises(ValidationError, match=problem):
        Variant(metadata, value).to_python()


def test_unknown_versions_and_types_are_refused_by_name():
    with pytest.raises(UnsupportedError, match="metadata of version 2"):
        Variant(b"\x02\x00\x00", b"\x00").to_python()
    with pytest.raises(UnsupportedError, match="type 21"):
        Variant(NAMES, b"\x54").to_python()


def test_shared_members_do_not_multiply():
    value = b"\x0c\x01"
    for _ in range(100):
        head = b"\x0f\x0a" + b"\x00\x00\x00\x00" * 10
        value = head + len(value).to_bytes(4, "little") + value
    with pytest.raises(ValidationError, match="share bytes"):
        Variant(NAMES, value).to_python()


def test_days_and_times_beyond_those_of_python_are_kept():
    for scalar in (
        pa.scalar(10_000_000, pa.date32()),
        pa.scalar(-(1 << 62), pa.timestamp("us")),
        pa.scalar(1 << 62, pa.timestamp("us", "UTC")),
    ):
        assert Variant.of(scalar).to_python() == scalar
    assert Variant.of(pa.scalar(10_000_000, pa.date32())).to_json() == '"+29349-01-26"'


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 70), 1 << 70)
    | st.floats(allow_nan=False)
    | st.text(max_size=80)
    | st.binary(max_size=5)
    | st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**20), max_value=10**20)
    | st.dates()
    | st.times()
    | st.datetimes()
    | st.datetimes(timezones=st.just(UTC))
    | st.uuids(),
    lambda inside: st.lists(inside, max_size=6) | st.dictionaries(st.text(max_size=5), inside, max_size=6),
    max_leaves=20,
)  # fmt: skip


@given(VALUES)
def test_values_survive_encoding(value):
    variant = Variant.of(value)
    assert variant.to_python() == value
    assert Variant.of(variant.to_python()) == variant


def number(data, at, width):
    return int.from_bytes(data[at : at + width], "little")


def naive(metadata, data, at=0):
    """The value at an offset, by the text of the specification, one number after the other."""
    basic, header = data[at] & 3, data[at] >> 2
    if basic == 1:
        return data[at + 1 : at + 1 + header].decode()
    if basic == 0:
        return naive_primitive(header, data[at + 1 :])
    is_object = basic == 2
    width, id_width = (header & 3) + 1, (header >> 2 & 3) + 1 if is_object else 0
    size_width = 4 if header >> (4 if is_object else 2) & 1 else 1
    size, ids = number(data, at + 1, size_width), at + 1 + size_width
    offsets = ids + size * id_width
    values = offsets + (size + 1) * width
    found = [
        naive(metadata, data, values + number(data, offsets + n * width, width))
        for n in range(size)
    ]
    if not is_object:
        return found
    names = [naive_name(metadata, number(data, ids + n * id_width, id_width)) for n in range(size)]
    assert names == sorted(names, key=str.encode)
    return dict(zip(names, found, strict=True))


def naive_name(metadata, index):
    width = (metadata[0] >> 6) + 1
    size = number(metadata, 1, width)
    text = 1 + width * (size + 2)
    start, end = (number(metadata, 1 + width * (index + n), width) for n in (1, 2))
    return metadata[text + start : text + end].decode()


def naive_primitive(kind, data):
    def signed(size, begin=0):
        return int.from_bytes(data[begin : begin + size], "little", signed=True)

    micros = timedelta(microseconds=1)
    local = datetime.fromisoformat("1970-01-01")
    readers = {
        0: lambda: None,
        1: lambda: True,
        2: lambda: False,
        3: lambda: signed(1),
        4: lambda: signed(2),
        5: lambda: signed(4),
        6: lambda: signed(8),
        7: lambda: struct.unpack("<d", data[:8])[0],
        8: lambda: Decimal(signed(4, 1)).scaleb(-data[0], EXACT),
        9: lambda: Decimal(signed(8, 1)).scaleb(-data[0], EXACT),
        10: lambda: Decimal(signed(16, 1)).scaleb(-data[0], EXACT),
        11: lambda: date.fromordinal(719163 + signed(4)),
        12: lambda: datetime(1970, 1, 1, tzinfo=UTC) + signed(8) * micros,
        13: lambda: local + signed(8) * micros,
        15: lambda: data[4 : 4 + number(data, 0, 4)],
        16: lambda: str(data[4 : 4 + number(data, 0, 4)], "utf-8"),
        17: lambda: datetime.time(local + signed(8) * micros),
        20: lambda: uuid.UUID(bytes=data[:16]),
    }
    return readers[kind]()


EXACT = Context(prec=80)


@given(VALUES)
def test_a_naive_reader_finds_the_same_values(value):
    variant = Variant.of(value)
    assert naive(variant.metadata, variant.value) == value


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 63) - 1) | st.text(),
    lambda inside: st.lists(inside) | st.dictionaries(st.text(), inside),
)


@given(JSON_VALUES)
def test_json_survives_encoding(value):
    variant = Variant.from_json(json.dumps(value))
    assert variant == Variant.of(value)
    assert json.loads(variant.to_json()) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.50", Decimal("1.50")),
        ("1e3", 1000.0),
        ("1" * 38, Decimal("1" * 38)),
        ("-" + "1" * 39, float("-" + "1" * 39)),
        ("0." + "1" * 39, float("0." + "1" * 39)),
        ("-0", 0),
        ('"\\u00e4"', "ä"),
    ],
)
def test_numbers_of_json_are_exact_where_they_can_be(text, value):
    found = Variant.from_json(text).to_python()
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"a": 1, "a": 2}', "'a' twice"),
        ("NaN", "NaN is not a JSON value"),
        ("1e999", "out of the range"),
        ("{", "Expecting"),
        ("1 2", "Extra data"),
        (b"\xff", "not UTF-8"),
        ('"\\ud800"', "half of a character"),
        (5, "of type int, not text"),
        (None, "of type NoneType, not text"),
    ],
)
def test_text_that_is_not_json_is_refused(text, problem):
    with pytest.raises(SchemaError, match=problem):
        Variant.from_json(text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Decimal("12.30"), "12.30"),
        (1e300, "1e+300"),
        (float("nan"), '"NaN"'),
        (float("-inf"), '"-Infinity"'),
        (b"\x00\xff", '"AP8="'),
        (date(2024, 1, 2), '"2024-01-02"'),
        (datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC), '"2024-01-02T03:04:05+00:00"'),
        (pa.scalar(1, pa.timestamp("ns")), '"1970-01-01T00:00:00.000000001"'),
        (IDENTIFIER, f'"{IDENTIFIER}"'),
        ({"b": [1, {}], "a": []}, '{"a":[],"b":[1,{}]}'),
    ],
    ids=str,
)
def test_values_have_json_text(value, text):
    assert Variant.of(value).to_json() == text


def test_columns_of_variants_go_to_arrow_and_back():
    array = variants_to_arrow([1, None, Variant.of(None), {"a": [1]}])
    assert array.null_count == 1
    array.validate(full=True)
    found = variants_from_arrow(pa.chunked_array([array[:1], array[1:]]))
    assert [v and v.to_python() for v in found] == [1, None, None, {"a": [1]}]
    assert found[2] == Variant.of(None)
    for other in (pa.array([1]), pa.array([{"metadata": b""}])):
        with pytest.raises(SchemaError, match="has no variants"):
            variants_from_arrow(other)


def test_what_is_no_variant_is_refused_by_name():
    with pytest.raises(SchemaError, match="The metadata of a variant is bytes, not str"):
        Variant("a", "b")
    with pytest.raises(SchemaError, match="The value of a variant is bytes, not int"):
        Variant(b"\x01\x00\x00", 5)
    for each in (5, "text", b"bytes", {"a": 1}, None):
        with pytest.raises(SchemaError, match=f"list of values, not of {type(each).__name__}"):
            variants_to_arrow(each)


@pytest.mark.parametrize(("given", "what"), [([1], "a list"), (None, "a NoneType")])
def test_only_arrow_arrays_have_variants(given, what):
    with pytest.raises(SchemaError, match=f"from an Arrow array, not from {what}"):
        variants_from_arrow(given)


@pytest.mark.full("needs 4 GiB of memory")
def test_more_than_an_array_holds_is_refused_by_name():
    large = Variant(b"\1\0\0", bytes(1 << 20))
    with pytest.raises(SchemaError, match="2100 variants have more than 2 GiB"):
        variants_to_arrow([large] * 2100)


def mutated(draw, given_bytes):
    """Bytes with some of them changed, cut off or put in."""
    data = bytearray(given_bytes)
    for _ in range(draw.randint(1, 4)):
        at = draw.randrange(len(data) + 1)
        kind = draw.random()
        if kind < 0.6 and at < len(data):
            data[at] = draw.choice(
                [0, 1, 0xFF, draw.randrange(256), data[at] ^ 1 << draw.randrange(8)]
            )
        elif kind < 0.8:
            del data[at : at + draw.randint(1, 4)]
        else:
            data[at:at] = draw.randbytes(draw.randint(1, 4))
    return bytes(data)


@pytest.mark.parametrize(
    "rounds", [1_000, pytest.param(250_000, marks=pytest.mark.full("takes a minute"))]
)
def test_mutated_bytes_are_values_or_named_errors(rounds):
    draw = random.Random(7)
    nested_value = {
        "a": [1, 2.5, "text", {"b": None, "c": [True] * 3}],
        "d": {"e": b"x", "f": Decimal(1)},
    }
    seeds = [Variant.of(value) for value, _ in PRIMITIVES] + [Variant.of(nested_value)] * 20
    decoded = 0
    for _ in range(rounds):
        seed = draw.choice(seeds)
        metadata, value = seed.metadata, seed.value
        if draw.random() < 0.3:
            metadata = mutated(draw, metadata)
        if metadata == seed.metadata or draw.random() < 0.7:
            value = mutated(draw, value)
        try:
            found = Variant(metadata, value)
            found.to_json()
            decoded += 1
        except IcecombError:
            pass
    assert 0 < decoded < rounds
