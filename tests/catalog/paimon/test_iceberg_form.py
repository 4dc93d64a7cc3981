"""Paimon schemas in Iceberg; ids inside arrays and maps are those of Paimon's class SpecialFields."""

import json

import pytest

from icecomb.catalog.paimon.iceberg import (
    iceberg_name_mapping,
    iceberg_partition_spec,
    iceberg_properties,
    iceberg_schema,
    unreadable,
)
from icecomb.catalog.paimon.table_schema import read_table_schema
from icecomb.format.errors import SchemaError, UnsupportedError


def schema(*fields, schema_id=0, **more):
    raw = {
        "version": 3,
        "id": schema_id,
        "fields": [{"id": i, "name": n, "type": k} for i, n, k in fields],
        "highestFieldId": 100,
        "partitionKeys": [],
        "primaryKeys": [],
        "options": {},
        **more,
    }
    return read_table_schema(json.dumps(raw), "s")


@pytest.mark.parametrize(
    ("paimon", "iceberg"),
    [
        ("BOOLEAN", "boolean"),
        ("TINYINT", "int"),
        ("SMALLINT", "int"),
        ("INT", "int"),
        ("BIGINT", "long"),
        ("FLOAT", "float"),
        ("DOUBLE", "double"),
        ("DECIMAL(38, 18)", "decimal(38, 18)"),
        ("DATE", "date"),
        ("TIME(3)", "time"),
        ("TIMESTAMP(3)", "timestamp"),
        ("TIMESTAMP(6)", "timestamp"),
        ("TIMESTAMP(6) WITH LOCAL TIME ZONE", "timestamptz"),
        ("CHAR(3)", "string"),
        ("STRING", "string"),
        ("BINARY(16)", "binary"),
        ("BYTES", "binary"),
    ],
)
def test_types_become_those_of_paimons_own_iceberg_metadata(paimon, iceberg):
    found = iceberg_schema(schema((0, "a", paimon), (1, "b", f"{paimon} NOT NULL"))).fields
    assert [(f.field_id, str(f.field_type), f.required) for f in found] == [
        (0, iceberg, False),
        (1, iceberg, True),
    ]


@pytest.mark.parametrize(
    "kind",
    [
        "TIMESTAMP(9)",
        "TIMESTAMP_LTZ(7)",
        "VARIANT",
        "BLOB",
        {"type": "VECTOR", "element": "INT", "length": 2},
    ],
)
def test_a_type_without_counterpart_is_refused_with_its_column(kind):
    row = {"type": "ROW", "fields": [{"id": 4, "name": "deep", "type": kind}]}
    with pytest.raises(UnsupportedError, match=r"column r\.deep: .* has no counterpart"):
        iceberg_schema(schema((0, "a", "INT"), (3, "r", row)))


def test_nested_types_keep_their_ids():
    row = {"type": "ROW NOT NULL", "fields": [{"id": 9, "name": "x", "type": "INT NOT NULL"}]}
    listed = {"type": "ARRAY", "element": {"type": "MAP", "key": "STRING NOT NULL", "value": row}}
    field = iceberg_schema(
        schema((7, "a", listed), (8, "b", {"type": "MULTISET", "element": "STRING"}))
    ).fields
    assert str(field[0]) == "7: a: optional list<map<string, struct<9: x: required int>>>"
    base = 536870911
    inner = field[0].field_type.element_type
    assert field[0].field_type.element_id == base + 7 * 1024 + 1
    assert (inner.key_id, inner.value_id) == (base - 7 * 1024 - 2, base + 7 * 1024 + 2)
    assert (inner.value_required, field[0].field_type.element_required) == (True, False)
    assert str(field[1].field_type) == "map<string, int>"
    assert field[1].field_type.value_required


def test_keys_partitions_and_properties_come_along():
    made = schema(
        (0, "k", "BIGINT NOT NULL"),
        (3, "day", "DATE NOT NULL"),
        partitionKeys=["day"],
        primaryKeys=["k", "day"],
        comment="orders",
        options={"file.compression": "zstd", "bucket": "2"},
    )
    assert iceberg_schema(made).identifier_field_ids == (0, 3)
    assert [str(f) for f in iceberg_partition_spec(made).fields] == ["1000: day: identity(3)"]
    assert iceberg_properties(made) == {
        "comment": "orders",
        "write.format.default": "parquet",
        "write.parquet.compression-codec": "zstd",
    }


def test_the_name_mapping_has_the_names_of_all_schemas():
    old = schema((0, "a", "INT"), (1, "gone", "INT"))
    new = schema((0, "b", "INT"), (2, "c", "INT"), schema_id=1)
    mapping = json.loads(iceberg_name_mapping(new, [old]).to_json())
    assert mapping == [
        {"field-id": 0, "names": ["b", "a"]},
        {"field-id": 2, "names": ["c"]},
        {"field-id": 1, "names": ["gone"]},
    ]


def test_a_name_that_changed_hands_cannot_be_mapped():
    old, new = schema((0, "a", "INT"), (1, "b", "INT")), schema((0, "b", "INT"), schema_id=1)
    with pytest.raises(
        SchemaError,
        match="In schema-0 the name 'b' means the field of id 1, elsewhere that of id 0",
    ):
        iceberg_name_mapping(new, [old])


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("INT", "BIGINT", None),
        ("FLOAT", "DOUBLE", None),
        ("DECIMAL(5, 2)", "DECIMAL(9, 2)", None),
        ("INT", "STRING", "a changed from int to string, which Iceberg cannot read"),
        ("BIGINT", "INT", "a changed from long to int, which Iceberg cannot read"),
        (
            "DECIMAL(5, 2)",
            "DECIMAL(9, 3)",
            "a changed from decimal(5, 2) to decimal(9, 3), which Iceberg cannot read",
        ),
    ],
)
def test_older_files_are_readable_where_iceberg_promotes(old, new, reason):
    before = iceberg_schema(schema((0, "a", old), (1, "gone", "INT")))
    after = iceberg_schema(schema((0, "a", new), (2, "more", "INT"), schema_id=1))
    assert unreadable(before, after) == reason


def test_older_files_lack_what_is_not_null():
    before, after = schema((0, "a", "INT")), schema((0, "a", "INT"), (1, "b", "INT NOT NULL"))
    assert (
        unreadable(iceberg_schema(before), iceberg_schema(after))
        == "it has no b, which is NOT NULL"
    )
