"""Views in Spark SQL, and those that Iceberg Java makes in its Spark, by both."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException

from icecomb.format.errors import NoSuchViewError
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import LongType, NestedField

DB = "lake.view_tests"


@pytest.fixture(scope="module", autouse=True)
def namespace(spark):
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {DB}")
    spark.sql(f"CREATE TABLE {DB}.t (id bigint, k string)")
    spark.sql(f"INSERT INTO {DB}.t VALUES (1, 'a'), (2, 'b')")


@pytest.fixture
def run(spark):
    return lambda text: [list(row) for row in spark.sql(text).collect()]


def test_a_view_is_made_shown_described_changed_renamed_and_dropped(run, spark, catalog):
    run(
        f"CREATE VIEW {DB}.v (n COMMENT 'the number', kind) COMMENT 'all' "
        f"TBLPROPERTIES ('a' = 'b') AS SELECT id, upper(k) FROM {DB}.t"
    )
    assert run(f"SELECT * FROM {DB}.v ORDER BY n") == [[1, "A"], [2, "B"]]
    assert spark.table(f"{DB}.v").columns == ["n", "kind"]
    assert ["view_tests", "v", False] in run(f"SHOW VIEWS IN {DB}")
    assert ["n", "bigint", "the number"] in run(f"DESCRIBE {DB}.v")
    view = catalog.load_view("view_tests.v")
    assert view.current_version().queries == {"spark": f"SELECT id, upper(k) FROM {DB}.t"}
    assert view.properties["comment"] == "all"
    assert view.properties["spark.query-column-names"] == "id,upper(k)"
    assert view.schema().find_field("n").doc == "the number"
    [[shown]] = run(f"SHOW CREATE TABLE {DB}.v")
    run(f"ALTER VIEW {DB}.v SET TBLPROPERTIES ('a' = 'c', 'd' = 'e')")
    run(f"ALTER VIEW {DB}.v UNSET TBLPROPERTIES ('d')")
    properties = dict(run(f"SHOW TBLPROPERTIES {DB}.v"))
    assert properties["a"] == "c"
    assert "d" not in properties
    assert len(view.refresh().versions()) == 1  # the query is as it was
    run(f"ALTER VIEW {DB}.v RENAME TO view_tests.w")
    with pytest.raises(NoSuchViewError):
        catalog.load_view("view_tests.v")
    assert run(f"SELECT max(n) FROM {DB}.w") == [[2]]
    run(shown)  # what SHOW CREATE TABLE says can be run
    assert run(f"SELECT * FROM {DB}.v ORDER BY n") == [[1, "A"], [2, "B"]]
    run(f"DROP VIEW {DB}.v")
    run(f"DROP VIEW {DB}.w")
    run(f"DROP VIEW IF EXISTS {DB}.w")
    with pytest.raises(PySparkException, match=r"VIEW_NOT_FOUND|cannot be found"):
        run(f"DROP VIEW {DB}.w")
    with pytest.raises(PySparkException, match="TABLE_OR_VIEW_NOT_FOUND"):
        run(f"SELECT * FROM {DB}.w")


def test_a_view_is_replaced_and_keeps_its_identity(run, catalog):
    run(f"CREATE OR REPLACE VIEW {DB}.r AS SELECT id FROM {DB}.t")
    before = catalog.load_view("view_tests.r")
    run(f"CREATE OR REPLACE VIEW {DB}.r AS SELECT k, id + 1 AS more FROM {DB}.t")
    after = catalog.load_view("view_tests.r")
    assert run(f"SELECT * FROM {DB}.r ORDER BY more") == [["a", 2], ["b", 3]]
    assert after.metadata.view_uuid == before.metadata.view_uuid
    assert len(after.versions()) == 2
    run(f"CREATE VIEW IF NOT EXISTS {DB}.r AS SELECT 1 AS one")
    assert len(catalog.load_view("view_tests.r").versions()) == 2
    run(f"ALTER VIEW {DB}.r AS SELECT 7 AS seven")
    assert run(f"SELECT * FROM {DB}.r") == [[7]]


def test_names_without_a_catalog_are_looked_up_where_the_view_was_made(run, spark):
    run(f"USE {DB}")
    try:
        run("CREATE VIEW here AS SELECT count(*) AS n FROM t")
    finally:
        run("USE spark_catalog.default")
    assert run(f"SELECT n FROM {DB}.here") == [[2]]


def test_a_view_reads_a_version_of_a_table(run):
    run(f"CREATE TABLE {DB}.h AS SELECT 1 AS id")
    [[first]] = run(f"SELECT id FROM {DB}.h")
    run(f"ALTER TABLE {DB}.h CREATE TAG old")
    run(f"INSERT INTO {DB}.h VALUES (2)")
    run(f"CREATE VIEW {DB}.past AS SELECT * FROM {DB}.h VERSION AS OF 'old'")
    assert run(f"SELECT * FROM {DB}.past") == [[first]]


def test_what_is_taken_or_missing_is_refused_by_its_kind(run):
    run(f"CREATE OR REPLACE VIEW {DB}.taken AS SELECT 1 AS one")
    for statement in (
        f"CREATE VIEW {DB}.taken AS SELECT 2 AS two",
        f"CREATE VIEW {DB}.t AS SELECT 2 AS two",
        f"CREATE TABLE {DB}.taken (id bigint)",
        f"DROP TABLE {DB}.taken",
        f"DROP VIEW {DB}.t",
        f"INSERT INTO {DB}.taken VALUES (1)",
        f"ALTER VIEW {DB}.t RENAME TO view_tests.u",
        f"ALTER VIEW {DB}.taken RENAME TO view_tests.t",
        f"CREATE VIEW {DB}.v AS SELECT 1 AS `a,b`",
        f"CREATE VIEW {DB}.v AS SELECT gone FROM {DB}.t",
        "CREATE VIEW lake.no_such_namespace.v AS SELECT 1 AS one",
    ):
        with pytest.raises(PySparkException):
            run(statement)
    assert run(f"SELECT * FROM {DB}.taken") == [[1]]
    assert run(f"SELECT count(*) FROM {DB}.t") == [[2]]


def test_a_view_in_another_dialect_is_refused_with_its_name(run, catalog):
    schema = Schema((NestedField(1, "id", LongType()),))
    catalog.create_view("view_tests.trinos", schema, {"trino": 'SELECT "id" FROM t'})
    with pytest.raises(PySparkException, match="no query in the dialect spark, only in: trino"):
        run(f"SELECT * FROM {DB}.trinos")
    assert ["view_tests", "trinos", False] in run(f"SHOW VIEWS IN {DB}")
    catalog.create_view(
        "view_tests.both", schema, {"trino": "SELECT 1", "Spark": f"SELECT id FROM {DB}.t"}
    )
    assert run(f"SELECT max(id) FROM {DB}.both") == [[2]]
    run(f"ALTER VIEW {DB}.both SET TBLPROPERTIES ('a' = 'b')")
    assert set(catalog.load_view("view_tests.both").current_version().queries) == {"trino", "Spark"}
    with pytest.raises(PySparkException, match=r"replace\.drop-dialect\.allowed"):
        run(f"CREATE OR REPLACE VIEW {DB}.both AS SELECT 2L AS id")


def test_iceberg_java_reads_our_views_and_we_read_its(run, iceberg_java):
    run(f"USE {DB}")
    try:
        run("CREATE OR REPLACE VIEW shared (n, kind COMMENT 'upper') AS SELECT id, upper(k) FROM t")
    finally:
        run("USE spark_catalog.default")
    expected = [[1, "A"], [2, "B"]]
    assert iceberg_java.sql("SELECT * FROM ice.view_tests.shared ORDER BY n") == expected
    assert ["kind", "string", "upper"] in iceberg_java.sql("DESCRIBE ice.view_tests.shared")
    iceberg_java.sql("USE ice.view_tests")
    try:
        iceberg_java.sql(
            "CREATE VIEW theirs (n COMMENT 'number', kind) COMMENT 'of java' "
            "TBLPROPERTIES ('a' = 'b') AS SELECT id, upper(k) FROM t"
        )
    finally:
        iceberg_java.sql("USE spark_catalog.default")
    assert run(f"SELECT * FROM {DB}.theirs ORDER BY n") == expected
    assert ["n", "bigint", "number"] in run(f"DESCRIBE {DB}.theirs")
    run(f"ALTER VIEW {DB}.theirs SET TBLPROPERTIES ('a' = 'c')")
    assert dict(iceberg_java.sql("SHOW TBLPROPERTIES ice.view_tests.theirs"))["a"] == "c"
    run(f"CREATE OR REPLACE VIEW {DB}.theirs AS SELECT 5 AS five")
    assert iceberg_java.sql("SELECT * FROM ice.view_tests.theirs") == [[5]]
    iceberg_java.sql("ALTER VIEW ice.view_tests.theirs RENAME TO ice.view_tests.renamed")
    assert run(f"SELECT * FROM {DB}.renamed") == [[5]]
