"""Tables partitioned by fields inside structs, in Spark, beside Python and Iceberg Java."""

from __future__ import annotations

import pyarrow as pa
import pytest

INNER = pa.struct([("x", pa.int32()), ("y", pa.string())])
SCHEMA = pa.schema([("id", pa.int64()), ("st", INNER), ("deep", pa.struct([("in", INNER)]))])
ROWS = [
    {"id": 1, "st": {"x": 1, "y": "a"}, "deep": {"in": {"x": 7, "y": "b"}}},
    {"id": 2, "st": {"x": None, "y": "a"}, "deep": {"in": {"x": None, "y": None}}},
    {"id": 3, "st": None, "deep": {"in": None}},
    {"id": 4, "st": {"x": None, "y": None}, "deep": None},
    {"id": 5, "st": {"x": 1, "y": None}, "deep": {"in": {"x": 7, "y": None}}},
]


@pytest.fixture
def table(catalog):
    catalog.create_namespace_if_not_exists("nested_partitions")
    made = catalog.create_table(("nested_partitions", "t"), SCHEMA)
    with made.update_spec() as update:
        update.add_field("st.x", "identity", "st_x")
        update.add_field("deep.in.x", "identity", "deep_x")
    made.append(pa.Table.from_pylist(ROWS, SCHEMA))
    yield made
    catalog.drop_table(("nested_partitions", "t"))


def rows(session, name, where="true"):
    found = session.sql(f"SELECT * FROM {name} WHERE {where} ORDER BY id").collect()
    return [row.asDict(recursive=True) for row in found]


def _members(struct):
    return [None, None] if struct is None else list(struct.values())


def test_rows_and_nulls_of_every_level_are_the_same_everywhere(spark, table, ask):
    name = "lake.nested_partitions.t"
    assert rows(spark, name) == ROWS
    # Iceberg Java makes a struct of nulls of a null struct with a partition field: members are asked
    text = "SELECT id, st.x, st.y, deep.in.x, deep.in.y FROM {c}.nested_partitions.t ORDER BY id"
    assert ask(text) == [
        [row["id"], *_members(row["st"]), *_members(row["deep"] and row["deep"]["in"])]
        for row in ROWS
    ]
    for where, expected in {
        "st IS NULL": [3],
        "st.x IS NULL": [2, 3, 4],
        "st.x = 1 AND st.y IS NULL": [5],
        "deep.in.x IS NULL": [2, 3, 4],
        "NOT (st.x = 2)": [1, 5],
    }.items():
        assert [row["id"] for row in rows(spark, name, where)] == expected, where
    spark.sql(f"UPDATE {name} SET st = named_struct('x', 9, 'y', st.y) WHERE id IN (1, 3)")
    spark.sql(f"DELETE FROM {name} WHERE deep.in.x = 7 AND id = 5")
    expected = [
        ROWS[0] | {"st": {"x": 9, "y": "a"}},
        ROWS[1],
        ROWS[2] | {"st": {"x": 9, "y": None}},
        ROWS[3],
    ]
    assert rows(spark, name) == expected
    found = table.refresh().scan().to_arrow().to_pylist()
    assert sorted(found, key=lambda row: row["id"]) == expected
