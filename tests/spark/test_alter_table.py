"""ALTER TABLE in Spark SQL: what it changes, and that Iceberg Java sees the same."""

from __future__ import annotations

import itertools
from contextlib import contextmanager

import pytest
from pyspark.errors import AnalysisException, PySparkException

from tests.spark.lake_table import load

pytestmark = pytest.mark.usefixtures("own_namespace")

NAMESPACE = "alter_tests"
NUMBERS = itertools.count(1)


@pytest.fixture
def name(spark):
    """A table of two rows, with a struct in a column, in a list and in a map."""
    with _new_table(spark) as table:
        yield table


@pytest.fixture(scope="module")
def kept(spark):
    """The same, for all that changes nothing."""
    with _new_table(spark) as table:
        yield table


@contextmanager
def _new_table(spark):
    table = f"lake.{NAMESPACE}.t{next(NUMBERS)}"
    spark.sql(
        f"CREATE TABLE {table} (id INT NOT NULL COMMENT 'the key', s STRING, price DECIMAL(9,2), "
        "place STRUCT<street: STRING, zip: INT>, points ARRAY<STRUCT<x: FLOAT>>, "
        "tags MAP<STRING, STRUCT<since: INT>>) USING iceberg TBLPROPERTIES ('a'='1', 'b'='2')"
    )
    spark.sql(
        f"INSERT INTO {table} VALUES (1, 'one', 1.50, named_struct('street', 'High', 'zip', 7), "
        "array(named_struct('x', 0.5f)), map('k', named_struct('since', 1999))), "
        "(2, NULL, NULL, NULL, NULL, NULL)"
    )
    yield table
    spark.sql(f"DROP TABLE {table}")


def columns(frame):
    return [field.simpleString() for field in frame.schema.fields]


def of_any(name):
    """The name of a table for `ask`."""
    return f"{{c}}.{name.removeprefix('lake.')}"


def test_columns_are_added_at_their_place_also_inside_structs_lists_and_maps(
    spark, catalog, ask, name
):
    before = load(catalog, name)
    spark.sql(
        f"ALTER TABLE {name} ADD COLUMNS (first BIGINT COMMENT 'new' FIRST, "
        "note STRUCT<text: STRING> AFTER id, place.city STRING AFTER street, "
        "points.element.y DOUBLE, tags.value.until DATE, plain BINARY)"
    )
    after = load(catalog, name)
    [(count, *_)] = ask(f"SELECT count(*) FROM {of_any(name)} WHERE first IS NULL")
    assert count == 2
    assert len(after.metadata.metadata_log) == len(before.metadata.metadata_log) + 1
    assert after.current_snapshot() == before.current_snapshot()
    assert columns(spark.table(name)) == [
        "first:bigint",
        "id:int",
        "note:struct<text:string>",
        "s:string",
        "price:decimal(9,2)",
        "place:struct<street:string,city:string,zip:int>",
        "points:array<struct<x:float,y:double>>",
        "tags:map<string,struct<since:int,until:date>>",
        "plain:binary",
    ]
    assert after.schema().find_field("first").doc == "new"
    new = {i for i in after.schema().field_ids if i > before.metadata.last_column_id}
    assert len(new) == len(after.schema().field_ids) - len(before.schema().field_ids) == 7
    spark.sql(
        f"INSERT INTO {name} SELECT 5, 3, named_struct('text', 'hi'), 's', 2.5, "
        "named_struct('street', 'a', 'city', 'b', 'zip', 1), "
        "array(named_struct('x', 1f, 'y', 2d)), "
        "map('k', named_struct('since', 1, 'until', DATE '2026-01-01')), X'00'"
    )
    query = (
        "SELECT id, first, note.text, place.city, points[0].y, CAST(tags['k'].until AS STRING), "
        "tags['k'].since "
        "FROM {} ORDER BY id"
    )
    expected = [
        [1, *[None] * 5, 1999],
        [2, *[None] * 6],
        [3, 5, "hi", "b", 2.0, "2026-01-01", 1],
    ]
    assert [list(row) for row in spark.sql(query.format(name)).collect()] == expected
    assert ask(query.format(of_any(name))) == expected


def test_columns_are_renamed_dropped_moved_widened_and_commented(spark, catalog, ask, name):
    for change in (
        "RENAME COLUMN s TO text",
        "RENAME COLUMN place.zip TO postcode",
        "ALTER COLUMN id TYPE BIGINT",
        "ALTER COLUMN points.element.x TYPE DOUBLE",
        "ALTER COLUMN price TYPE DECIMAL(20,2)",
        "ALTER COLUMN id COMMENT 'what counts'",
        "ALTER COLUMN id DROP NOT NULL",
        "ALTER COLUMN text FIRST",
        "ALTER COLUMN place.street AFTER postcode",
        "DROP COLUMN tags",
        "DROP COLUMN IF EXISTS tags",
        "DROP COLUMNS (price)",
    ):
        spark.sql(f"ALTER TABLE {name} {change}")
    assert columns(spark.table(name)) == [
        "text:string",
        "id:bigint",
        "place:struct<postcode:int,street:string>",
        "points:array<struct<x:double>>",
    ]
    field = load(catalog, name).schema().find_field("id")
    assert (field.doc, field.required) == ("what counts", False)
    query = "SELECT text, id, place.postcode, place.street, points[0].x FROM {} ORDER BY id"
    expected = [["one", 1, 7, "High", 0.5], [None, 2, None, None, None]]
    assert [list(row) for row in spark.sql(query.format(name)).collect()] == expected
    assert ask(query.format(of_any(name))) == expected
    assert ask(f"SELECT * FROM {of_any(name)} WHERE id IS NULL") == []


def test_a_column_dropped_and_added_again_has_none_of_its_old_values(spark, name):
    spark.sql(f"ALTER TABLE {name} DROP COLUMN s")
    spark.sql(f"ALTER TABLE {name} ADD COLUMN s STRING")
    assert spark.sql(f"SELECT * FROM {name} WHERE s IS NOT NULL").collect() == []


def test_all_columns_are_replaced_in_one_commit(spark, catalog, name):
    before = load(catalog, name)
    spark.sql(f"ALTER TABLE {name} REPLACE COLUMNS (id BIGINT, other STRING)")
    after = load(catalog, name)
    assert columns(spark.table(name)) == ["id:bigint", "other:string"]
    assert [tuple(row) for row in spark.table(name).collect()] == [(None, None)] * 2
    assert len(after.metadata.metadata_log) == len(before.metadata.metadata_log) + 1


def test_properties_comment_and_location_are_set_and_removed(spark, catalog, ask, name):
    spark.sql(
        f"ALTER TABLE {name} SET TBLPROPERTIES ('a'='9', 'write.delete.mode'='merge-on-read')"
    )
    spark.sql(f"ALTER TABLE {name} UNSET TBLPROPERTIES IF EXISTS ('b', 'no.such')")
    spark.sql(f"COMMENT ON TABLE {name} IS 'a comment'")
    elsewhere = f"{load(catalog, name).location()}-elsewhere"
    spark.sql(f"ALTER TABLE {name} SET LOCATION '{elsewhere}'")
    table = load(catalog, name)
    assert table.location() == elsewhere
    kept = {key: table.properties.get(key) for key in ("a", "b", "comment", "location")}
    assert kept == {"a": "9", "b": None, "comment": "a comment", "location": None}
    shown = dict(ask(f"SHOW TBLPROPERTIES {of_any(name)}"))
    assert (shown["a"], shown["write.delete.mode"]) == ("9", "merge-on-read")
    assert "b" not in shown


def test_a_table_of_format_version_1_becomes_one_of_version_2(spark, catalog, name):
    table = f"{name}_v1"
    spark.sql(f"CREATE TABLE {table} (x INT) USING iceberg TBLPROPERTIES ('format-version'='1')")
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('format-version'='2')")
    assert load(catalog, table).metadata.format_version == 2
    spark.sql(f"DROP TABLE {table}")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("ADD COLUMN n INT NOT NULL", "existing rows have no value for it"),
        ("ALTER COLUMN id TYPE STRING", "int may become long"),
        ("ALTER COLUMN s SET NOT NULL", "null"),
        ("ADD COLUMN i INTERVAL DAY", "has no type for Spark's interval day"),
        ("ADD COLUMN n INT DEFAULT 5", "default"),
        ("RENAME COLUMN s TO ID", "already exists|same name"),
        ("DROP COLUMN no_such", "no_such"),
        ("SET TBLPROPERTIES ('write.delete.mode'='sometimes')", "copy-on-write or merge-on-read"),
        ("SET TBLPROPERTIES ('current-snapshot-id'='5')", "no snapshot 5"),
        ("SET TBLPROPERTIES ('format-version'='soon')", "not a number"),
        ("ADD CONSTRAINT positive CHECK (id > 0)", "constraint|cannot do this here"),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason_and_changes_nothing(
    spark, catalog, kept, change, words
):
    before = load(catalog, kept).metadata_location
    with pytest.raises(PySparkException, match=f"(?i){words}"):
        spark.sql(f"ALTER TABLE {kept} {change}")
    assert load(catalog, kept).metadata_location == before


def test_a_column_that_partitions_the_table_is_not_dropped(spark, catalog, name):
    table = f"{name}_p"
    spark.sql(f"CREATE TABLE {table} (x INT, y INT) USING iceberg PARTITIONED BY (y)")
    with pytest.raises(AnalysisException, match="partition field 'y' needs it"):
        spark.sql(f"ALTER TABLE {table} DROP COLUMN y")
    spark.sql(f"DROP TABLE {table}")
