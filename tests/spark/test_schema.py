"""Iceberg schemas as Spark's schema JSON; pyspark itself says whether the JSON is Spark's."""

from __future__ import annotations

import json

import pytest

from icecomb.format.errors import SchemaError, UnsupportedError
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
from icecomb.spark.schema import defined_schema, iceberg_schema, spark_schema

PRIMITIVES = [
    (BooleanType(), "boolean"),
    (IntegerType(), "integer"),
    (LongType(), "long"),
    (FloatType(), "float"),
    (DoubleType(), "double"),
    (DecimalType(38, 10), "decimal(38,10)"),
    (DateType(), "date"),
    (TimestampType(), "timestamp_ntz"),
    (TimestamptzType(), "timestamp"),
    (StringType(), "string"),
    (BinaryType(), "binary"),
]
NESTED = Schema(
    (
        NestedField(
            1,
            "m",
            MapType(
                2,
                StringType(),
                3,
                ListType(
                    4,
                    StructType((NestedField(5, "x", IntegerType(), required=True),)),
                    element_required=True,
                ),
                value_required=False,
            ),
        ),
        NestedField(6, "s", StructType((NestedField(7, "l", ListType(8, LongType(), False)),))),
    )
)


@pytest.mark.parametrize(("iceberg", "spark"), PRIMITIVES)
def test_a_primitive_type_has_one_name_in_spark_and_comes_back(iceberg, spark):
    schema = Schema((NestedField(1, "c", iceberg),))
    as_json = spark_schema(schema)
    assert as_json["fields"][0]["type"] == spark
    assert iceberg_schema(as_json).find_type("c") == iceberg


@pytest.mark.parametrize(
    ("spark", "iceberg"),
    [
        ("byte", IntegerType()),
        ("short", IntegerType()),
        ("char(3)", StringType()),
        ("varchar(30)", StringType()),
    ],
)
def test_types_iceberg_lacks_become_the_next_wider_one(spark, iceberg):
    assert iceberg_schema(_struct(spark)).find_type("c") == iceberg


@pytest.mark.parametrize(
    "spark",
    [
        "void",
        "interval day to second",
        "time(6)",
        "string collate UTF8_LCASE",
        "decimal(5,-2)",
    ],
)
def test_a_type_without_an_equal_is_refused_by_column_and_name(spark):
    nested = {"type": "array", "elementType": spark, "containsNull": True}
    with pytest.raises(UnsupportedError, match=r"column c\.element: .*") as error:
        iceberg_schema(_struct(nested))
    assert spark in error.value.message


def test_spark_itself_reads_the_schema_with_ids_comments_and_nullability():
    from pyspark.sql.types import StructType as SparkStruct

    schema = Schema(
        (
            NestedField(1, "id", LongType(), required=True, doc="the key"),
            NestedField(2, "u", UUIDType()),
            NestedField(3, "f", FixedType(4)),
            *NESTED.fields[1:],
        )
    )
    parsed = SparkStruct.fromJson(json.loads(json.dumps(spark_schema(schema))))
    assert [(f.name, f.dataType.simpleString(), f.nullable) for f in parsed.fields] == [
        ("id", "bigint", False),
        ("u", "string", True),
        ("f", "binary", True),
        ("s", "struct<l:array<bigint>>", True),
    ]
    assert parsed["id"].metadata == {"parquet.field.id": 1, "comment": "the key"}
    assert parsed["u"].metadata == {"parquet.field.id": 2, "icecomb.type": "uuid"}
    assert parsed["f"].metadata == {"parquet.field.id": 3, "icecomb.type": "fixed[4]"}


def test_ids_of_elements_keys_and_values_hang_on_the_field_around_them():
    m, s = spark_schema(NESTED)["fields"]
    assert m["metadata"] == {
        "parquet.field.id": 1,
        "icecomb.nested.ids": {"key": 2, "value": 3, "value.element": 4},
    }
    assert m["type"]["valueType"]["containsNull"] is False
    inner = m["type"]["valueType"]["elementType"]["fields"][0]
    assert (inner["nullable"], inner["metadata"]) == (False, {"parquet.field.id": 5})
    assert s["metadata"] == {"parquet.field.id": 6}
    assert s["type"]["fields"][0]["metadata"] == {
        "parquet.field.id": 7,
        "icecomb.nested.ids": {"element": 8},
    }


def test_a_nested_schema_survives_the_way_through_spark_apart_from_its_ids():
    there = spark_schema(NESTED)
    back = iceberg_schema(there)
    assert spark_schema(iceberg_schema(spark_schema(back))) == spark_schema(back)
    assert back.find_type("m.value.x") == IntegerType()
    assert back.find_field("m.value.x").required
    assert len(back.field_ids) == 8


def test_ids_that_spark_hands_on_from_another_table_are_not_taken_over():
    struct = _struct("long")
    struct["fields"][0]["metadata"] = {"parquet.field.id": 77}
    assert iceberg_schema(struct).find_field("c").field_id == 1


def test_uuids_and_fixed_values_in_lists_and_maps_are_marked_by_their_paths():
    """As Iceberg Java shows them; a struct inside starts anew."""
    inside = StructType(
        (NestedField(6, "u", UUIDType()), NestedField(7, "l", ListType(8, UUIDType())))
    )
    kind = ListType(2, MapType(3, UUIDType(), 4, ListType(5, FixedType(3))))
    schema = Schema((NestedField(1, "us", kind), NestedField(9, "s", ListType(10, inside))))
    marked, structs = spark_schema(schema)["fields"]
    assert marked["type"]["elementType"]["keyType"] == "string"
    assert marked["type"]["elementType"]["valueType"]["elementType"] == "binary"
    assert marked["metadata"] == {
        "parquet.field.id": 1,
        "icecomb.nested.ids": {
            "element": 2,
            "element.key": 3,
            "element.value": 4,
            "element.value.element": 5,
        },
        "icecomb.nested.types": {"element.key": "uuid", "element.value.element": "fixed[3]"},
    }
    assert structs["metadata"] == {"parquet.field.id": 9, "icecomb.nested.ids": {"element": 10}}
    plain, listed = structs["type"]["elementType"]["fields"]
    assert plain["metadata"] == {"parquet.field.id": 6, "icecomb.type": "uuid"}
    assert listed["metadata"]["icecomb.nested.types"] == {"element": "uuid"}


def test_a_time_column_cannot_be_shown_in_spark():
    with pytest.raises(UnsupportedError, match="Iceberg's time"):
        spark_schema(Schema((NestedField(1, "t", TimeType()),)))


def test_a_definition_has_the_defaults_that_it_gives_and_none_of_a_table_that_is_read():
    struct = _struct("long")
    metadata = {"CURRENT_DEFAULT": "1", "EXISTS_DEFAULT": "1"}
    struct["fields"][0]["metadata"] = metadata
    given = defined_schema(struct).fields[0]
    assert (given.initial_default, given.write_default) == (1, 1)
    assert iceberg_schema(struct).fields[0].write_default is None
    struct["fields"][0]["metadata"] = metadata | {"icecomb.default.of.table": True}
    assert defined_schema(struct).fields[0].write_default is None
    struct["fields"][0]["metadata"] = {"CURRENT_DEFAULT": "current_date()"}
    with pytest.raises(UnsupportedError, match=r"Column c cannot have the default current_date"):
        defined_schema(struct)


def test_a_variant_is_sparks_own_also_inside_of_others():
    variants = {
        "type": "map",
        "keyType": "string",
        "valueType": "variant",
        "valueContainsNull": True,
    }
    told = {"type": "struct", "fields": [{**_struct("variant")["fields"][0], "name": "v"}]}
    told["fields"] += _struct(variants)["fields"]
    schema = iceberg_schema(told)
    assert str(schema.find_type("v")) == str(schema.find_type("c.value")) == "variant"
    found = spark_schema(schema)["fields"]
    assert [field["type"] for field in found] == ["variant", variants]


def test_something_that_is_not_a_struct_is_no_schema():
    with pytest.raises(SchemaError, match="'array'"):
        iceberg_schema({"type": "array"})


def _struct(spark_type):
    return {
        "type": "struct",
        "fields": [{"name": "c", "type": spark_type, "nullable": True, "metadata": {}}],
    }
