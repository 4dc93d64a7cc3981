"""Types, schemas, and the ids of their fields."""

import json

import pytest
from pyiceberg.schema import (
    Schema as PeerSchema,
    assign_fresh_schema_ids as peer_assign_fresh_schema_ids,
)

from icecomb.format.errors import SchemaError, ValidationError
from icecomb.format.spec.schema import Schema, assign_fresh_schema_ids
from icecomb.format.spec.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeographyType,
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
    parse_type,
)

PRIMITIVES = {
    "boolean": BooleanType(),
    "int": IntegerType(),
    "long": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "decimal(9, 2)": DecimalType(9, 2),
    "date": DateType(),
    "time": TimeType(),
    "timestamp": TimestampType(),
    "timestamptz": TimestamptzType(),
    "string": StringType(),
    "uuid": UUIDType(),
    "fixed[16]": FixedType(16),
    "binary": BinaryType(),
}


def nested():
    point = StructType((NestedField(31, "x", LongType(), True), NestedField(32, "y", LongType())))
    return Schema(
        (
            NestedField(10, "id", LongType(), True, "the key"),
            NestedField(20, "points", ListType(21, point, True)),
            NestedField(30, "tags", MapType(33, StringType(), 34, point_of(40), False)),
            NestedField(50, "at", StructType((NestedField(51, "day", DateType()),)), True),
        ),
        3,
        (10,),
    )


def point_of(first):
    return StructType(
        (
            NestedField(first, "x", LongType()),
            NestedField(first + 1, "n", ListType(60, FloatType())),
        )
    )


@pytest.mark.parametrize("text", PRIMITIVES)
def test_a_primitive_type_is_written_and_read_as_its_string(text):
    assert parse_type(text) == PRIMITIVES[text]
    assert PRIMITIVES[text].to_json() == text


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("decimal(9,2)", DecimalType(9, 2)),
        ("decimal( 9 , 2 )", DecimalType(9, 2)),
        ("fixed[ 3 ]", FixedType(3)),
        ("STRING", StringType()),
    ],
)
def test_types_are_read_leniently(text, kind):
    assert parse_type(text) == kind


@pytest.mark.parametrize(
    ("text", "kind", "written"),
    [
        ("timestamp_ns", TimestampNanoType(), "timestamp_ns"),
        ("TIMESTAMPTZ_NS", TimestamptzNanoType(), "timestamptz_ns"),
        ("unknown", UnknownType(), "unknown"),
        ("Variant", VariantType(), "variant"),
        ("geometry", GeometryType(), "geometry"),
        ("Geometry( SRID:3857 )", GeometryType("SRID:3857"), "geometry(SRID:3857)"),
        ("geometry(OGC:CRS84)", GeometryType(), "geometry"),
        ("geometry('EPSG:4326')", GeometryType("EPSG:4326"), "geometry(EPSG:4326)"),
        ("geography", GeographyType(), "geography"),
        ("geography(OGC:CRS84, spherical)", GeographyType(), "geography"),
        ("geography(EPSG:4326)", GeographyType("EPSG:4326"), "geography(EPSG:4326)"),
        (
            "geography(OGC:CRS84,KARNEY)",
            GeographyType("OGC:CRS84", "karney"),
            "geography(OGC:CRS84, karney)",
        ),
        ("geometry(projjson:my_key)", GeometryType("projjson:my_key"), "geometry(projjson:my_key)"),
    ],
)
def test_types_of_version_3_are_read_and_written_back(text, kind, written):
    assert parse_type(text) == parse_type({"type": text}) == kind
    assert kind.to_json() == str(kind) == written
    assert parse_type(written) == kind
    assert hash(parse_type(written)) == hash(kind)


@pytest.mark.parametrize(
    "text", ["geometry()", "geometry(a, b)", "geography(OGC:CRS84, planar)", "variant(1)", "geo"]
)
def test_a_type_that_is_nearly_one_of_version_3_is_refused(text):
    with pytest.raises(SchemaError, match=r"Unknown (type|algorithm)|coordinate reference"):
        parse_type(text)


@pytest.mark.parametrize(
    "attempt",
    [
        lambda: NestedField(1, "a", "unknown", required=True),
        lambda: ListType(1, "unknown", element_required=True),
        lambda: MapType(1, "string", 2, "unknown", value_required=True),
        lambda: MapType(1, "unknown", 2, "string"),
    ],
)
def test_what_is_unknown_cannot_be_required(attempt):
    with pytest.raises(SchemaError, match="of type unknown, which are null"):
        attempt()


def test_a_type_may_be_given_as_its_string():
    assert NestedField(1, "a", "decimal(9, 2)") == NestedField(1, "a", DecimalType(9, 2))


@pytest.mark.parametrize(
    "raw",
    [
        "decimal(39, 2)",
        "decimal(3, 4)",
        "int32",
        "",
        7,
        None,
        {"type": "list"},
        {"type": "struct"},
        {"type": "map", "key-id": 1},
        {"type": "struct", "fields": [{"id": 1, "name": "a", "type": "int"}]},
        {"type": "struct", "fields": [{"id": "1", "name": "a", "type": "int", "required": True}]},
        {"type": "struct", "fields": [7]},
    ],
)
def test_what_is_no_type_is_a_schema_error(raw):
    with pytest.raises(SchemaError):
        parse_type(raw)


def test_pyiceberg_reads_our_schema_and_we_read_its():
    ours = nested()
    peer = PeerSchema.model_validate(ours.to_json())
    assert json.loads(peer.model_dump_json(by_alias=True, exclude_none=True)) == {
        **ours.to_json(),
        "identifier-field-ids": [10],
    }
    assert Schema.from_json(json.loads(peer.model_dump_json(by_alias=True))) == ours


def test_fresh_ids_are_given_level_by_level_as_pyiceberg_does():
    fresh = assign_fresh_schema_ids(nested())
    peer = peer_assign_fresh_schema_ids(PeerSchema.model_validate(nested().to_json()))
    assert [f.field_id for f in fresh.fields] == [1, 2, 3, 4]
    assert fresh.as_struct().to_json()["fields"] == [
        json.loads(f.model_dump_json(by_alias=True, exclude_none=True)) for f in peer.fields
    ]
    assert fresh.identifier_field_ids == (1,)


def test_a_replaced_table_keeps_the_ids_of_equal_names():
    base = nested()
    replaced = Schema((NestedField(1, "fresh", LongType()), *base.fields[:1]))
    fresh = assign_fresh_schema_ids(replaced, base, base.highest_field_id)
    assert [(f.name, f.field_id) for f in fresh.fields] == [("fresh", 61), ("id", 10)]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (IntegerType(), LongType()),
        (FloatType(), DoubleType()),
        (DecimalType(9, 2), DecimalType(10, 2)),
        (StringType(), StringType()),
        (
            StructType((NestedField(90, "a", LongType()),)),
            StructType((NestedField(90, "b", LongType()),)),
        ),
        (ListType(90, IntegerType()), ListType(90, LongType())),
        (MapType(90, StringType(), 91, FloatType()), MapType(90, StringType(), 91, DoubleType())),
    ],
    ids=str,
)
def test_a_replaced_column_keeps_its_id_where_files_of_its_old_type_can_be_read(old, new):
    base = Schema((NestedField(1, "x", old),))
    fresh = assign_fresh_schema_ids(Schema((NestedField(1, "x", new),)), base, 99)
    assert fresh.find_field("x").field_id == 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (LongType(), IntegerType()),
        (IntegerType(), StringType()),
        (IntegerType(), DateType()),
        (DoubleType(), FloatType()),
        (LongType(), DoubleType()),
        (TimestampType(), TimestamptzType()),
        (StringType(), BinaryType()),
        (FixedType(4), FixedType(5)),
        (DecimalType(9, 2), DecimalType(9, 3)),
        (DecimalType(9, 2), DecimalType(8, 2)),
        (LongType(), StructType((NestedField(90, "a", LongType()),))),
        (ListType(90, LongType()), StructType((NestedField(90, "element", LongType()),))),
        (
            MapType(90, StringType(), 91, LongType()),
            StructType(
                (NestedField(90, "key", StringType()), NestedField(91, "value", LongType()))
            ),
        ),
        (ListType(90, LongType()), ListType(90, StringType())),
        (ListType(90, ListType(91, LongType())), ListType(90, ListType(91, DateType()))),
        (MapType(90, StringType(), 91, LongType()), MapType(90, StringType(), 91, IntegerType())),
        (MapType(90, IntegerType(), 91, LongType()), MapType(90, StringType(), 91, LongType())),
    ],
    ids=str,
)
def test_a_replaced_column_whose_type_cannot_go_on_is_a_new_column(old, new):
    base = Schema((NestedField(1, "x", old), NestedField(2, "y", LongType())))
    replaced = Schema((NestedField(1, "x", new), NestedField(2, "y", LongType())))
    fresh = assign_fresh_schema_ids(replaced, base, 99)
    assert fresh.find_field("y").field_id == 2
    assert {i for i in fresh.field_ids if i != 2}.isdisjoint(base.field_ids)
    assert fresh.highest_field_id == 98 + len(fresh.field_ids)


def test_of_a_replaced_struct_only_the_fields_of_other_types_are_new():
    def struct(kind):
        inner = (NestedField(4, "a", LongType()), NestedField(5, "b", kind))
        held = ListType(3, StructType(inner))
        return Schema((NestedField(1, "s", StructType((NestedField(2, "l", held),))),))

    fresh = assign_fresh_schema_ids(struct(StringType()), struct(LongType()), 5)
    found = {name: fresh.find_field(f"s.l.element{name}").field_id for name in ("", ".a", ".b")}
    assert found == {"": 3, ".a": 4, ".b": 6}


def test_fields_are_found_by_id_and_by_long_and_short_names():
    schema = nested()
    assert schema.find_field("points.element.x").field_id == 31
    assert schema.find_field("points.x").field_id == 31
    assert schema.find_field("tags.value.x").field_id == 40
    assert schema.find_field("tags.x").field_id == 40
    assert schema.find_field("tags.n.element").field_id == 60
    assert schema.find_field("TAGS.Key", case_sensitive=False).field_id == 33
    assert schema.find_column_name(51) == "at.day"
    assert schema.find_column_name(99) is None
    assert schema.highest_field_id == 60
    with pytest.raises(ValidationError, match="no field of name 'TAGS'"):
        schema.find_field("TAGS")


def test_a_name_that_fits_several_columns_without_case_is_refused():
    schema = Schema((NestedField(1, "a", LongType()), NestedField(2, "A", LongType())))
    assert schema.find_field("A").field_id == 2
    with pytest.raises(ValidationError, match="several"):
        schema.find_field("a", case_sensitive=False)


def test_selected_fields_keep_the_structs_around_them():
    schema = nested()
    assert schema.select("*") == schema
    selected = schema.select("tags.value.n", "at", "points.x")
    assert [f.name for f in selected.fields] == ["points", "tags", "at"]
    assert selected.find_field(60)
    assert selected.find_field(33)
    assert selected.find_field(51)
    assert not selected.contains(32)
    assert not selected.contains(40)
    assert selected.identifier_field_ids == ()


@pytest.mark.parametrize(
    ("fields", "identifiers"),
    [
        ((NestedField(1, "a", LongType(), True), NestedField(1, "b", LongType())), (1,)),
        ((NestedField(1, "a", LongType()), NestedField(2, "a", LongType())), ()),
        (
            (
                NestedField(1, "a.b", LongType()),
                NestedField(2, "a", StructType((NestedField(3, "b", LongType()),))),
            ),
            (),
        ),
        ((NestedField(1, "a", LongType()),), (1,)),
        ((NestedField(1, "a", DoubleType(), True),), (1,)),
        ((NestedField(1, "a", LongType(), True),), (2,)),
        ((NestedField(1, "a", ListType(2, LongType(), True), True),), (2,)),
        ((NestedField(1, "a", StructType((NestedField(2, "b", LongType(), True),))),), (2,)),
    ],
)
def test_a_schema_that_contradicts_itself_is_refused(fields, identifiers):
    with pytest.raises(SchemaError):
        Schema(fields, 0, identifiers)
