"""Statements WITH SCHEMA EVOLUTION, and what a MERGE says of its rows, beside Iceberg's runtime."""

from __future__ import annotations

import itertools

import pytest
from pyspark.errors import AnalysisException

NAMESPACE = "schema_evolution_tests"
NUMBERS = itertools.count(1)
ROWS = "(1, named_struct('a', 1), 1, 'k'), (2, NULL, 2, 'k'), (3, NULL, 3, 'l'), (4, NULL, 4, 'l')"
SOURCES = {
    "new columns": "SELECT 2L AS id, named_struct('a', 7) AS s, 8 AS v, 'k' AS k, 'n' AS new "
    "UNION ALL SELECT 9L, NULL, 9, 'm', 'o'",
    "new fields": "SELECT 2L AS id, named_struct('a', 7, 'b', array(1)) AS s, 8 AS v, 'k' AS k",
    "wider types": "SELECT 2L AS id, named_struct('a', 5000000000) AS s, 8L AS v, 'k' AS k",
    "nothing new": "SELECT 2L AS id, named_struct('a', 7) AS s, 8 AS v, 'k' AS k",
}
CLAUSES = {
    "upsert": "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
    "all": "WHEN MATCHED AND t.id = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET * "
    "WHEN NOT MATCHED THEN INSERT * WHEN NOT MATCHED BY SOURCE AND t.id = 3 THEN DELETE "
    "WHEN NOT MATCHED BY SOURCE AND t.id = 4 THEN UPDATE SET v = 40",
}
PARTS = "spark.merge-into."


@pytest.fixture
def name(peers):
    table = f"{NAMESPACE}.t{next(NUMBERS)}"
    yield table
    for each in (table, f"{table}_of_iceberg"):
        peers["lake"](f"DROP TABLE IF EXISTS lake.{each}")


@pytest.fixture
def ours(spark):
    """A name on the newest Spark, beside which nobody else has one."""
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS lake.{NAMESPACE}_ours")
    table = f"{NAMESPACE}_ours.t{next(NUMBERS)}"
    yield table
    spark.sql(f"DROP TABLE IF EXISTS lake.{table}")


def make(sql, table, mode="copy-on-write", more=""):
    sql(
        f"CREATE TABLE {table} (id BIGINT, s STRUCT<a: INT>, v INT, k STRING) USING iceberg "
        f"PARTITIONED BY (k) TBLPROPERTIES ('write.merge.mode'='{mode}'{more})"
    )
    sql(f"INSERT INTO {table} VALUES {ROWS}")


@pytest.mark.parametrize(
    ("source", "clauses", "mode"),
    [
        ("new columns", "upsert", "copy-on-write"),
        ("new columns", "all", "merge-on-read"),
        ("new fields", "upsert", "merge-on-read"),
        ("new fields", "all", "copy-on-write"),
        ("wider types", "all", "merge-on-read"),
        ("wider types", "upsert", "copy-on-write"),
        ("nothing new", "all", "copy-on-write"),
        ("nothing new", "all", "merge-on-read"),
    ],
)
def test_a_merge_adds_and_widens_columns_and_counts_rows_as_with_icebergs_runtime(
    peers, name, source, clauses, mode
):
    found = {}
    for catalog, table in (("ice", f"ice.{name}_of_iceberg"), ("lake", f"lake.{name}")):
        sql = peers[catalog]
        make(sql, table, mode)
        sql(
            f"MERGE WITH SCHEMA EVOLUTION INTO {table} t USING ({SOURCES[source]} UNION ALL "
            f"{SOURCES[source].replace('2L AS id', '1L AS id').split(' UNION ALL')[0]}) s "
            f"ON t.id = s.id {CLAUSES[clauses]}"
        )
        [[summary]] = sql(
            f"SELECT summary FROM {table}.snapshots ORDER BY committed_at DESC LIMIT 1"
        )
        found[catalog] = (
            [row[:2] for row in sql(f"DESCRIBE {table}")],
            sql(f"SELECT * FROM {table} ORDER BY id"),
            {key: value for key, value in summary.items() if key.startswith(PARTS)},
        )
    assert found["lake"] == found["ice"]
    assert len(found["ice"][2]) == 8
    assert peers["ice"](f"SELECT * FROM ice.{name} ORDER BY id") == found["ice"][1]


@pytest.mark.parametrize(
    ("source", "mode", "columns", "rows"),
    [
        (
            "new columns",
            "merge-on-read",
            {"id": "long", "v": "int", "new": "string"},
            [(2, (7,), 8, "k", "n"), (4, None, 40, "l", None), (9, None, 9, "m", "o")],
        ),
        (
            "wider types",
            "copy-on-write",
            {"id": "long", "v": "long", "s.a": "long"},
            [(2, (5_000_000_000,), 8, "k"), (4, None, 40, "l")],
        ),
    ],
)
def test_a_merge_adds_and_widens_columns_and_changes_rows_in_one_statement(
    spark, ours, catalog, source, mode, columns, rows
):
    make(spark.sql, f"lake.{ours}", mode)
    spark.sql(
        f"MERGE WITH SCHEMA EVOLUTION INTO lake.{ours} t USING ({SOURCES[source]} UNION ALL "
        f"{SOURCES[source].replace('2L AS id', '1L AS id').split(' UNION ALL')[0]}) s "
        f"ON t.id = s.id {CLAUSES['all']}"
    )
    assert spark.table(f"lake.{ours}").orderBy("id").collect() == rows
    schema = catalog.load_table(ours).schema()
    assert {name: str(schema.find_field(name).field_type) for name in columns} == columns


def test_on_the_newest_spark_a_merge_without_the_words_changes_no_column(spark, ours, catalog):
    make(spark.sql, f"lake.{ours}")
    spark.sql(
        f"MERGE INTO lake.{ours} t USING (SELECT 2L AS id, 8 AS v, 1 AS new) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET v = s.v"
    )
    assert len(catalog.load_table(ours).metadata.schemas) == 1


def test_a_merge_without_the_words_changes_no_column(peers, name, catalog):
    make(peers["lake"], f"lake.{name}")
    peers["lake"](
        f"MERGE INTO lake.{name} t USING (SELECT 2L AS id, 8 AS v, 1 AS new) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET v = s.v"
    )
    assert len(catalog.load_table(name).metadata.schemas) == 1


def test_a_table_may_refuse_to_be_changed_by_statements_as_with_icebergs_runtime(peers, name):
    for catalog, table in (("ice", f"ice.{name}_of_iceberg"), ("lake", f"lake.{name}")):
        make(peers[catalog], table, more=", 'write.spark.auto-schema-evolution.enabled'='false'")
        with pytest.raises(AssertionError, match="UNRESOLVED_COLUMN"):
            peers[catalog](
                f"MERGE WITH SCHEMA EVOLUTION INTO {table} t USING (SELECT 2L AS id, 1 AS new) s "
                f"ON t.id = s.id {CLAUSES['upsert']}"
            )


def test_columns_are_not_changed_by_the_name_of_a_branch(peers, name):
    sql = peers["lake"]
    make(sql, f"lake.{name}")
    sql(f"ALTER TABLE lake.{name} CREATE BRANCH audit")
    merge = (
        f"INTO lake.{name}.branch_audit t USING (SELECT 2L AS id, CAST(NULL AS STRUCT<a: INT>) AS s, "
        f"5 AS v, 'k' AS k, 1 AS new) s ON t.id = s.id {CLAUSES['upsert']}"
    )
    with pytest.raises(AssertionError, match="stands for something of table"):
        sql(f"MERGE WITH SCHEMA EVOLUTION {merge}")
    sql(f"MERGE {merge}")
    assert sql(f"SELECT v FROM lake.{name}.branch_audit WHERE id = 2") == [[5]]
    assert sql(f"SELECT v FROM lake.{name} WHERE id = 2") == [[2]]


def test_an_insert_adds_and_widens_columns(spark, ours, catalog):
    make(spark.sql, f"lake.{ours}")
    rows = "SELECT named_struct('a', 5, 'b', 'x') AS s, 7L AS id, 5L AS v, 'n' AS new, 'k' AS k"
    with pytest.raises(AnalysisException):
        spark.sql(f"INSERT INTO lake.{ours} BY NAME {rows}")
    spark.sql(f"INSERT WITH SCHEMA EVOLUTION INTO lake.{ours} BY NAME {rows}")
    found = spark.table(f"lake.{ours}").where("id = 7").collect()
    assert found == [(7, (5, "x"), 5, "k", "n")]
    schema = catalog.load_table(ours).schema()
    assert [f.name for f in schema.fields] == ["id", "s", "v", "k", "new"]
    assert [f.field_id for f in schema.fields[:4]] == [1, 2, 3, 4]
    assert {schema.find_field(each).field_id for each in ("new", "s.b")} == {6, 7}
    assert str(schema.find_field("v").field_type) == "long"
