from __future__ import annotations

import pyarrow as pa
import pytest
from pyiceberg.io.pyarrow import pyarrow_to_schema as peer_pyarrow_to_schema

from icecomb.format.errors import SchemaError
from icecomb.format.spec.arrow_schema import FIELD_ID_KEY, pyarrow_to_schema, schema_to_pyarrow
from icecomb.format.spec.name_mapping import MappedField, NameMapping
from icecomb.format.spec.schema import Schema
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


def test_halves_of_characters_are_named_errors_in_names_and_no_matter_in_comments() -> None:
    kind = StructType((NestedField(2, "\udc00", LongType()),))
    for field in (NestedField(1, "\ud800", LongType()), NestedField(1, "a", kind)):
        with pytest.raises(SchemaError, match=r"column \d, '.ud.00', is not valid Unicode"):
            schema_to_pyarrow(Schema((field,)))
    schema = schema_to_pyarrow(Schema((NestedField(1, "a", LongType(), doc="\ud800"),)))
    assert schema.field("a").metadata[b"doc"] == b"?"


EVERYTHING = Schema(
    (
        NestedField(1, "b", BooleanType()),
        NestedField(2, "i", IntegerType(), required=True, doc="a number"),
        NestedField(3, "l", LongType()),
        NestedField(4, "f", FloatType()),
        NestedField(5, "d", DoubleType()),
        NestedField(6, "dec", DecimalType(12, 3)),
        NestedField(7, "day", DateType()),
        NestedField(8, "clock", TimeType()),
        NestedField(9, "ts", TimestampType()),
        NestedField(10, "tz", TimestamptzType()),
        NestedField(11, "s", StringType()),
        NestedField(12, "u", UUIDType()),
        NestedField(13, "fx", FixedType(5)),
        NestedField(14, "bin", BinaryType()),
        NestedField(15, "st", StructType((NestedField(16, "x", IntegerType(), required=True),))),
        NestedField(
            17,
            "ls",
            ListType(18, StructType((NestedField(19, "y", StringType()),)), element_required=True),
        ),
        NestedField(20, "m", MapType(21, StringType(), 22, ListType(23, LongType()))),
    )
)


def test_every_type_survives_the_way_to_arrow_and_back():
    assert pyarrow_to_schema(schema_to_pyarrow(EVERYTHING)) == EVERYTHING


def test_pyiceberg_reads_the_same_schema_from_our_arrow_schema():
    peer = peer_pyarrow_to_schema(schema_to_pyarrow(EVERYTHING))
    assert [(f.field_id, f.name, str(f.field_type), f.required) for f in peer.fields][:14] == [
        (f.field_id, f.name, str(f.field_type), f.required) for f in EVERYTHING.fields
    ][:14]
    assert {peer.find_field(i).name for i in (16, 18, 19, 21, 22, 23)} == {
        "x", "element", "y", "key", "value"
    }  # fmt: skip


def test_field_ids_stand_at_every_depth_of_the_arrow_schema():
    arrow = schema_to_pyarrow(EVERYTHING)
    items = arrow.field("m").type.item_field
    assert items.metadata[FIELD_ID_KEY] == b"22"
    assert items.type.value_field.metadata[FIELD_ID_KEY] == b"23"


def test_ids_are_left_out_on_request():
    arrow = schema_to_pyarrow(Schema((NestedField(1, "a", LongType()),)), include_field_ids=False)
    assert arrow.field("a").metadata is None


def test_an_arrow_schema_without_ids_is_numbered_level_by_level():
    arrow = pa.schema(
        [
            pa.field("a", pa.struct([pa.field("x", pa.int32())])),
            pa.field("b", pa.list_(pa.int64()), nullable=False),
        ]
    )
    schema = pyarrow_to_schema(arrow)
    names = {i: schema.find_column_name(i) for i in schema.field_ids}
    assert names == {1: "a", 2: "b", 3: "a.x", 4: "b.element"}
    assert schema.find_field("b").required


def test_ids_come_from_the_name_mapping_at_every_depth():
    mapping = NameMapping(
        (
            MappedField(7, ("a", "old_a"), (MappedField(9, ("x",)),)),
            MappedField(8, ("b",), (MappedField(10, ("element",)),)),
        )
    )
    arrow = pa.schema(
        [("old_a", pa.struct([pa.field("x", pa.int32())])), ("b", pa.list_(pa.int64()))]
    )
    schema = pyarrow_to_schema(arrow, mapping)
    assert {schema.find_column_name(i): i for i in schema.field_ids} == {
        "old_a": 7,
        "old_a.x": 9,
        "b": 8,
        "b.element": 10,
    }


def test_a_name_missing_in_the_name_mapping_is_an_error():
    with pytest.raises(SchemaError, match="'b' has no field id"):
        pyarrow_to_schema(pa.schema([("b", pa.int32())]), NameMapping((MappedField(1, ("a",)),)))


@pytest.mark.parametrize(
    ("arrow", "expected"),
    [
        (pa.int8(), "int"),
        (pa.uint16(), "int"),
        (pa.uint32(), "long"),
        (pa.float16(), "float"),
        (pa.large_string(), "string"),
        (pa.string_view(), "string"),
        (pa.dictionary(pa.int8(), pa.string()), "string"),
        (pa.large_binary(), "binary"),
        (pa.binary(16), "fixed[16]"),
        (pa.date64(), "date"),
        (pa.time32("ms"), "time"),
        (pa.timestamp("ns"), "timestamp"),
        (pa.timestamp("s", "Europe/Paris"), "timestamptz"),
        (pa.decimal256(20, 2), "decimal(20, 2)"),
        (pa.large_list(pa.int32()), "list<int>"),
        (pa.list_(pa.int32(), 3), "list<int>"),
        (pa.null(), "unknown"),
    ],
)
def test_other_arrow_types_count_as_the_type_that_holds_their_values(arrow, expected):
    assert str(pyarrow_to_schema(pa.schema([("c", arrow)])).find_type("c")) == expected


@pytest.mark.parametrize(
    ("arrow", "advice"),
    [
        (pa.uint64(), "int64"),
        (pa.duration("us"), "int64"),
        (pa.decimal256(60, 2), "drop"),
    ],
)
def test_an_arrow_type_iceberg_does_not_have_is_refused_with_advice(arrow, advice):
    inside = pa.struct([pa.field("deep", arrow)])
    with pytest.raises(SchemaError, match=r"'c\.deep'") as caught:
        pyarrow_to_schema(pa.schema([("c", inside)]))
    assert advice in (caught.value.hint or "")
