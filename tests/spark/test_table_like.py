"""CREATE TABLE … LIKE: Iceberg tables like other ones, on Sparks that ask catalogs for it and on those that do not."""

from __future__ import annotations

import re
import sys

import pytest

from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import FixedType, ListType, LongType, NestedField, UUIDType
from icecomb.spark.conf import SESSION_CATALOG_CLASS
from tests.rings import sampled

NAMESPACE = "table_like"


@pytest.fixture(params=sampled(["ours", "3.5"], keep=1))
def run(request):
    """Runs statements; the session catalog is ours, too."""
    if request.param != "ours":
        return request.getfixturevalue("other_spark")(request.param).sql
    session = request.getfixturevalue("spark").newSession()
    session.conf.set("spark.sql.catalog.spark_catalog", SESSION_CATALOG_CLASS)
    session.conf.set("spark.sql.catalog.spark_catalog.python", sys.executable)
    return lambda text: [list(row) for row in session.sql(text).collect()]


@pytest.fixture
def namespace(run, catalog):
    run(f"CREATE NAMESPACE spark_catalog.{NAMESPACE}")
    yield NAMESPACE
    run("USE spark_catalog.default")
    for identifier in catalog.list_tables(NAMESPACE):
        catalog.drop_table(identifier)
    run(f"DROP NAMESPACE spark_catalog.{NAMESPACE} CASCADE")


@pytest.fixture
def metadata(catalog):
    return lambda table: catalog.load_table(f"{NAMESPACE}.{table}").metadata


def columns_of(found):
    """Without field ids: those are the table's own."""
    return [
        (f.name, re.sub(r"\b\d+: ", "", str(f.field_type)), f.required, f.doc)
        for f in found.schema().fields
    ]


def make_source(run, catalog):
    """An evolved table: its ids have gaps, and it has all that a table can have."""
    run(
        f"CREATE TABLE lake.{NAMESPACE}.source (gone INT, id BIGINT NOT NULL COMMENT 'the key', "
        "at TIMESTAMP_NTZ, s STRUCT<x: INT NOT NULL COMMENT 'in', y: ARRAY<STRING>>, k STRING) "
        "USING iceberg PARTITIONED BY (bucket(4, id), days(at)) COMMENT 'what happened' "
        "TBLPROPERTIES ('a'='source', 'b'='source', 'gc.enabled'='false', "
        "'icecomb.former-folders'='[\"/former\"]')"
    )
    source = f"lake.{NAMESPACE}.source"
    run(f"ALTER TABLE {source} DROP COLUMN gone")
    run(f"ALTER TABLE {source} ADD PARTITION FIELD truncate(2, k) AS part")
    run(f"ALTER TABLE {source} WRITE ORDERED BY k DESC NULLS LAST, id")
    run(f"ALTER TABLE {source} SET IDENTIFIER FIELDS id")
    run(f"INSERT INTO {source} VALUES (1, TIMESTAMP_NTZ '2026-01-01 00:00:00', NULL, 'abc')")
    table = catalog.load_table(f"{NAMESPACE}.source")
    with table.update_schema() as update:
        update.add_column("u", UUIDType())
        update.add_column("f", FixedType(4))
        update.add_column("us", ListType(100, UUIDType(), element_required=False))


def check_copy(found, source):
    """Everything but the rows and what is true of the source's own files only."""
    assert columns_of(found) == columns_of(source)
    schema, other = found.schema(), source.schema()
    assert schema.identifier_field_names() == other.identifier_field_names() == {"id"}
    named = [
        [(f.name, str(f.transform), each.schema().find_column_name(f.source_id)) for f in fields]
        for each, fields in ((found, found.spec().fields), (source, source.spec().fields))
    ]
    assert named[0] == named[1]
    assert len(named[0]) == 3
    orders = [
        [
            (each.schema().find_column_name(f.source_id), f.direction, f.null_order)
            for f in each.sort_order().fields
        ]
        for each in (found, source)
    ]
    assert orders[0] == orders[1]
    assert len(orders[0]) == 2
    assert found.current_snapshot() is None
    assert found.location != source.location
    assert found.table_uuid != source.table_uuid


def test_a_table_of_ours_is_copied_whole_without_its_rows(run, namespace, catalog, metadata):
    make_source(run, catalog)
    table = f"lake.{namespace}.made"
    run(f"create table -- why\n {table} LIKE lake.{namespace}.source")
    source, made = metadata("source"), metadata("made")
    check_copy(made, source)
    assert {k: made.properties.get(k) for k in ("a", "b", "comment")} == {
        "a": "source",
        "b": "source",
        "comment": "what happened",
    }
    # the source's files may be those of others, and the new table's are its own
    own = {"gc.enabled", "schema.name-mapping.default", "icecomb.former-folders"}
    assert not own & set(made.properties)
    # Spark writes no uuid that is directly in a list
    run(f"ALTER TABLE {table} DROP COLUMN us")
    run(f"INSERT INTO {table} SELECT id, at, s, k, u, f FROM lake.{namespace}.source")
    assert run(f"SELECT id, k FROM {table}") == [[1, "abc"]]


def test_clauses_win_over_the_source(run, namespace, catalog, metadata, tmp_path):
    make_source(run, catalog)
    source = f"lake.{namespace}.source"
    run(f"USE lake.{namespace}")
    place = f"{tmp_path}/elsewhere"
    run(
        f"CREATE TABLE made LIKE source USING iceberg LOCATION '{place}' "
        "TBLPROPERTIES ('b'='clause', 'c'='clause', 'format-version'='2')"
    )
    made = metadata("made")
    check_copy(made, metadata("source"))
    assert {k: made.properties.get(k) for k in "abc"} == {
        "a": "source",
        "b": "clause",
        "c": "clause",
    }
    assert made.location.removeprefix("file:").replace("///", "/") == place
    with pytest.raises(Exception, match="already exists"):
        run(f"CREATE TABLE made LIKE {source}")
    uuid = made.table_uuid
    run(f"CREATE TABLE IF NOT EXISTS made LIKE {source} TBLPROPERTIES ('b'='later')")
    assert metadata("made").table_uuid == uuid
    assert metadata("made").properties["b"] == "clause"
    with pytest.raises(Exception, match="creates Iceberg tables, not csv"):
        run(f"CREATE TABLE other LIKE {source} USING csv")
    assert not catalog.table_exists(f"{namespace}.other")


@pytest.mark.full("a table of ours is in the gate")
def test_tables_of_hive_and_views_give_their_columns_and_partitions(
    run, namespace, catalog, metadata
):
    columns = "id BIGINT COMMENT 'the key', price DECIMAL(9, 2), name VARCHAR(9)"
    run(
        f"CREATE TABLE spark_catalog.{namespace}.hive ({columns}) PARTITIONED BY (day STRING) "
        "STORED AS PARQUET TBLPROPERTIES ('a'='hive')"
    )
    run(f"CREATE TABLE lake.{namespace}.made LIKE spark_catalog.{namespace}.hive")
    made = metadata("made")
    assert columns_of(made) == [
        ("id", "long", False, "the key"),
        ("price", "decimal(9, 2)", False, None),
        ("name", "string", False, None),
        ("day", "string", False, None),
    ]
    assert [(f.name, str(f.transform)) for f in made.spec().fields] == [("day", "identity")]
    assert "a" not in made.properties
    run(f"CREATE VIEW spark_catalog.{namespace}.v AS SELECT id AS n FROM {namespace}.hive")
    run(f"CREATE VIEW lake.{namespace}.w AS SELECT id AS n, day FROM lake.{namespace}.made")
    run("CREATE TEMPORARY VIEW table_like_view AS SELECT 1 AS one, 'a' AS two")
    sources = {
        f"spark_catalog.{namespace}.v": ["n"],
        f"lake.{namespace}.w": ["n", "day"],
        "table_like_view": ["one", "two"],
        f"lake.{namespace}.made.snapshots": [
            "committed_at",
            "snapshot_id",
            "parent_id",
            "operation",
            "manifest_list",
            "summary",
        ],
    }
    for number, (source, names) in enumerate(sources.items()):
        run(f"CREATE TABLE lake.{namespace}.of_view_{number} LIKE {source}")
        assert metadata(f"of_view_{number}").schema().column_names == names or names == [
            f.name for f in metadata(f"of_view_{number}").schema().fields
        ]
    run("DROP VIEW table_like_view")
    run(f"DROP VIEW lake.{namespace}.w")
    run(f"DROP VIEW spark_catalog.{namespace}.v")


@pytest.mark.full("the same statements in our own catalog are in the gate")
def test_in_the_session_catalog_the_new_table_is_of_the_kind_of_the_old_or_of_what_is_said(
    run, namespace, catalog, metadata
):
    run(f"CREATE TABLE {namespace}.hive (id INT, k STRING) STORED AS PARQUET")
    run(f"CREATE TABLE {namespace}.ours (id INT, k STRING) USING iceberg PARTITIONED BY (k)")
    for source in ("ours", "spark_catalog.{n}.ours", "lake.{n}.ours"):
        run(f"USE spark_catalog.{namespace}")
        run(f"CREATE TABLE made LIKE {source.format(n=namespace)}")
        assert [f.name for f in metadata("made").spec().fields] == ["k"]
        run(f"INSERT INTO {namespace}.made VALUES (1, 'a')")
        assert run(f"SELECT * FROM lake.{namespace}.made") == [[1, "a"]]
        run("DROP TABLE made")
    run(f"CREATE TABLE {namespace}.of_hive LIKE {namespace}.hive USING iceberg")
    assert [f.name for f in metadata("of_hive").schema().fields] == ["id", "k"]
    run(f"CREATE TABLE IF NOT EXISTS {namespace}.of_hive LIKE {namespace}.ours USING iceberg")
    assert metadata("of_hive").spec().fields == ()
    run("CREATE TEMPORARY VIEW hive AS SELECT 1 AS one")
    run(f"USE spark_catalog.{namespace}")
    run("CREATE TABLE of_view LIKE hive USING iceberg")
    assert [f.name for f in metadata("of_view").schema().fields] == ["one"]
    run("DROP VIEW hive")
    run(f"CREATE TABLE {namespace}.plain LIKE {namespace}.hive")
    run(f"INSERT INTO {namespace}.plain VALUES (2, 'b')")
    assert run(f"SELECT * FROM {namespace}.plain") == [[2, "b"]]
    assert not catalog.table_exists(f"{namespace}.plain")
    run("USE spark_catalog.default")
    run(f"DROP TABLE {namespace}.plain")
    run(f"DROP TABLE {namespace}.hive")


def test_nothing_is_made_where_something_is_wrong(run, namespace, catalog):
    run(f"CREATE TABLE lake.{namespace}.t (id INT) USING iceberg")
    wrong = {
        "CREATE TABLE lake.{n}.other LIKE lake.{n}.nothing": "nothing",
        "CREATE TABLE lake.nowhere_at_all.other LIKE lake.{n}.t": "nowhere_at_all",
        "CREATE TABLE lake.{n}.other LIKE lake.{n}.t TBLPROPERTIES ('format-version'='9')": "9",
        "CREATE TABLE lake.{n}.other LIKE lake.{n}.t PARTITIONED BY (id)": "PARSE_SYNTAX_ERROR",
        "CREATE TABLE lake.{n}.t.branch_b LIKE lake.{n}.t": "branch_b",
    }
    for text, said in wrong.items():
        with pytest.raises(Exception, match=re.escape(said)):
            run(text.format(n=namespace))
    [[plan]] = run(f"EXPLAIN CREATE TABLE lake.{namespace}.other LIKE lake.{namespace}.t")
    assert "CreateTableLike" in plan
    assert [tuple(each)[-1] for each in catalog.list_tables(namespace)] == ["t"]


def test_iceberg_java_reads_and_writes_a_copy(spark, catalog, iceberg_java):
    spark.sql(f"CREATE NAMESPACE lake.{NAMESPACE}_java")
    try:
        columns = "(id BIGINT, at TIMESTAMP, k STRING) USING iceberg PARTITIONED BY (days(at))"
        iceberg_java.sql(f"CREATE TABLE ice.{NAMESPACE}_java.source {columns}")
        iceberg_java.sql(f"ALTER TABLE ice.{NAMESPACE}_java.source DROP COLUMN id")
        iceberg_java.sql(f"ALTER TABLE ice.{NAMESPACE}_java.source WRITE ORDERED BY k")
        spark.sql(f"CREATE TABLE lake.{NAMESPACE}_java.made LIKE lake.{NAMESPACE}_java.source")
        iceberg_java.sql(
            f"INSERT INTO ice.{NAMESPACE}_java.made VALUES (TIMESTAMP '2026-01-02 03:04:05', 'a')"
        )
        query = f"SELECT CAST(at AS STRING), k FROM %s.{NAMESPACE}_java.made"
        rows = [["2026-01-02 03:04:05", "a"]]
        assert iceberg_java.sql(query % "ice") == rows
        assert [list(row) for row in spark.sql(query % "lake").collect()] == rows
        [(text,)] = spark.sql(f"SHOW CREATE TABLE lake.{NAMESPACE}_java.made").collect()
        assert "PARTITIONED BY (days(at))" in text
    finally:
        for identifier in catalog.list_tables(f"{NAMESPACE}_java"):
            catalog.drop_table(identifier)
        spark.sql(f"DROP NAMESPACE lake.{NAMESPACE}_java")


def test_ids_are_those_of_the_new_table(run, namespace, catalog, metadata):
    """A mapping of names of the source would find other columns in files without ids."""
    schema = Schema(
        NestedField(7, "b", LongType(), required=False),
        NestedField(3, "a", LongType(), required=False),
    )
    catalog.create_table(
        f"{namespace}.mapped",
        schema,
        properties={
            "schema.name-mapping.default": '[{"field-id": 1, "names": ["a"]}, '
            '{"field-id": 2, "names": ["b"]}]'
        },
    )
    run(f"CREATE TABLE lake.{namespace}.made LIKE lake.{namespace}.mapped")
    made = metadata("made")
    assert [(f.field_id, f.name) for f in made.schema().fields] == [(1, "b"), (2, "a")]
    assert "schema.name-mapping.default" not in made.properties
