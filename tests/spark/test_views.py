"""Views in Spark SQL, and those that Iceberg Java makes in its Spark, by both.

Spark 4.3 has statements for them itself, on 3.5 and 4.1 our extension brings them.
"""

from __future__ import annotations

import itertools

import pytest
from pyspark.errors import PySparkException

from icecomb.format.errors import NoSuchViewError
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import LongType, NestedField, StringType
from tests.rings import sampled

NUMBERS = itertools.count(1)
REFUSED = (PySparkException, AssertionError)  # the second is that of a Spark in another process


@pytest.fixture(scope="module", params=sampled(["4.3", "3.5", "4.1"], keep=1))
def run(request, sql_on):
    """Answers a statement."""
    return sql_on(request.param)


@pytest.fixture(scope="module")
def db(run):
    """A namespace of this Spark, with a table `t`."""
    name = f"view_tests_{next(NUMBERS)}"
    run(f"CREATE NAMESPACE lake.{name}")
    run(f"CREATE TABLE lake.{name}.t (id bigint, k string)")
    run(f"INSERT INTO lake.{name}.t VALUES (1, 'a'), (2, 'b')")
    return name


def test_a_view_is_made_shown_described_changed_renamed_and_dropped(run, db, catalog):
    run(
        f"CREATE VIEW lake.{db}.v (n COMMENT 'the number', kind) COMMENT 'all' "
        f"TBLPROPERTIES ('a' = 'b') AS SELECT id, upper(k) FROM lake.{db}.t"
    )
    assert run(f"SELECT * FROM lake.{db}.v ORDER BY n") == [[1, "A"], [2, "B"]]
    assert run(f"SHOW COLUMNS IN lake.{db}.v") == [["n"], ["kind"]]
    assert [db, "v", False] in run(f"SHOW VIEWS IN lake.{db}")
    assert ["n", "bigint", "the number"] in run(f"DESCRIBE lake.{db}.v")
    view = catalog.load_view(f"{db}.v")
    assert view.current_version().queries == {"spark": f"SELECT id, upper(k) FROM lake.{db}.t"}
    assert view.properties["comment"] == "all"
    assert view.properties["spark.query-column-names"] == "id,upper(k)"
    assert view.schema().find_field("n").doc == "the number"
    [[shown]] = run(f"SHOW CREATE TABLE lake.{db}.v")
    run(f"ALTER VIEW lake.{db}.v SET TBLPROPERTIES ('a' = 'c', 'd' = 'e')")
    run(f"ALTER VIEW lake.{db}.v UNSET TBLPROPERTIES ('d')")
    properties = dict(run(f"SHOW TBLPROPERTIES lake.{db}.v"))
    assert properties["a"] == "c"
    assert "d" not in properties
    assert len(view.refresh().versions()) == 1  # the query is as it was
    run(f"ALTER VIEW lake.{db}.v RENAME TO {db}.w")
    with pytest.raises(NoSuchViewError):
        catalog.load_view(f"{db}.v")
    assert run(f"SELECT max(n) FROM lake.{db}.w") == [[2]]
    run(shown)  # what SHOW CREATE TABLE says can be run
    assert run(f"SELECT * FROM lake.{db}.v ORDER BY n") == [[1, "A"], [2, "B"]]
    run(f"DROP VIEW lake.{db}.v")
    run(f"DROP VIEW lake.{db}.w")
    run(f"DROP VIEW IF EXISTS lake.{db}.w")
    with pytest.raises(REFUSED, match=r"VIEW_NOT_FOUND|cannot be found"):
        run(f"DROP VIEW lake.{db}.w")
    with pytest.raises(REFUSED, match="TABLE_OR_VIEW_NOT_FOUND"):
        run(f"SELECT * FROM lake.{db}.w")


def has_statements_itself(run):
    """Whether Spark carries the statements about views of catalogs out itself, in its own way."""
    return not run("SELECT version()")[0][0].startswith(("3.5", "4.1"))


def test_what_follows_from_a_view_is_shown_and_neither_set_nor_unset(run, db, catalog):
    """As Iceberg's SparkView.RESERVED_PROPERTIES; the first two are refused by Spark's parser."""
    run(f"CREATE VIEW lake.{db}.p TBLPROPERTIES ('a' = 'b') AS SELECT id FROM lake.{db}.t")
    view = catalog.load_view(f"{db}.p")
    before = dict(view.properties)
    shown = dict(run(f"SHOW TBLPROPERTIES lake.{db}.p"))
    if has_statements_itself(run):
        assert shown == {"a": "b", "format-version": "1"}
    else:
        there = {"provider": "iceberg", "location": view.location(), "format-version": "1"}
        assert shown == {"a": "b", **there}
        assert run(f"SHOW TBLPROPERTIES lake.{db}.p (provider)") == [["provider", "iceberg"]]
    for name in ("provider", "location"):
        with pytest.raises(REFUSED, match=f"{name} is a reserved table property"):
            run(f"ALTER VIEW lake.{db}.p SET TBLPROPERTIES ('{name}' = 'x')")
        with pytest.raises(REFUSED, match=f"{name} is a reserved table property"):
            run(f"ALTER VIEW lake.{db}.p UNSET TBLPROPERTIES ('{name}')")
    for name in ("format-version", "spark.query-column-names", "view.sqlConfig.spark.sql.x"):
        with pytest.raises(REFUSED, match=f"Cannot set reserved property: '{name}'"):
            run(f"ALTER VIEW lake.{db}.p SET TBLPROPERTIES ('{name}' = '9')")
    with pytest.raises(REFUSED, match="Cannot unset reserved property: 'format-version'"):
        run(f"ALTER VIEW lake.{db}.p UNSET TBLPROPERTIES ('format-version')")
    assert view.refresh().properties == before
    run(f"ALTER VIEW lake.{db}.p SET TBLPROPERTIES ('comment' = 'all of them', 'a' = 'c')")
    assert view.refresh().properties == {**before, "comment": "all of them", "a": "c"}
    run(f"ALTER VIEW lake.{db}.p UNSET TBLPROPERTIES IF EXISTS ('unknown')")
    assert run(f"SELECT max(id) FROM lake.{db}.p") == [[2]]
    run(f"DROP VIEW lake.{db}.p")


def test_unsetting_a_property_that_is_not_there_is_told(run, db):
    run(f"CREATE VIEW lake.{db}.u AS SELECT id FROM lake.{db}.t")
    if not has_statements_itself(run):
        assert run(f"DESCRIBE lake.{db}.u") == [["id", "bigint", ""]]  # as Iceberg says it
    unset = f"ALTER VIEW lake.{db}.u UNSET TBLPROPERTIES ('unknown')"
    if has_statements_itself(run):
        run(unset)  # Spark asks for the other properties only
    else:
        with pytest.raises(REFUSED, match="Cannot remove property that is not set: 'unknown'"):
            run(unset)
    run(f"DROP VIEW lake.{db}.u")


def test_temporary_views_are_listed_beside_those_of_a_catalog(run, db):
    run(f"CREATE VIEW lake.{db}.listed AS SELECT id FROM lake.{db}.t")
    run("CREATE TEMPORARY VIEW of_session AS SELECT 1 AS x")
    run("CREATE GLOBAL TEMPORARY VIEW of_all AS SELECT 1 AS x")
    run(f"USE lake.{db}")
    temporary = ["", "of_session", True]
    try:
        found = run(f"SHOW VIEWS IN lake.{db}")
        assert [db, "listed", False] in found
        assert run("SHOW VIEWS LIKE 'li*'") == [[db, "listed", False]]
        if has_statements_itself(run):
            return  # Spark lists those of the catalog only
        assert temporary in found
        assert run("SHOW VIEWS LIKE 'of_*'") == [temporary]
        found = run("SHOW VIEWS IN global_temp")
        assert ["global_temp", "of_all", True] in found
        assert temporary in found
        assert [db, "listed", False] not in found
    finally:
        run("USE spark_catalog.default")
        run("DROP VIEW of_session")
        run("DROP VIEW global_temp.of_all")
        run(f"DROP VIEW lake.{db}.listed")


def test_a_view_is_replaced_and_keeps_its_identity(run, db, catalog):
    run(f"CREATE OR REPLACE VIEW lake.{db}.r AS SELECT id FROM lake.{db}.t")
    before = catalog.load_view(f"{db}.r")
    run(f"CREATE OR REPLACE VIEW lake.{db}.r AS SELECT k, id + 1 AS more FROM lake.{db}.t")
    after = catalog.load_view(f"{db}.r")
    assert run(f"SELECT * FROM lake.{db}.r ORDER BY more") == [["a", 2], ["b", 3]]
    assert after.metadata.view_uuid == before.metadata.view_uuid
    assert len(after.versions()) == 2
    run(f"CREATE VIEW IF NOT EXISTS lake.{db}.r AS SELECT 1 AS one")
    assert len(catalog.load_view(f"{db}.r").versions()) == 2
    run(f"ALTER VIEW lake.{db}.r AS SELECT 7 AS seven")
    assert run(f"SELECT * FROM lake.{db}.r") == [[7]]


def test_names_without_a_catalog_are_looked_up_where_the_view_was_made(run, db):
    run(f"USE lake.{db}")
    try:
        run("CREATE VIEW here AS SELECT count(*) AS n FROM t")
    finally:
        run("USE spark_catalog.default")
    assert run(f"SELECT n FROM lake.{db}.here") == [[2]]


def test_a_view_reads_a_version_of_a_table(run, db):
    run(f"CREATE TABLE lake.{db}.h AS SELECT 1 AS id")
    [[first]] = run(f"SELECT id FROM lake.{db}.h")
    run(f"ALTER TABLE lake.{db}.h CREATE TAG old")
    run(f"INSERT INTO lake.{db}.h VALUES (2)")
    run(f"CREATE VIEW lake.{db}.past AS SELECT * FROM lake.{db}.h VERSION AS OF 'old'")
    assert run(f"SELECT * FROM lake.{db}.past") == [[first]]


def test_what_is_taken_or_missing_is_refused_by_its_kind(run, db):
    run(f"CREATE OR REPLACE VIEW lake.{db}.taken AS SELECT 1 AS one")
    for statement in (
        f"CREATE VIEW lake.{db}.taken AS SELECT 2 AS two",
        f"CREATE VIEW lake.{db}.t AS SELECT 2 AS two",
        f"CREATE TABLE lake.{db}.taken (id bigint)",
        f"DROP TABLE lake.{db}.taken",
        f"DROP VIEW lake.{db}.t",
        f"INSERT INTO lake.{db}.taken VALUES (1)",
        f"ALTER VIEW lake.{db}.t RENAME TO {db}.u",
        f"ALTER VIEW lake.{db}.taken RENAME TO {db}.t",
        f"CREATE VIEW lake.{db}.v AS SELECT 1 AS `a,b`",
        f"CREATE VIEW lake.{db}.v AS SELECT gone FROM lake.{db}.t",
        "CREATE VIEW lake.no_such_namespace.v AS SELECT 1 AS one",
    ):
        with pytest.raises(REFUSED):
            run(statement)
    assert run(f"SELECT * FROM lake.{db}.taken") == [[1]]
    assert run(f"SELECT count(*) FROM lake.{db}.t") == [[2]]


def test_a_view_reads_views_and_is_not_led_astray_by_the_session(run, db):
    run(f"CREATE VIEW lake.{db}.first AS SELECT id, k FROM lake.{db}.t")
    run(f"USE lake.{db}")
    try:
        run("CREATE VIEW second AS WITH x AS (SELECT id * 10 AS ten FROM first) SELECT * FROM x")
    finally:
        run("USE spark_catalog.default")
    run("CREATE TEMPORARY VIEW first AS SELECT 'mine' AS id")
    run("CREATE TEMPORARY VIEW x AS SELECT 'mine' AS ten")
    try:
        assert run(f"SELECT s.ten FROM lake.{db}.second s ORDER BY 1") == [[10], [20]]
        joined = f"SELECT f.id FROM lake.{db}.first f JOIN first ON true"
        assert run(
            f"{joined} WHERE f.id IN (SELECT ten / 10 FROM lake.{db}.second) ORDER BY 1"
        ) == [
            [1],
            [2],
        ]
    finally:
        run("DROP VIEW first")
        run("DROP VIEW x")
    # the columns are those it was made with, by their names
    run(f"CREATE TABLE lake.{db}.wide (a int, b string)")
    run(f"INSERT INTO lake.{db}.wide VALUES (1, 'b')")
    run(f"CREATE VIEW lake.{db}.all_of AS SELECT * FROM lake.{db}.wide")
    run(f"ALTER TABLE lake.{db}.wide ADD COLUMN c string FIRST")
    assert run(f"SELECT * FROM lake.{db}.all_of") == [[1, "b"]]
    run(f"ALTER TABLE lake.{db}.wide DROP COLUMN b")
    with pytest.raises(REFUSED, match=r"INCOMPATIBLE_VIEW_SCHEMA_CHANGE|UNRESOLVED_COLUMN"):
        run(f"SELECT * FROM lake.{db}.all_of")


def test_a_query_that_others_could_not_read_is_refused(run, db):
    run("CREATE TEMPORARY VIEW mine AS SELECT 1 AS one")
    run(f"CREATE VIEW lake.{db}.base AS SELECT 1 AS one")
    run(f"CREATE VIEW lake.{db}.above AS SELECT * FROM lake.{db}.base")
    try:
        for query, message in (
            ("SELECT * FROM mine", "temporary view: mine"),
            (f"SELECT * FROM lake.{db}.t WHERE id IN (SELECT one FROM mine)", "temporary view"),
            (f"SELECT * FROM lake.{db}.base", "RECURSIVE_VIEW"),
            (f"SELECT * FROM lake.{db}.above", "RECURSIVE_VIEW"),
            (f"SELECT (SELECT max(one) FROM lake.{db}.above) AS one", "RECURSIVE_VIEW"),
        ):
            for statement in ("CREATE OR REPLACE VIEW {} AS {}", "ALTER VIEW {} AS {}"):
                with pytest.raises(REFUSED, match=message):
                    run(statement.format(f"lake.{db}.base", query))
    finally:
        run("DROP VIEW mine")
    assert run(f"SELECT * FROM lake.{db}.above") == [[1]]
    for columns, message in (
        ("(a, b)", r"NOT_ENOUGH_DATA_COLUMNS\] Cannot create view `lake`.`.*`.`few`"),
        ("(a)", "TOO_MANY_DATA_COLUMNS"),
        ("", "COLUMN_ALREADY_EXISTS"),
    ):
        query = "SELECT 1 AS one" if columns == "(a, b)" else "SELECT 1 AS one, 2 AS one"
        with pytest.raises(REFUSED, match=message):
            run(f"CREATE VIEW lake.{db}.few {columns} AS {query}")
    run(f"EXPLAIN CREATE VIEW lake.{db}.few AS SELECT 1 AS one")
    with pytest.raises(REFUSED, match="TABLE_OR_VIEW_NOT_FOUND"):
        run(f"SELECT * FROM lake.{db}.few")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT REFLECT('java.lang.System', 'getenv', 'HOME') AS a",
        "SELECT `java_method`('java.lang.System', 'getenv', 'HOME') AS a",
        "SELECT system.builtin.reflect('java.lang.System', 'getenv', 'HOME') AS a",
        "SELECT IDENTIFIER('ref' || 'lect')('java.lang.System', 'getenv', 'HOME') AS a",
        "WITH c AS (SELECT upper(reflect('java.lang.System', 'getenv', 'HOME')) a) SELECT a FROM c",
        "SELECT (SELECT try_reflect('java.lang.System', 'getenv', 'HOME')) AS a",
        "SELECT TRANSFORM(1) USING 'cat' AS (a string)",
    ],
)
def test_a_query_that_runs_other_code_is_refused(run, db, catalog, query):
    """Whoever writes to the view's folder can exchange it, and it runs as the reader."""
    if ("try_reflect" in query or "builtin" in query) and not has_statements_itself(run):
        pytest.skip("this Spark has no such name of a function")
    name = f"code{next(NUMBERS)}"
    with pytest.raises(REFUSED, match="could have put there"):
        run(f"CREATE VIEW lake.{db}.{name} AS {query}")
    schema = Schema((NestedField(1, "a", StringType()),))
    catalog.create_view(f"{db}.{name}", schema, {"spark": query})
    for statement in (
        f"SELECT * FROM lake.{db}.{name}",
        f"SELECT count(*) FROM lake.{db}.t WHERE k IN (SELECT a FROM lake.{db}.{name})",
        f"CREATE TABLE lake.{db}.{name}_of AS SELECT a FROM lake.{db}.{name}",
    ):
        with pytest.raises(REFUSED, match="could have put there"):
            run(statement)
    assert len(run(query)) == 1


def test_a_query_names_no_setting_and_no_variable_of_the_environment(run, db, catalog):
    """In a path of another host they would be sent there: `text.`webhdfs://host/${env:KEY}``."""
    name, text = f"variables{next(NUMBERS)}", "${env:HOME} ${system:user.name} ${spark.app.name}"
    catalog.create_view(
        f"{db}.{name}",
        Schema((NestedField(1, "a", StringType()),)),
        {"spark": f"SELECT '{text}' AS a"},
        properties={"view.sqlConfig.spark.sql.variable.substitute": "true"},
    )
    assert run(f"SELECT a FROM lake.{db}.{name}") == [[text]]
    run(f"CREATE VIEW lake.{db}.{name}_of AS SELECT a, '${{system:file.separator}}' AS b "
        f"FROM lake.{db}.{name}")  # fmt: skip
    assert run(f"SELECT a, b FROM lake.{db}.{name}_of") == [[text, "/"]]
    run(f"ALTER VIEW lake.{db}.{name}_of SET TBLPROPERTIES ('c' = 'd')")
    properties = catalog.load_view(f"{db}.{name}_of").properties
    assert "view.sqlConfig.spark.sql.variable.substitute" not in properties


def test_a_view_brings_no_catalog_of_its_own(run, db, catalog):
    """A catalog's class, jars and databases are the reader's settings, never a file's."""
    name = f"planted{next(NUMBERS)}"
    schema = Schema((NestedField(1, "a", StringType()),))
    settings = {
        "catalog.evil": "org.evil.Catalog",
        "defaultCatalog": "evil",
        "ansi.enabled": "true",
    }
    properties = {f"view.sqlConfig.spark.sql.{key}": value for key, value in settings.items()}
    catalog.create_view(
        f"{db}.{name}", schema, {"spark": "SELECT a FROM evil.b.c"}, properties=properties
    )
    with pytest.raises(REFUSED, match="TABLE_OR_VIEW_NOT_FOUND"):
        run(f"SELECT * FROM lake.{db}.{name}")
    catalog.create_view(
        f"{db}.{name}_ansi",
        schema,
        {"spark": "SELECT CAST(CAST('x' AS INT) AS STRING) AS a"},
        properties=properties,
    )
    with pytest.raises(REFUSED, match="CAST_INVALID_INPUT"):
        run(f"SELECT * FROM lake.{db}.{name}_ansi")


def test_views_of_other_catalogs_are_left_to_spark(run, db):
    run(f"CREATE VIEW spark_catalog.default.{db}_hive AS SELECT max(id) AS top FROM lake.{db}.t")
    assert run(f"SELECT * FROM spark_catalog.default.{db}_hive") == [[2]]
    run(f"ALTER VIEW spark_catalog.default.{db}_hive AS SELECT 5 AS five")
    assert run(f"SELECT * FROM spark_catalog.default.{db}_hive") == [[5]]
    run(f"DROP VIEW spark_catalog.default.{db}_hive")


def test_a_view_in_another_dialect_is_refused_with_its_name(run, db, catalog):
    schema = Schema((NestedField(1, "id", LongType()),))
    catalog.create_view(f"{db}.trinos", schema, {"trino": 'SELECT "id" FROM t'})
    with pytest.raises(REFUSED, match="no query in the dialect spark, only in: trino"):
        run(f"SELECT * FROM lake.{db}.trinos")
    assert [db, "trinos", False] in run(f"SHOW VIEWS IN lake.{db}")
    catalog.create_view(
        f"{db}.both", schema, {"trino": "SELECT 1", "Spark": f"SELECT id FROM lake.{db}.t"}
    )
    assert run(f"SELECT max(id) FROM lake.{db}.both") == [[2]]
    run(f"ALTER VIEW lake.{db}.both SET TBLPROPERTIES ('a' = 'b')")
    assert set(catalog.load_view(f"{db}.both").current_version().queries) == {"trino", "Spark"}
    with pytest.raises(REFUSED, match=r"replace\.drop-dialect\.allowed"):
        run(f"CREATE OR REPLACE VIEW lake.{db}.both AS SELECT 2L AS id")


def test_iceberg_java_reads_our_views_and_we_read_its(run, db, iceberg_java):
    run(f"USE lake.{db}")
    try:
        run("CREATE OR REPLACE VIEW shared (n, kind COMMENT 'upper') AS SELECT id, upper(k) FROM t")
    finally:
        run("USE spark_catalog.default")
    expected = [[1, "A"], [2, "B"]]
    assert iceberg_java.sql(f"SELECT * FROM ice.{db}.shared ORDER BY n") == expected
    assert ["kind", "string", "upper"] in iceberg_java.sql(f"DESCRIBE ice.{db}.shared")
    iceberg_java.sql(f"USE ice.{db}")
    try:
        iceberg_java.sql(
            "CREATE VIEW theirs (n COMMENT 'number', kind) COMMENT 'of java' "
            "TBLPROPERTIES ('a' = 'b') AS SELECT id, upper(k) FROM t"
        )
    finally:
        iceberg_java.sql("USE spark_catalog.default")
    assert run(f"SELECT * FROM lake.{db}.theirs ORDER BY n") == expected
    assert ["n", "bigint", "number"] in run(f"DESCRIBE lake.{db}.theirs")
    run(f"ALTER VIEW lake.{db}.theirs SET TBLPROPERTIES ('a' = 'c')")
    assert dict(iceberg_java.sql(f"SHOW TBLPROPERTIES ice.{db}.theirs"))["a"] == "c"
    run(f"CREATE OR REPLACE VIEW lake.{db}.theirs AS SELECT 5 AS five")
    assert iceberg_java.sql(f"SELECT * FROM ice.{db}.theirs") == [[5]]
    iceberg_java.sql(f"ALTER VIEW ice.{db}.theirs RENAME TO ice.{db}.renamed")
    assert run(f"SELECT * FROM lake.{db}.renamed") == [[5]]
