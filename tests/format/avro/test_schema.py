from __future__ import annotations

import io
import struct
from decimal import Decimal
from uuid import UUID

import fastavro
import pytest
from hypothesis import given, strategies as st

from icecomb.format.avro.container import (
    ContainerWriter,
    RecordForm,
    parse_container,
)
from icecomb.format.avro.encoder import encoder
from icecomb.format.avro.records import read_records, read_table
from icecomb.format.avro.schema import (
    avro_name,
    avro_schema,
    decimal_size,
    from_avro,
    iceberg_type,
    plain_schema,
    to_avro,
)
from icecomb.format.errors import (
    CorruptFileError,
    SchemaError,
    UnsupportedError,
    ValidationError,
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

SCHEMA = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "long", "field-id": 1}]}


def write_container(schema, plain, records, metadata, codec="gzip"):
    writer = ContainerWriter(RecordForm.of(schema, plain), metadata, codec=codec)
    for record in records:
        writer.add(record)
    return writer.finish()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # written by Iceberg Java 1.11 for these names, but for letters and digits that Avro does not allow
        ("plain_1", "plain_1"),
        ("odd name-é", "odd_x20name_x2D_xE9"),
        ("größe", "gr_xF6_xDFe"),
        ("größe-1", "gr_xF6_xDFe_x2D1"),
        ("名前", "_x540D_x524D"),
        ("m²", "m_xB2"),
        ("\N{ARABIC-INDIC DIGIT THREE}a", "_x663a"),
        ("1st", "_1st"),
        ("emoji😎", "emoji_xD83D_xDE0E"),
        ("a.b", "a_x2Eb"),
        ("", ""),
    ],
)
def test_a_field_name_is_escaped_as_iceberg_java_does(name, expected):
    assert avro_name(name) == expected


@pytest.mark.parametrize(
    ("field_type", "expected"),
    [
        (BooleanType(), "boolean"),
        (IntegerType(), "int"),
        (LongType(), "long"),
        (FloatType(), "float"),
        (DoubleType(), "double"),
        (StringType(), "string"),
        (BinaryType(), "bytes"),
        (DateType(), {"type": "int", "logicalType": "date"}),
        (TimeType(), {"type": "long", "logicalType": "time-micros"}),
        (
            TimestampType(),
            {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": False},
        ),
        (
            TimestamptzType(),
            {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": True},
        ),
        (UUIDType(), {"type": "fixed", "name": "uuid_fixed", "size": 16, "logicalType": "uuid"}),
        (FixedType(5), {"type": "fixed", "name": "fixed_5", "size": 5}),
        (
            DecimalType(9, 2),
            {
                "type": "fixed",
                "name": "decimal_9_2",
                "size": 4,
                "logicalType": "decimal",
                "precision": 9,
                "scale": 2,
            },
        ),
    ],
)
def test_a_primitive_type_is_stored_as_the_specification_says(field_type, expected):
    schema = avro_schema(StructType((NestedField(7, "x", field_type, required=True),)), "r")
    assert schema["fields"] == [{"name": "x", "type": expected, "field-id": 7}]
    assert iceberg_type(expected) == field_type
    optional = avro_schema(StructType((NestedField(7, "x", field_type),)), "r")
    assert optional["fields"] == [
        {"name": "x", "type": ["null", expected], "default": None, "field-id": 7}
    ]


def test_nested_types_keep_their_ids():
    inner = StructType((NestedField(4, "x", IntegerType()),))
    schema = avro_schema(
        StructType(
            (
                NestedField(1, "s", inner, required=True),
                NestedField(2, "l", ListType(5, LongType()), required=True),
                NestedField(3, "m", MapType(6, StringType(), 7, LongType()), required=True),
                NestedField(
                    8,
                    "n",
                    MapType(9, IntegerType(), 10, LongType(), value_required=True),
                    required=True,
                ),
            )
        ),
        "r",
    )
    assert [field["type"] for field in schema["fields"]] == [
        {
            "type": "record",
            "name": "r1",
            "fields": [{"name": "x", "type": ["null", "int"], "default": None, "field-id": 4}],
        },
        {"type": "array", "items": ["null", "long"], "element-id": 5},
        {"type": "map", "values": ["null", "long"], "key-id": 6, "value-id": 7},
        {
            "type": "array",
            "logicalType": "map",
            "items": {
                "type": "record",
                "name": "k9_v10",
                "fields": [
                    {"name": "key", "type": "int", "field-id": 9},
                    {"name": "value", "type": "long", "field-id": 10},
                ],
            },
        },
    ]


def test_no_type_name_is_defined_twice():
    struct_type = StructType(tuple(NestedField(i, f"u{i}", UUIDType()) for i in range(1, 4)))
    schema = avro_schema(struct_type, "r")
    assert [f["type"][1]["name"] for f in schema["fields"]] == [
        "uuid_fixed",
        "uuid_fixed_2",
        "uuid_fixed_3",
    ]
    fastavro.parse_schema(schema)


@pytest.mark.parametrize(
    ("precision", "size"),
    [(1, 1), (2, 1), (3, 2), (4, 2), (5, 3), (9, 4), (10, 5), (18, 8), (19, 9), (38, 16)],
)
def test_a_decimal_takes_as_few_bytes_as_its_precision_allows(precision, size):
    # the specification's rule: the least number of bytes that holds every value
    assert decimal_size(precision) == size
    assert 10**precision - 1 <= 2 ** (8 * size - 1) - 1


@given(st.integers(-(10**38) + 1, 10**38 - 1), st.integers(0, 38))
def test_every_decimal_comes_back(unscaled, scale):
    field_type = DecimalType(38, scale)
    value = Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale))
    stored = to_avro(field_type, value)
    assert stored == unscaled.to_bytes(16, "big", signed=True)
    assert from_avro(field_type, stored) == value


def test_a_decimal_that_does_not_fit_is_refused():
    with pytest.raises(SchemaError, match="more digits"):
        to_avro(DecimalType(4, 2), Decimal("123.45"))
    with pytest.raises(SchemaError, match="more digits"):
        to_avro(DecimalType(9, 2), Decimal("0.125"))


def test_a_uuid_comes_back_from_bytes_and_from_text():
    value = UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")
    assert from_avro(UUIDType(), to_avro(UUIDType(), value)) == value
    assert from_avro(UUIDType(), str(value)) == value


@pytest.mark.parametrize("codec", ["gzip", "uncompressed", "zstd", "snappy"])
def test_another_reader_reads_every_codec(codec):
    plain = plain_schema(SCHEMA, {1: "a"})
    records = [{"a": i * i - 500_000} for i in range(40_000)]
    data = write_container(SCHEMA, plain, records, {"k": "vé"}, codec=codec)
    container = parse_container(data, "x")
    assert container.text("k") == "vé"
    assert container.record_count == 40_000
    assert read_table(container, plain).column("a").to_pylist() == [r["a"] for r in records]
    if codec in ("gzip", "uncompressed"):
        assert list(fastavro.reader(io.BytesIO(data))) == records


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz"])
def test_every_codec_of_another_writer_is_read(codec):
    out = io.BytesIO()
    records = [{"a": i} for i in range(1000)]
    fastavro.writer(out, SCHEMA, records, codec=codec, sync_interval=100)
    container = parse_container(out.getvalue(), "x")
    assert read_records(container, plain_schema(SCHEMA, {})) == [{"f1": i} for i in range(1000)]


def test_an_unknown_codec_is_named():
    with pytest.raises(UnsupportedError, match="lzma"):
        write_container(SCHEMA, SCHEMA, [], {}, codec="lzma")


UNIONS = [["null", "long"], ["long", "null"], "long"]


@pytest.mark.parametrize("union", UNIONS)
@pytest.mark.parametrize("reader", [read_records, read_table])
def test_a_union_is_read_in_either_order(union, reader):
    schema = {"type": "record", "name": "r", "fields": [{"name": "a", "type": union}]}
    values = [5, -7] if union == "long" else [5, None, -7]
    out = io.BytesIO()
    fastavro.writer(out, schema, [{"a": value} for value in values])
    found = reader(parse_container(out.getvalue(), "x"), plain_schema(schema, {}))
    rows = found if isinstance(found, list) else found.to_pylist()
    assert [row["a"] for row in rows] == values


ODD = {
    "type": "record",
    "name": "r",
    "namespace": "n",
    "fields": [
        {"name": "m", "type": ["null", {"type": "map", "values": "long"}]},
        {"name": "u", "type": ["long"]},
        {"name": "f", "type": {"type": "fixed", "name": "five", "size": 5}},
        {"name": "g", "type": ["null", "n.five"]},
        {"name": "e", "type": {"type": "enum", "name": "color", "symbols": ["RED", "BLUE"]}},
        {"name": "z", "type": "null"},
    ],
}


def test_layouts_the_fast_reader_does_not_know_are_read_too():
    out = io.BytesIO()
    rows = [
        {"m": {"3": 4, "5": 6}, "u": 1, "f": b"12345", "g": b"abcde", "e": "BLUE", "z": None},
        {"m": None, "u": 2, "f": b"67890", "g": None, "e": "RED", "z": None},
    ]
    fastavro.writer(out, ODD, rows)
    container = parse_container(out.getvalue(), "x")
    table = read_table(container, plain_schema(container.schema, {})).to_pylist()
    assert table[0] == {**rows[0], "m": [{"key": 3, "value": 4}, {"key": 5, "value": 6}]}
    assert table[1] == rows[1]


def test_a_type_that_is_used_by_name_is_read_fast():
    schema = {
        "type": "record",
        "name": "r",
        "fields": [
            {
                "name": "f",
                "type": {"type": "fixed", "name": "five", "size": 5, "logicalType": "uuid"},
            },
            {"name": "g", "type": ["null", "five"]},
        ],
    }
    out = io.BytesIO()
    fastavro.writer(out, schema, [{"f": b"12345", "g": b"abcde"}])
    container = parse_container(out.getvalue(), "x")
    assert read_table(container, plain_schema(container.schema, {})).to_pylist() == [
        {"f": b"12345", "g": b"abcde"}
    ]


def _file() -> bytes:
    out = io.BytesIO()
    fastavro.writer(out, SCHEMA, [{"a": i} for i in range(500)], codec="deflate", sync_interval=200)
    return out.getvalue()


def _count_or_error(data: bytes) -> int | str:
    try:
        return parse_container(data, "/some/manifest.avro").record_count
    except CorruptFileError as error:
        return str(error)


def test_a_file_cut_short_is_refused_and_named():
    data = _file()
    found = [_count_or_error(data[:length]) for length in range(len(data))]
    # only at a border between blocks can nothing be missed
    blocks = [count for count in found if isinstance(count, int)]
    assert blocks == sorted(set(blocks))
    assert max(blocks) < 500
    assert len(blocks) < 20
    assert all("/some/manifest.avro" in error for error in found if isinstance(error, str))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "is empty"),
        (b"PAR1 and more", "not an Avro file"),
        (b"Obj\x01", "truncated"),
        (b"Obj\x01" + b"\xff" * 30, "truncated or damaged"),
        (b"Obj\x01\x00" + bytes(16), "truncated or damaged"),
    ],
)
def test_what_is_no_avro_file_is_refused_and_named(data, reason):
    with pytest.raises(CorruptFileError, match=reason) as caught:
        parse_container(data, "/x/y.avro")
    assert "/x/y.avro" in caught.value.message


def test_records_that_do_not_decode_are_refused_and_named():
    plain = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "string"}]}
    data = write_container(SCHEMA, SCHEMA, [{"a": 1 << 40}], {})
    container = parse_container(data, "/x/y.avro")
    for reader in (read_records, read_table):
        with pytest.raises(CorruptFileError, match=r"/x/y\.avro"):
            reader(container, plain)


VALUE = {
    "type": "record",
    "name": "r",
    "fields": [
        {"name": "i", "type": "int"},
        {"name": "l", "type": ["null", "long"]},
        {"name": "f", "type": "float"},
        {"name": "d", "type": ["double", "null"]},
        {"name": "o", "type": "boolean"},
        {"name": "s", "type": ["null", "string"]},
        {"name": "b", "type": "bytes"},
        {"name": "x", "type": {"type": "fixed", "name": "three", "size": 3}},
        {"name": "a", "type": {"type": "array", "items": "long"}},
        {
            "name": "m",
            "type": {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": "kv",
                    "fields": [{"name": "key", "type": "int"}, {"name": "value", "type": "bytes"}],
                },
            },
        },
    ],
}
longs = st.integers(-(2**63), 2**63 - 1)
records = st.fixed_dictionaries(
    {
        "i": st.integers(-(2**31), 2**31 - 1),
        "l": st.none() | longs,
        "f": st.floats(width=32, allow_nan=False),
        "d": st.none() | st.floats(allow_nan=False),
        "o": st.booleans(),
        "s": st.none() | st.text(st.characters(exclude_categories=("Cs",))),
        "b": st.binary(),
        "x": st.binary(min_size=3, max_size=3),
        "a": st.lists(longs),
        "m": st.dictionaries(st.integers(-5, 2**31 - 1), st.binary(max_size=200)),
    }
)


@given(records)
def test_values_are_encoded_as_another_writer_encodes_them(record):
    out = io.BytesIO()
    pairs = [{"key": key, "value": value} for key, value in record["m"].items()]
    fastavro.schemaless_writer(out, fastavro.parse_schema(VALUE), {**record, "m": pairs})
    assert encoder(VALUE)(record) == out.getvalue()


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 2**70])
def test_a_number_of_more_than_64_bits_is_refused(value):
    with pytest.raises(ValidationError, match="64 bits"):
        encoder("long")(value)


def test_what_no_manifest_holds_is_not_encoded():
    for schema in (["null", "int", "long"], {"type": "map", "values": "int"}):
        with pytest.raises(SchemaError, match="Cannot encode"):
            encoder(schema)
    with pytest.raises(ValidationError, match="3 bytes"):
        encoder({"type": "fixed", "name": "f", "size": 3})(b"ab")


def test_numbers_are_encoded_as_avro_says():
    data = write_container(SCHEMA, SCHEMA, [{"a": -65}], {}, codec="uncompressed")
    # zigzag: one record, two bytes, -65 is 129
    assert data[-16 - 4 : -16] == struct.pack("4B", 2, 4, 0x81, 0x01)
