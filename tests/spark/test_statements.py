"""Statements of Iceberg's SQL extensions: our Spark makes of a table what Iceberg Java makes of its twin."""

from __future__ import annotations

import itertools
from contextlib import nullcontext

import pytest
from pyspark.errors import (
    AnalysisException,
    IllegalArgumentException,
    ParseException,
    UnsupportedOperationException,
)

pytestmark = pytest.mark.usefixtures("own_namespace")

NAMESPACE = "statement_tests"
NUMBERS = itertools.count(1)
COLUMNS = "(id BIGINT NOT NULL, data STRING, ts TIMESTAMP, place STRUCT<zip: INT, `a.b`: INT>) USING iceberg"


class Twins:
    """Two tables that begin the same: `ours` is changed by our Spark, `theirs` by Iceberg Java."""

    def __init__(self, spark, catalog, iceberg_java, partitioning="", *, rows=True, version=2):
        number = next(NUMBERS)
        self.ours, self.theirs = (f"{NAMESPACE}.{side}{number}" for side in ("ours", "theirs"))
        self._run = {self.ours: spark.sql, self.theirs: iceberg_java.sql}
        self._catalog = catalog
        made = f"{COLUMNS} {partitioning} TBLPROPERTIES ('format-version'='{version}')"
        for table in self._run:
            spark.sql(f"CREATE TABLE lake.{table} {made}")
            for row in (1, 2) if rows else ():
                spark.sql(f"INSERT INTO lake.{table} VALUES ({row}, 'x', NULL, NULL)")

    def alter(self, change):
        """Make one change to both; `{0}`, `{1}` in it are the table's first and second snapshot."""
        for table, run in self._run.items():
            prefix = "lake" if table == self.ours else "ice"
            ids = [s.snapshot_id for s in self.load(table).metadata.snapshots]
            run(f"ALTER TABLE {prefix}.{table} {change.format(*ids)}")

    def load(self, table):
        return self._catalog.load_table(table)

    def states(self):
        """What the statements can change, of each."""
        return [state(self.load(table).metadata) for table in self._run]


def state(metadata):
    place = {s.snapshot_id: number for number, s in enumerate(metadata.snapshots)}
    return {
        "specs": {
            spec.spec_id: [(f.field_id, f.source_id, str(f.transform), f.name) for f in spec.fields]
            for spec in metadata.partition_specs
        },
        "spec": metadata.default_spec_id,
        "orders": {
            order.order_id: [
                (f.source_id, str(f.transform), f.direction, f.null_order) for f in order.fields
            ]
            for order in metadata.sort_orders
        },
        "order": metadata.default_sort_order_id,
        "distribution": metadata.properties.get("write.distribution-mode"),
        "identifiers": metadata.schema().identifier_field_names(),
        "refs": {
            name: (
                place[ref.snapshot_id],
                ref.snapshot_ref_type,
                ref.max_ref_age_ms,
                ref.max_snapshot_age_ms,
                ref.min_snapshots_to_keep,
            )
            for name, ref in metadata.refs.items()
        },
        "snapshots": [
            (s.operation, place.get(s.parent_snapshot_id), s.summary.get("total-records"))
            for s in metadata.snapshots
        ],
    }


@pytest.fixture
def name(spark):
    table = f"lake.{NAMESPACE}.t{next(NUMBERS)}"
    spark.sql(f"CREATE TABLE {table} {COLUMNS}")
    spark.sql(f"INSERT INTO {table} VALUES (1, 'x', NULL, NULL)")
    yield table
    spark.sql(f"DROP TABLE {table}")


@pytest.fixture
def twins(spark, catalog, iceberg_java):
    made = []

    def make(*args, **more):
        made.append(Twins(spark, catalog, iceberg_java, *args, **more))
        return made[-1]

    yield make
    for each in made:
        for table in (each.ours, each.theirs):
            spark.sql(f"DROP TABLE lake.{table}")


@pytest.mark.parametrize("version", [1, 2])
def test_partition_fields_come_go_and_are_replaced_as_iceberg_java_does_it(twins, version):
    pair = twins("PARTITIONED BY (data, days(ts))", version=version)
    for change in (
        "ADD PARTITION FIELD bucket(16, id)",
        "ADD PARTITION FIELD truncate(data, 4) AS start",
        "ADD PARTITION FIELD place.zip",
        "DROP PARTITION FIELD data",
        "DROP PARTITION FIELD start",
        "REPLACE PARTITION FIELD ts_day WITH date_hour(ts)",
        "REPLACE PARTITION FIELD bucket(16, id) WITH bucket(8, id) AS `shard 8`",
        "ADD PARTITION FIELD data",
        "DROP PARTITION FIELD hours(ts)",
        "ADD PARTITION FIELD date(ts)",
        "ADD PARTITION FIELD months(ts) AS m",
    ):
        pair.alter(change)
        ours, theirs = pair.states()
        assert ours == theirs, change


def test_write_order_and_distribution_are_those_that_iceberg_java_sets(twins):
    pair = twins("PARTITIONED BY (data)", rows=False)
    for change in (
        "WRITE ORDERED BY data, id DESC",
        "WRITE LOCALLY ORDERED BY bucket(4, id) DESC NULLS FIRST, truncate(2, data) NULLS LAST",
        "WRITE DISTRIBUTED BY PARTITION",
        "WRITE LOCALLY ORDERED BY id",
        "WRITE UNORDERED",
        "WRITE LOCALLY ORDERED BY ts DISTRIBUTED BY PARTITION",
        "WRITE ORDERED BY (place.zip ASC NULLS LAST, days(ts))",
        "WRITE DISTRIBUTED BY PARTITION ORDERED BY id",
    ):
        pair.alter(change)
        ours, theirs = pair.states()
        assert ours == theirs, change


def test_identifier_fields_are_set_and_dropped(spark, twins):
    pair = twins(rows=False)
    spark.sql(f"ALTER TABLE lake.{pair.ours} ADD COLUMNS (k INT, `select` INT)")
    spark.sql(f"ALTER TABLE lake.{pair.theirs} ADD COLUMNS (k INT, `select` INT)")
    for table in (pair.ours, pair.theirs):
        with pair.load(table).update_schema(allow_incompatible_changes=True) as update:
            update.update_column("k", required=True).update_column("select", required=True)
    for change in (
        "SET IDENTIFIER FIELDS id, k",
        "SET IDENTIFIER FIELDS id, `select`",
        "DROP IDENTIFIER FIELDS id",
        "SET IDENTIFIER FIELDS k, id",
    ):
        pair.alter(change)
        ours, theirs = pair.states()
        assert ours == theirs, change


def test_branches_and_tags_are_made_moved_and_dropped_as_iceberg_java_does_it(twins):
    pair = twins()
    for change in (
        "CREATE BRANCH b",
        "CREATE BRANCH `old-b` AS OF VERSION {0} RETAIN 7 DAYS WITH SNAPSHOT RETENTION 3 SNAPSHOTS 2 HOURS",
        "CREATE BRANCH IF NOT EXISTS b AS OF VERSION {0}",
        "REPLACE BRANCH b AS OF VERSION {0} RETAIN 30 MINUTES",
        "CREATE OR REPLACE BRANCH b WITH SNAPSHOT RETENTION 4 SNAPSHOTS",
        "CREATE OR REPLACE BRANCH fresh WITH SNAPSHOT RETENTION 9 DAYS",
        "CREATE TAG t RETAIN 365 DAYS",
        "CREATE TAG IF NOT EXISTS t AS OF VERSION {0}",
        "REPLACE TAG t AS OF VERSION {0}",
        "CREATE OR REPLACE TAG t",
        "CREATE OR REPLACE TAG other AS OF VERSION {0}",
        "REPLACE BRANCH main AS OF VERSION {0}",
        "DROP BRANCH fresh",
        "DROP BRANCH IF EXISTS fresh",
        "DROP TAG t",
        "DROP TAG IF EXISTS t",
    ):
        pair.alter(change)
        ours, theirs = pair.states()
        assert ours == theirs, change


def test_a_branch_of_a_table_without_rows_begins_with_an_empty_snapshot(spark, twins):
    pair = twins(rows=False)
    pair.alter("CREATE BRANCH b RETAIN 2 DAYS WITH SNAPSHOT RETENTION 5 SNAPSHOTS")
    ours, theirs = pair.states()
    assert ours == theirs
    assert spark.sql(f"SELECT * FROM lake.{pair.ours} VERSION AS OF 'b'").collect() == []


REFUSED = [
    ("ADD PARTITION FIELD bucket(4, id)", "is partitioned by 'id_bucket' already"),
    ("ADD PARTITION FIELD nothing", "no field of name 'nothing'"),
    ("ADD PARTITION FIELD zorder(id, data)", "no partition transform zorder"),
    ("DROP PARTITION FIELD nothing", "no(ne| partition field)"),
    ("DROP PARTITION FIELD days(ts)", "no partition field day of column 'ts'"),
    ("DROP IDENTIFIER FIELDS data", "'data' is not an identifier field"),
    ("SET IDENTIFIER FIELDS data", "data"),
    ("WRITE ORDERED BY nothing", "no field of name 'nothing'"),
    ("CREATE BRANCH main", "main"),
    ("CREATE BRANCH b AS OF VERSION 77", "77"),
    ("REPLACE BRANCH missing", "missing"),
    ("DROP BRANCH missing", "missing"),
    ("DROP TAG main", "main"),
    ("CREATE BRANCH b RETAIN 0 DAYS", "0"),
]
NOT_POSSIBLE = (AnalysisException, IllegalArgumentException, UnsupportedOperationException)
"""What Iceberg's own statements throw, by what is wrong."""


def test_what_cannot_be_is_refused_and_changes_nothing(spark, catalog, name):
    spark.sql(f"ALTER TABLE {name} ADD PARTITION FIELD bucket(4, id) AS id_bucket")
    before = catalog.load_table(name.removeprefix("lake.")).metadata_location
    for change, said in REFUSED:
        with pytest.raises(NOT_POSSIBLE, match=said) as refused:
            spark.sql(f"ALTER TABLE {name} {change}")
        assert "hint: " in str(refused.value)
    assert catalog.load_table(name.removeprefix("lake.")).metadata_location == before


def test_iceberg_java_refuses_the_same(iceberg_java, twins):
    pair = twins("PARTITIONED BY (bucket(4, id))")
    for change, _ in REFUSED:
        with pytest.raises(AssertionError):
            iceberg_java.sql(f"ALTER TABLE ice.{pair.theirs} {change}")


def test_each_statement_is_one_commit_and_one_that_changes_nothing_is_none(spark, catalog, name):
    def commits_of():
        return len(catalog.load_table(name.removeprefix("lake.")).metadata.metadata_log)

    for change, commits in (
        ("WRITE ORDERED BY id", 1),
        ("WRITE ORDERED BY id", 0),
        ("CREATE BRANCH b RETAIN 3 DAYS WITH SNAPSHOT RETENTION 2 SNAPSHOTS 1 DAYS", 1),
        ("CREATE BRANCH IF NOT EXISTS b", 0),
        ("DROP TAG IF EXISTS b2", 0),
        ("REPLACE PARTITION FIELD nope WITH id", None),
        ("SET IDENTIFIER FIELDS id", 1),
    ):
        before = commits_of()
        with pytest.raises(IllegalArgumentException) if commits is None else nullcontext():
            spark.sql(f"ALTER TABLE {name} {change}")
        assert commits_of() - before == (commits or 0), change


def refs(catalog, name):
    return set(catalog.load_table(name.removeprefix("lake.")).metadata.refs)


def test_the_name_is_resolved_as_in_every_other_statement(spark, catalog, name):
    _, namespace, table = name.split(".")
    quoted = ".".join(f"`{part}`" for part in name.split("."))
    spark.sql(f"-- a comment\n alter /* ALTER */ TABLE {quoted}\nCREATE\tbranch a;")
    try:
        spark.sql("USE lake")
        spark.sql(f"ALTER TABLE {namespace}.{table} CREATE BRANCH b")
        spark.sql(f"USE {namespace}")
        spark.sql(f"ALTER TABLE {table} CREATE BRANCH c")
        spark.sql("SET branch.name = d")
        spark.sql(f"ALTER TABLE {table} CREATE BRANCH ${{branch.name}}")
    finally:
        spark.sql("USE spark_catalog.default")
    assert refs(catalog, name) == {"main", "a", "b", "c", "d"}


def test_columns_are_found_as_the_session_says(spark, catalog, name):
    spark.sql(f"ALTER TABLE {name} ADD PARTITION FIELD DATA")
    spark.sql(f"ALTER TABLE {name} WRITE ORDERED BY ID")
    spark.sql(f"ALTER TABLE {name} SET IDENTIFIER FIELDS Id")
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        for change in (
            "DROP PARTITION FIELD DATA",
            "WRITE ORDERED BY ID",
            "SET IDENTIFIER FIELDS ID",
        ):
            with pytest.raises(NOT_POSSIBLE, match=r"ID|DATA"):
                spark.sql(f"ALTER TABLE {name} {change}")
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
    metadata = catalog.load_table(name.removeprefix("lake.")).metadata
    assert [f.name for f in metadata.spec().fields] == ["data"]
    assert metadata.schema().identifier_field_names() == {"id"}


@pytest.mark.parametrize("mode", ["", "EXTENDED", "FORMATTED", "COST"])
def test_a_statement_can_be_explained_and_is_not_run(spark, catalog, name, mode):
    [(plan,)] = spark.sql(
        f"EXPLAIN {mode} ALTER TABLE {name} CREATE BRANCH b RETAIN 3 DAYS"
    ).collect()
    assert "CREATE BRANCH b RETAIN 3 DAYS" in plan
    assert refs(catalog, name) == {"main"}


def test_cached_rows_follow_a_branch_that_is_moved(spark, catalog, name):
    spark.sql(f"CACHE TABLE {name}")
    try:
        first = catalog.load_table(name.removeprefix("lake.")).current_snapshot().snapshot_id
        spark.sql(f"INSERT INTO {name} VALUES (2, 'y', NULL, NULL)")
        assert spark.table(name).count() == 2
        spark.sql(f"ALTER TABLE {name} REPLACE BRANCH main AS OF VERSION {first}")
        assert spark.table(name).count() == 1
    finally:
        spark.sql(f"UNCACHE TABLE {name}")


def test_a_table_that_is_not_there_a_view_and_a_table_of_others_are_told_apart(spark):
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.sql(f"ALTER TABLE lake.{NAMESPACE}.missing CREATE BRANCH IF NOT EXISTS b")
    spark.sql("CREATE TEMPORARY VIEW statement_view AS SELECT 1 AS id")
    with pytest.raises(AnalysisException, match="expects a table"):
        spark.sql("ALTER TABLE statement_view ADD PARTITION FIELD id")
    spark.sql("CREATE TABLE spark_catalog.default.plain_rows (id INT) USING parquet")
    try:
        with pytest.raises(AnalysisException, match="is for tables of icecomb's catalogs"):
            spark.sql("ALTER TABLE spark_catalog.default.plain_rows ADD PARTITION FIELD id")
    finally:
        spark.sql("DROP TABLE spark_catalog.default.plain_rows")
        spark.sql("DROP VIEW statement_view")


def test_a_statement_with_a_slip_is_told_how_to_write_it(spark, name):
    for change in (
        "ADD PARTITION FIELDS id",
        "RENAME BRANCH a TO b",
        "WRITE SORTED BY id",
        "SET IDENTIFIER FIELD id",
        "CREATE TAGS t",
    ):
        with pytest.raises(AnalysisException, match="Cannot read the statement") as refused:
            spark.sql(f"ALTER TABLE {name} {change}")
        assert "hint: Write " in str(refused.value)


def test_statements_that_only_look_like_ours_are_sparks_own(spark, name):
    for change in ("ADD COLUM id INT", "ADD PARTITION (id = 1) FIELD"):
        with pytest.raises(ParseException, match="PARSE_SYNTAX_ERROR"):
            spark.sql(f"ALTER TABLE {name} {change}")
    with pytest.raises(ParseException, match="PARSE_SYNTAX_ERROR"):
        spark.sql("ALTER TABLE spark_catalog.default.t RENAME BRANCH a TO b")
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('note'='CREATE BRANCH b')")
    spark.sql(f"ALTER TABLE {name} ADD COLUMN branch STRING COMMENT 'DROP TAG t'")
    spark.sql(f"ALTER TABLE {name} ALTER COLUMN branch COMMENT 'a branch'")
    spark.sql(f"ALTER TABLE {name} RENAME COLUMN branch TO tag")
    assert spark.table(name).columns[-1] == "tag"
