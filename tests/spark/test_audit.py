"""Write, audit, publish in Spark: spark.wap.id and spark.wap.branch, as Iceberg Java has them."""

from __future__ import annotations

import itertools
from contextlib import contextmanager

import pytest
from pyspark.errors import PySparkException

from icecomb.format.errors import ValidationError
from tests.rings import sampled
from tests.spark.second_reader import READERS, reader

pytestmark = pytest.mark.usefixtures("own_namespace")

NAMESPACE = "audit_tests"
NUMBERS = itertools.count(1)
BEFORE = [[1, "a"], [2, "a"], [3, "b"]]
DYNAMIC = "spark.sql.sources.partitionOverwriteMode"
STATEMENTS = {
    "insert": ("INSERT INTO {t} VALUES (9, 'z')", [*BEFORE, [9, "z"]]),
    "overwrite": ("INSERT OVERWRITE {t} VALUES (9, 'z')", [[9, "z"]]),
    "overwrite a partition": (
        "INSERT OVERWRITE {t} PARTITION (k = 'a') VALUES (9)",
        [[3, "b"], [9, "a"]],
    ),
    "dynamic overwrite": ("INSERT OVERWRITE {t} VALUES (9, 'a')", [[3, "b"], [9, "a"]]),
    "delete a partition": ("DELETE FROM {t} WHERE k = 'a'", [[3, "b"]]),
    "delete rows": ("DELETE FROM {t} WHERE id = 1", BEFORE[1:]),
    "delete with a query": (
        "DELETE FROM {t} WHERE id IN (SELECT explode(array(1, 3)))",
        [[2, "a"]],
    ),
    "truncate": ("TRUNCATE TABLE {t}", []),
    "update": ("UPDATE {t} SET id = id + 10 WHERE k = 'a'", [[3, "b"], [11, "a"], [12, "a"]]),
    "merge": (
        (
            "MERGE INTO {t} t USING (SELECT explode(array(1L, 9L)) AS n) s ON t.id = s.n "
            "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, k) VALUES (s.n, 'z')"
        ),
        [*BEFORE[1:], [9, "z"]],
    ),
}


@pytest.fixture(params=READERS)
def ask(request):
    """Answers a query about tables of `{c}` by another implementation."""
    answer = reader(request)
    return lambda query: answer(query.format(c="ice"))


@pytest.fixture
def name(spark):
    table = f"{NAMESPACE}.t{next(NUMBERS)}"
    yield table
    spark.sql(f"DROP TABLE IF EXISTS lake.{table}")


@pytest.fixture
def table(spark, name):
    """Three rows in two partitions of an audited table."""
    return filled(spark, name)


def filled(spark, name, enabled="true"):
    spark.sql(
        f"CREATE TABLE lake.{name} (id BIGINT, k STRING) USING iceberg PARTITIONED BY (k) "
        f"TBLPROPERTIES ('write.wap.enabled' = '{enabled}')"
    )
    spark.sql(f"INSERT INTO lake.{name} VALUES (1, 'a'), (2, 'a'), (3, 'b')")
    return name


@contextmanager
def settings(spark, **given):
    keys = {"wap_id": "spark.wap.id", "branch": "spark.wap.branch", "dynamic": DYNAMIC}
    for key, value in given.items():
        spark.conf.set(keys[key], value)
    try:
        yield
    finally:
        for key in given:
            spark.conf.unset(keys[key])


def dynamic(kind):
    return {"dynamic": "dynamic"} if kind == "dynamic overwrite" else {}


def found(spark, name):
    return [list(row) for row in spark.sql(f"SELECT * FROM lake.{name} ORDER BY id, k").collect()]


def seen(ask, name, suffix=""):
    return ask(f"SELECT * FROM {{c}}.{name} {suffix} ORDER BY id, k")


def java(iceberg_java, name, suffix=""):
    return iceberg_java.sql(f"SELECT * FROM ice.{name} {suffix} ORDER BY id, k")


def stage(spark, catalog, table, kind):
    """A statement is staged, of which the table shows nothing."""
    with settings(spark, wap_id=kind, **dynamic(kind)):
        spark.sql(STATEMENTS[kind][0].format(t=f"lake.{table}"))
        assert found(spark, table) == BEFORE
    loaded = catalog.load_table(table)
    assert loaded.refs().keys() == {"main"}
    [staged] = [s for s in loaded.snapshots() if s.summary.get("wap.id") == kind]
    assert staged.snapshot_id != loaded.current_snapshot().snapshot_id
    return loaded


@pytest.mark.parametrize("kind", STATEMENTS)
def test_a_statement_with_a_wap_id_is_staged_and_iceberg_java_publishes_it(
    spark, catalog, iceberg_java, table, kind
):
    loaded = stage(spark, catalog, table, kind)
    assert java(iceberg_java, table) == BEFORE
    iceberg_java.sql(f"CALL ice.system.publish_changes('{table}', '{kind}')")
    assert java(iceberg_java, table) == found(spark, table) == sorted(STATEMENTS[kind][1])
    with pytest.raises(ValidationError, match="ancestor already"):
        loaded.refresh().publish_changes(kind)


# an append, an overwrite, and rows that change: the other kinds go to branches
@pytest.mark.parametrize("kind", sampled(["insert", "dynamic overwrite", "update"], keep=1))
def test_a_statement_with_a_wap_id_is_staged_and_published_once(spark, catalog, table, kind):
    loaded = stage(spark, catalog, table, kind)
    spark.sql(f"CALL lake.system.publish_changes('{table}', '{kind}')")
    assert found(spark, table) == sorted(STATEMENTS[kind][1])
    with pytest.raises(ValidationError, match="ancestor already"):
        loaded.refresh().publish_changes(kind)


# what is here in the gate is not what is staged there
ON_BRANCH = {"merge"}


@pytest.mark.parametrize(
    "kind",
    [
        kind
        if kind in ON_BRANCH
        else pytest.param(kind, marks=pytest.mark.full("one of the statements is in the gate"))
        for kind in STATEMENTS
    ],
)
def test_a_statement_with_a_wap_branch_goes_there_and_is_read_there(
    spark, catalog, ask, table, kind
):
    statement, after = STATEMENTS[kind]
    with settings(spark, branch="audit", **dynamic(kind)):
        # the branch is not there yet: main is read
        assert found(spark, table) == BEFORE
        spark.sql(statement.format(t=f"lake.{table}"))
        assert found(spark, table) == sorted(after)
        assert seen(ask, table, "VERSION AS OF 'audit'") == sorted(after)
        # and again, on the branch that is there now
        spark.sql("INSERT INTO {t} VALUES (7, 'a')".format(t=f"lake.{table}"))
        spark.sql(f"DELETE FROM lake.{table} WHERE id = 2")
        spark.sql(f"UPDATE lake.{table} SET k = 'y' WHERE id = 7")
        after = sorted([row for row in after if row[0] != 2] + [[7, "y"]])
        assert found(spark, table) == after
        version = spark.sql(f"SELECT * FROM lake.{table} VERSION AS OF 'main' ORDER BY id")
        assert [list(row) for row in version.collect()] == BEFORE
    assert found(spark, table) == seen(ask, table) == BEFORE
    assert seen(ask, table, "VERSION AS OF 'audit'") == after
    with catalog.load_table(table).manage_snapshots() as manage:
        manage.fast_forward("main", "audit")
    assert seen(ask, table) == found(spark, table) == after


def test_a_write_on_a_branch_is_refused_when_others_contradict_it_on_that_branch(
    spark, catalog, table
):
    with settings(spark, branch="audit"):
        spark.sql(f"INSERT INTO lake.{table} VALUES (4, 'c')")
        # what others did to main is of no concern to the branch
        catalog.load_table(table).delete("id = 1")
        spark.sql(f"UPDATE lake.{table} SET id = 10 WHERE id = 1")
        assert found(spark, table) == [[2, "a"], [3, "b"], [4, "c"], [10, "a"]]
    assert found(spark, table) == BEFORE[1:]


@pytest.mark.full("each setting alone is in the gate")
def test_both_settings_at_once_are_refused_for_writes(spark, table):
    with settings(spark, branch="audit", wap_id="x"):
        for statement, _ in STATEMENTS.values():
            with pytest.raises(PySparkException, match="both WAP ID and branch"):
                spark.sql(statement.format(t=f"lake.{table}"))
        assert found(spark, table) == BEFORE


def test_both_settings_at_once_are_refused_by_iceberg_java_too(iceberg_java, table):
    iceberg_java.sql("SET spark.wap.id = x")
    iceberg_java.sql("SET spark.wap.branch = audit")
    try:
        with pytest.raises(Exception, match="both WAP ID and branch"):
            iceberg_java.sql(f"INSERT INTO ice.{table} VALUES (9, 'z')")
    finally:
        iceberg_java.sql("RESET spark.wap.id")
        iceberg_java.sql("RESET spark.wap.branch")


ALSO = [{}, {"wap_id": "beside"}]
NAMED = [("insert", {}), ("merge", ALSO[1])]


@pytest.mark.parametrize(
    ("kind", "also"), sampled(NAMED, keep=1), ids=["a branch", "both settings"]
)
def test_a_branch_that_is_named_comes_before_that_of_the_setting(spark, catalog, table, kind, also):
    """With spark.wap.id beside it the change is staged, on what the named branch shows."""
    spark.sql(f"ALTER TABLE lake.{table} CREATE BRANCH ours")
    statement, after = STATEMENTS[kind]
    with settings(spark, branch="audit", **also):
        spark.sql(statement.format(t=f"lake.{table}.branch_ours"))
    shown = spark.sql(f"SELECT * FROM lake.{table} VERSION AS OF 'ours' ORDER BY id, k").collect()
    assert [list(row) for row in shown] == (BEFORE if also else sorted(after))
    loaded = catalog.load_table(table)
    assert loaded.refs().keys() == {"main", "ours"}
    staged = [s for s in loaded.snapshots() if s.summary.get("wap.id") == "beside"]
    assert len(staged) == (1 if also else 0)
    assert found(spark, table) == BEFORE


@pytest.mark.parametrize("kind", ["insert", "delete rows", "update", "merge"])
@pytest.mark.parametrize("also", ALSO, ids=["a branch", "both settings"])
def test_a_branch_that_is_named_comes_before_that_of_the_setting_as_in_iceberg_java(
    spark, catalog, iceberg_java, table, kind, also
):
    """With spark.wap.id beside it the change is staged, on what the named branch shows."""
    spark.sql(f"ALTER TABLE lake.{table} CREATE BRANCH ours")
    spark.sql(f"ALTER TABLE lake.{table} CREATE BRANCH theirs")
    statement, after = STATEMENTS[kind]
    with settings(spark, branch="audit", **also):
        spark.sql(statement.format(t=f"lake.{table}.branch_ours"))
    iceberg_java.sql("SET spark.wap.branch = audit")
    iceberg_java.sql("SET spark.wap.id = beside" if also else "RESET spark.wap.id")
    try:
        iceberg_java.sql(statement.format(t=f"ice.{table}.branch_theirs"))
    finally:
        iceberg_java.sql("RESET spark.wap.id")
        iceberg_java.sql("RESET spark.wap.branch")
    shown = {
        branch: java(iceberg_java, table, f"VERSION AS OF '{branch}'")
        for branch in ("ours", "theirs")
    }
    assert shown["ours"] == shown["theirs"] == (BEFORE if also else sorted(after))
    loaded = catalog.load_table(table)
    assert loaded.refs().keys() == {"main", "ours", "theirs"}
    staged = [s for s in loaded.snapshots() if s.summary.get("wap.id") == "beside"]
    assert len(staged) == (2 if also else 0)
    assert found(spark, table) == BEFORE


def test_the_branch_of_the_write_options_comes_before_that_of_the_setting(spark, catalog, table):
    with settings(spark, branch="audit"):
        spark.table(f"lake.{table}").writeTo(f"lake.{table}").option("branch", "other").append()
    assert found(spark, table) == BEFORE
    assert catalog.load_table(table).refs().keys() == {"main", "other"}
    version = spark.sql(f"SELECT * FROM lake.{table} VERSION AS OF 'other' ORDER BY id, k")
    assert [list(row) for row in version.collect()] == sorted([*BEFORE, *BEFORE])


def test_a_setting_that_names_no_branch_is_refused(spark, catalog, table):
    loaded = catalog.load_table(table)
    with loaded.manage_snapshots() as manage:
        manage.create_tag(loaded.current_snapshot().snapshot_id, "kept")
    for setting, said in (
        ({"branch": ""}, "is set, but empty"),
        ({"wap_id": ""}, "is set, but empty"),
        ({"branch": "kept"}, "'kept' is a tag"),
    ):
        with settings(spark, **setting), pytest.raises(PySparkException, match=said):
            spark.sql(f"INSERT INTO lake.{table} VALUES (9, 'z')")
    assert found(spark, table) == BEFORE


@pytest.mark.parametrize("setting", sampled([{"branch": "audit"}, {"wap_id": "x"}], keep=1))
def test_tables_without_the_property_are_written_as_ever(spark, catalog, name, setting):
    filled(spark, name, enabled="false")
    with settings(spark, **setting):
        spark.sql(f"INSERT INTO lake.{name} VALUES (9, 'z')")
        spark.sql(f"DELETE FROM lake.{name} WHERE id = 1")
    assert found(spark, name) == [*BEFORE[1:], [9, "z"]]
    loaded = catalog.load_table(name)
    assert loaded.refs().keys() == {"main"}
    assert "wap.id" not in loaded.current_snapshot().summary


def test_what_iceberg_java_staged_is_published_here_once_and_never_twice(
    spark, catalog, iceberg_java, table
):
    for session, iceberg in ((iceberg_java.sql, "ice"), (spark.sql, "lake")):
        session("SET spark.wap.id = load")
        session(f"INSERT INTO {iceberg}.{table} VALUES (9, '{iceberg}')")
        session("RESET spark.wap.id")
    loaded = catalog.load_table(table)
    theirs, ours = (s.snapshot_id for s in loaded.snapshots() if s.summary.get("wap.id") == "load")
    with pytest.raises(ValidationError, match="2 snapshots were staged"):
        loaded.publish_changes("load")
    spark.sql(f"INSERT INTO lake.{table} VALUES (5, 'e')")
    with loaded.refresh().manage_snapshots() as manage:
        manage.cherry_pick(theirs)
    assert found(spark, table) == [*BEFORE, [5, "e"], [9, "ice"]]
    with pytest.raises(Exception, match=r"[Dd]uplicate request to cherry pick wap id"):
        iceberg_java.sql(f"CALL ice.system.cherrypick_snapshot('{table}', {ours})")
    with pytest.raises(ValidationError, match="'load' was published already"):
        loaded.refresh().manage_snapshots().cherry_pick(ours).commit()
    assert java(iceberg_java, table) == [*BEFORE, [5, "e"], [9, "ice"]]


def test_rows_of_a_new_table_are_staged_with_it(spark, catalog, ask, name):
    with settings(spark, wap_id="first"):
        spark.sql(
            f"CREATE TABLE lake.{name} USING iceberg TBLPROPERTIES ('write.wap.enabled' = 'true') "
            "AS SELECT 1L AS id, 'a' AS k"
        )
        assert found(spark, name) == []
    assert seen(ask, name) == []
    catalog.load_table(name).publish_changes("first")
    assert found(spark, name) == seen(ask, name) == [[1, "a"]]


def test_rows_of_a_replaced_table_are_staged_and_what_was_there_is_gone(spark, catalog, table):
    with settings(spark, wap_id="anew"):
        spark.sql(f"REPLACE TABLE lake.{table} USING iceberg AS SELECT 8L AS id, 'h' AS k")
    assert found(spark, table) == []
    catalog.load_table(table).publish_changes("anew")
    assert found(spark, table) == [[8, "h"]]


def test_a_table_replaced_on_a_branch_has_only_the_new_rows_there(
    spark, catalog, iceberg_java, table
):
    twin = filled(spark, f"{table}_java")
    with settings(spark, branch="audit"):
        for each in (table, twin):
            spark.sql(f"INSERT INTO lake.{each} VALUES (9, 'z')")
        spark.sql(f"REPLACE TABLE lake.{table} USING iceberg AS SELECT 8L AS id, 'h' AS k")
        assert found(spark, table) == [[8, "h"]]
    iceberg_java.sql("SET spark.wap.branch = audit")
    iceberg_java.sql(f"REPLACE TABLE ice.{twin} USING iceberg AS SELECT 8L AS id, 'h' AS k")
    iceberg_java.sql("RESET spark.wap.branch")
    for suffix in ("", "VERSION AS OF 'audit'"):
        ours, theirs = (java(iceberg_java, each, suffix) for each in (table, twin))
        assert ours == theirs
    assert found(spark, table) == []
    catalog.drop_table(twin)


def test_a_table_made_on_a_branch_is_empty_elsewhere(spark, name):
    with settings(spark, branch="audit"):
        spark.sql(
            f"CREATE TABLE lake.{name} USING iceberg TBLPROPERTIES ('write.wap.enabled' = 'true') "
            "AS SELECT 1L AS id, 'a' AS k"
        )
        assert found(spark, name) == [[1, "a"]]
    assert found(spark, name) == []


@pytest.mark.full("cached tables that others change are in the gate")
def test_what_a_session_has_cached_shows_nothing_that_another_one_is_to_audit(spark, table):
    """Sessions of one application share what is cached, and each reads it anew by its own settings."""
    t, other = f"lake.{table}", spark.newSession()
    other.conf.set("spark.wap.branch", "audit")
    spark.sql(f"CACHE TABLE {t}")
    try:
        for number in (8, 9):
            other.sql(f"INSERT INTO {t} VALUES ({number}, 'z')")
            assert found(spark, table) == BEFORE
        assert found(other, table) == [*BEFORE, [8, "z"], [9, "z"]]
        other.sql(f"REFRESH TABLE {t}")
        assert found(spark, table) == BEFORE
        spark.sql(f"INSERT OVERWRITE {t} SELECT * FROM {t}")
        assert found(spark, table) == BEFORE
        assert found(spark, f"{table}.branch_main") == BEFORE
        # the same the other way round
        other.sql(f"CACHE TABLE {t}")
        spark.sql(f"INSERT INTO {t} VALUES (4, 'b')")
        assert found(other, table) == [*BEFORE, [8, "z"], [9, "z"]]
        assert found(spark, table) == [*BEFORE, [4, "b"]]
    finally:
        spark.sql(f"UNCACHE TABLE IF EXISTS {t}")
