"""Spark's own catalog with our tables in it: Hive and Iceberg tables side by side under their old names."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from icecomb.catalog import migrate
from icecomb.spark.conf import SESSION_CATALOG_CLASS
from tests.peers.spark_worker import plain
from tests.rings import sampled
from tests.spark.sql_file import check
from tests.spark.standing_still import FUNCTION, StandingStill
from tests.test_docs import blocks

FILE = "session_catalog/side_by_side"
PREFIX = "spark.sql.catalog.spark_catalog"


@pytest.fixture
def session_of(spark):
    """New sessions of the shared Spark whose own catalog is ours, with some options."""

    def session(**options):
        made = spark.newSession()
        made.conf.set(PREFIX, SESSION_CATALOG_CLASS)
        for key, value in {"python": sys.executable, **options}.items():
            made.conf.set(f"{PREFIX}.{key.replace('_', '-')}", value)
        return made

    return session


@pytest.fixture
def run(session_of):
    """Runs statements in one such session."""
    session = session_of()
    return lambda text: rows_of(session, text)


def rows_of(session, text):
    return [[plain(value) for value in row] for row in session.sql(text).collect()]


def permanent(session, text):
    """The names a list of tables tells, without the temporary views that every list of a session has."""
    return sorted(row[1] for row in rows_of(session, text) if not row[2])


def refused(session, text, match):
    with pytest.raises(PySparkException, match=match):
        session.sql(text).collect()


@pytest.fixture
def namespace(spark, request, catalog):
    """A database of the test's own; Spark makes it without our catalog."""
    name = request.node.originalname.replace("test_", "")[:40]
    spark.sql(f"CREATE DATABASE spark_catalog.{name}")
    yield name
    for identifier in catalog.list_tables(name):
        catalog.drop_table(identifier)
    spark.sql(f"DROP DATABASE spark_catalog.{name} CASCADE")


@pytest.mark.slow("runs a file of Spark statements, Hive tables among them")
def test_hive_and_iceberg_tables_stand_side_by_side(run):
    check(run, FILE, "spark_catalog", "side_by_side")


@pytest.mark.sparks("3.5", "4.1")
def test_hive_and_iceberg_tables_stand_side_by_side_on_another_spark(other_spark, minor):
    name = f"side_by_side_{minor.replace('.', '_')}"
    run = other_spark(minor).sql
    check(run, FILE, "spark_catalog", name)


def test_icebergs_own_session_catalog_answers_the_same(iceberg_java):
    check(iceberg_java.sql, FILE, "spark_catalog", "side_by_side_of_iceberg")


@pytest.mark.full("what the page says is said side by side in the gate")
def test_the_statements_of_the_page_run_from_the_first_to_the_last(session_of):
    session = session_of()
    [block] = blocks("session-catalog.md", "sql")
    for statement in filter(str.strip, block.replace("shop", "docs_session_shop").split(";")):
        rows = rows_of(session, statement)
        if "JOIN" in statement:
            assert sorted(rows) == [["a.example", "9.50"], ["b.example", "9.50"]]
    session.sql("DROP TABLE docs_session_shop.orders")
    session.sql("DROP DATABASE docs_session_shop CASCADE")


@pytest.mark.full("a statement by one name is in the gate")
def test_what_a_statement_reads_by_one_name_of_a_table_others_may_not_change_by_another(
    session_of, catalog, namespace, tmp_path
):
    session = session_of()
    table = catalog.create_table(f"{namespace}.t", pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": [1]}))
    for number, (text, says) in enumerate(
        {
            "CREATE OR REPLACE TABLE {s}.t USING iceberg AS SELECT {f}(id) AS id FROM {l}.t": "of its own",
            "MERGE INTO {s}.t USING (SELECT {f}(id) AS id FROM range(2, 3, 1, 1)) s ON t.id = s.id "
            "WHEN NOT MATCHED THEN INSERT *": "Found conflicting files",
        }.items()
    ):
        still = StandingStill(session, tmp_path / str(number))
        names = {"s": f"spark_catalog.{namespace}", "l": f"lake.{namespace}", "f": FUNCTION}
        with pytest.raises(PySparkException, match=says):
            still.run(text.format(**names), lambda: table.refresh().append(pa.table({"id": [2]})))
        still.close()
        assert sorted(table.refresh().scan().to_arrow()["id"].to_pylist()) == [1, 2]
        table.delete("id = 2")


@pytest.mark.full("cached tables that others change are in the gate")
def test_a_cached_table_shows_what_was_written_by_its_name_in_another_catalog(
    session_of, catalog, namespace
):
    session = session_of()
    catalog.create_table(f"{namespace}.t", pa.schema([("id", pa.int64())]))
    names = [f"{each}.{namespace}.t" for each in ("lake", "spark_catalog")]
    for each in names:
        session.sql(f"CACHE TABLE {each}")

    def counts():
        return [session.table(each).count() for each in names]

    try:
        for number, each in enumerate(names, 1):
            session.sql(f"INSERT INTO {each} VALUES ({number})")
            assert counts() == [number, number]
        session.sql(f"DELETE FROM {names[0]} WHERE id = 1")
        assert counts() == [1, 1]
        session.sql(f"REPLACE TABLE {names[0]} USING iceberg AS SELECT id FROM range(7)")
        assert counts() == [7, 7]
        one, two, *_ = catalog.load_table(f"{namespace}.t").snapshots()
        for each, snapshot, number in (("lake", one, 1), ("spark_catalog", two, 2)):
            table = f"table => '{namespace}.t', snapshot_id => {snapshot.snapshot_id}"
            session.sql(f"CALL {each}.system.set_current_snapshot({table})")
            assert counts() == [number, number]
    finally:
        for each in names:
            session.sql(f"UNCACHE TABLE {each}")


@pytest.mark.parametrize(
    ("db", "columns"),
    sampled(
        [
            ("was_hive", "(id INT, Name STRING) PARTITIONED BY (day STRING) STORED AS PARQUET"),
            ("was_spark", "(id INT, Name STRING, day STRING) USING parquet PARTITIONED BY (day)"),
        ],
        keep=1,
    ),
)
def test_a_table_that_was_migrated_keeps_working_under_its_name_and_again_when_reverted(
    session_of, spark, catalog, db, columns
):
    """One session, which asks before, meanwhile and afterwards; Spark's own Hive tables are cached in it."""
    session = session_of()
    session.sql(f"CREATE DATABASE {db}")
    session.sql(f"CREATE TABLE {db}.t {columns}")
    session.sql(f"CREATE VIEW {db}.v AS SELECT id, day FROM {db}.t")
    session.sql("SET hive.exec.dynamic.partition.mode=nonstrict")
    session.sql(f"INSERT INTO {db}.t SELECT id, concat('n', id), concat('d', id % 2) FROM range(6)")
    query = f"SELECT * FROM {db}.t ORDER BY id"
    before = rows_of(session, query)
    assert len(before) == 6
    assert rows_of(session, f"SELECT count(*) FROM {db}.v") == [[6]]
    migrate.apply(catalog, f"{db}.t")
    assert rows_of(session, query) == before
    session.sql(f"INSERT INTO {db}.t VALUES (6, 'n6', 'd9')")
    session.sql(
        f"MERGE INTO {db}.t USING (SELECT 1 AS id UNION ALL SELECT 7) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET name = 'one' "
        "WHEN NOT MATCHED THEN INSERT (id, name, day) VALUES (s.id, 'seven', 'd9')"
    )
    session.sql(f"DELETE FROM spark_catalog.{db}.t WHERE id = 0")
    changed = [[1, "one", "d1"], *before[2:], [6, "n6", "d9"], [7, "seven", "d9"]]
    assert rows_of(session, query) == changed
    assert rows_of(session, f"SELECT * FROM lake.{db}.t ORDER BY id") == changed
    assert rows_of(session, f"SELECT count(*) FROM {db}.v") == [[7]]
    assert session.table(f"{db}.t").count() == 7
    # without our session catalog there is no way to the rows by this name
    refused(spark, f"SELECT * FROM spark_catalog.{db}.t", "loading storage handler")
    # Spark looks at all entries of a database for this, and knows no class of Hive's handler
    extended = f"SHOW TABLE EXTENDED IN spark_catalog.{db} LIKE '*'"
    for each in (session, spark):
        assert permanent(each, f"SHOW TABLES IN spark_catalog.{db}") == ["t", "v"]
        refused(each, extended, "loading storage handler")
    migrate.revert(catalog, f"{db}.t", dry_run=False, allow_data_loss=True)
    assert rows_of(session, query) == before
    assert rows_of(session, f"SELECT count(*) FROM {db}.v") == [[6]]
    session.sql(f"INSERT INTO {db}.t VALUES (8, 'n8', 'd0')")
    assert rows_of(session, query) == [*before, [8, "n8", "d0"]]
    assert rows_of(session, f"SHOW PARTITIONS {db}.t") == [["day=d0"], ["day=d1"]]
    migrate.apply(catalog, f"{db}.t", interop="spark,trino")
    assert rows_of(session, f"SELECT count(*) FROM {db}.t") == [[7]]
    for each in (session, spark):
        assert permanent(each, extended) == ["t", "v"]
    with pytest.raises(Exception, match="FileInputFormat"):
        spark.sql(f"SELECT * FROM spark_catalog.{db}.t").collect()
    migrate.revert(catalog, f"{db}.t", dry_run=False)
    session.sql(f"DROP DATABASE {db} CASCADE")


@pytest.mark.full("starts a session of its own")
@pytest.mark.parametrize(
    ("options", "reason"),
    sampled(
        [
            (
                {"python": "/nonexistent/python"},
                r"planner does not run(.|\n)*hint: Set spark\.sql\.",
            ),
            ({"hive.metastore.use.SSL": "true"}, r"metastore(.|\n)*hint: "),
        ],
        keep=1,
    ),
    ids=["no planner", "no way to the metastore"],
)
def test_hive_tables_are_served_where_iceberg_tables_cannot_be(
    session_of, namespace, catalog, options, reason
):
    with_planner = session_of()
    with_planner.sql(f"CREATE TABLE {namespace}.hive STORED AS PARQUET AS SELECT 1 AS id")
    for table, more in (("ours", ""), ("by_hive", "TBLPROPERTIES ('engine.hive.enabled'='true')")):
        with_planner.sql(f"CREATE TABLE {namespace}.{table} (id INT) USING iceberg {more}")
    session = session_of(**options)
    assert rows_of(session, f"SELECT * FROM {namespace}.hive") == [[1]]
    session.sql(f"INSERT INTO {namespace}.hive VALUES (2)")
    session.sql(f"ALTER TABLE {namespace}.hive RENAME TO {namespace}.hive2")
    assert rows_of(session, f"SELECT count(*) FROM {namespace}.hive2") == [[2]]
    shown = rows_of(session, f"SHOW TABLES IN {namespace}")
    assert [row[1] for row in shown] == ["by_hive", "hive2", "ours"]
    for statement in (
        "SELECT * FROM {}.ours",
        "SELECT * FROM {}.by_hive",
        "INSERT INTO {}.ours VALUES (1)",
        "DROP TABLE {}.ours",
        "DROP TABLE {}.by_hive",
        "ALTER TABLE {}.ours SET TBLPROPERTIES ('a' = 'b')",
        "CREATE TABLE {}.more (id INT) USING iceberg",
    ):
        refused(session, statement.format(namespace), reason)
    refused(session, f"SELECT * FROM {namespace}.nothing", "TABLE_OR_VIEW_NOT_FOUND")
    refused(session, f"DROP DATABASE {namespace} CASCADE", "2 Iceberg tables")
    session.sql(f"DROP TABLE {namespace}.hive2")
    assert catalog.list_tables(namespace) == [(namespace, "by_hive"), (namespace, "ours")]


def test_what_is_broken_or_of_another_kind_is_told_by_name(session_of, namespace, catalog):
    session = session_of()
    session.sql(f"CREATE TABLE {namespace}.ours USING iceberg AS SELECT 1 AS id")
    session.sql(f"CREATE TABLE {namespace}.broken (id INT) USING iceberg")
    Path(
        catalog.load_table(f"{namespace}.broken").metadata_location.removeprefix("file:")
    ).write_text("x")
    refused(session, f"SELECT * FROM {namespace}.broken", "not a JSON text of table metadata")
    # a view of Hive's, and its name for a table of ours
    session.sql(f"CREATE VIEW {namespace}.v AS SELECT id + 1 AS id FROM {namespace}.ours")
    assert rows_of(session, f"SELECT * FROM {namespace}.v") == [[2]]
    refused(session, f"CREATE TABLE {namespace}.v (id INT) USING iceberg", "ALREADY_EXISTS")
    refused(session, f"INSERT INTO {namespace}.v VALUES (1)", "(?i)view")
    # a view of Iceberg's: Spark reads its text
    catalog.create_view(
        f"{namespace}.iceberg_view",
        catalog.load_table(f"{namespace}.ours").schema(),
        {"spark": f"SELECT id FROM {namespace}.ours"},
    )
    assert rows_of(session, f"SELECT * FROM {namespace}.iceberg_view") == [[1]]
    # an entry that calls itself Iceberg's and points nowhere
    entry = catalog.client.table(namespace, "broken")
    parameters = {k: v for k, v in entry.parameters.items() if k != "metadata_location"}
    from dataclasses import replace

    catalog.client.create_table(replace(entry, name="nowhere", parameters=parameters))
    refused(session, f"SELECT * FROM {namespace}.nowhere", "without a metadata_location")
    refused(session, f"DROP DATABASE {namespace} CASCADE", "Iceberg tables(.|\n)*one by one")
    session.sql(f"DROP TABLE {namespace}.broken")
    assert catalog.list_tables(namespace) == [(namespace, "nowhere"), (namespace, "ours")]
    catalog.client.drop_table(namespace, "nowhere")


@pytest.mark.full("the same statements in our own catalog are in the gate")
def test_what_fails_while_a_table_is_made_or_replaced_leaves_things_as_they_were(
    session_of, namespace, catalog
):
    """`noop` is a source of Spark's own whose tables go through the catalog, in two steps."""
    session = session_of()
    session.sql(f"CREATE TABLE {namespace}.ours USING iceberg AS SELECT 1 AS id")
    failing = "AS SELECT CAST(raise_error('stop') AS INT) AS id"
    for statement in ("CREATE TABLE {}.new", "CREATE OR REPLACE TABLE {}.ours"):
        with pytest.raises(Exception, match="stop"):
            session.sql(f"{statement.format(namespace)} USING iceberg {failing}")
    assert rows_of(session, f"SELECT * FROM {namespace}.ours") == [[1]]
    for replacing in ("CREATE OR REPLACE", "REPLACE"):
        refused(session, f"{replacing} TABLE {namespace}.ours USING noop", "cannot replace it")
        refused(
            session,
            f"{replacing} TABLE {namespace}.ours USING parquet AS SELECT 2 AS id",
            "REPLACE",
        )
    assert rows_of(session, f"SELECT * FROM {namespace}.ours") == [[1]]
    session.sql(f"CREATE OR REPLACE TABLE {namespace}.empty USING noop")
    session.sql(f"REPLACE TABLE {namespace}.empty USING noop")
    refused(session, f"REPLACE TABLE {namespace}.nothing USING noop", "NOT_FOUND")
    with pytest.raises(Exception, match="noop"):
        session.sql(f"CREATE TABLE {namespace}.half USING noop AS SELECT 1 AS id")
    names = [row[1] for row in rows_of(session, f"SHOW TABLES IN {namespace}")]
    assert names == ["empty", "ours"]


def test_another_metastore_than_sparks_own_is_refused(session_of):
    session = session_of(uri="thrift://elsewhere:9083")
    for table in ("default.t", "default.t2"):
        refused(
            session,
            f"SELECT * FROM {table}",
            "spark_catalog is on the metastore thrift://elsewhere:9083, Spark's own Hive support on",
        )


@pytest.mark.full("frames take the way of statements")
def test_data_frames_go_where_their_format_says(session_of, namespace, catalog):
    session = session_of(**{"table_default.write.target-file-size-bytes": "1000000"})
    frame = session.range(3)
    frame.write.format("iceberg").saveAsTable(f"{namespace}.ours")
    frame.write.saveAsTable(f"{namespace}.plain")
    frame.writeTo(f"{namespace}.ours2").using("icecomb").tableProperty("a", "b").create()
    frame.writeTo(f"{namespace}.plain2").create()
    frame.writeTo(f"{namespace}.ours").append()
    frame.write.insertInto(f"{namespace}.plain")
    assert catalog.list_tables(namespace) == [(namespace, "ours"), (namespace, "ours2")]
    assert session.table(f"{namespace}.ours").count() == 6
    assert session.read.format("iceberg").load(f"{namespace}.ours").count() == 6
    assert session.table(f"{namespace}.plain").count() == 6
    properties = catalog.load_table(f"{namespace}.ours2").properties
    assert properties["a"] == "b"
    assert properties["write.target-file-size-bytes"] == "1000000"
    assert {table.name for table in session.catalog.listTables(namespace)} == {
        *("ours", "ours2", "plain", "plain2"),
    }


def test_columns_of_a_query_stay_required_where_the_catalog_says_so(session_of, namespace, catalog):
    required = session_of(use_nullable_query_schema="false", default_namespace="elsewhere")
    # as in Iceberg's session catalog, which leaves the current database to Spark
    assert rows_of(required, "SELECT current_database()") == [["default"]]
    for session, table in ((session_of(), "nullable"), (required, "required")):
        session.sql(f"CREATE TABLE {namespace}.{table} USING iceberg AS SELECT 1 AS id")
    fields = [
        catalog.load_table(f"{namespace}.{name}").schema().fields[0]
        for name in ("nullable", "required")
    ]
    assert [field.required for field in fields] == [False, True]
