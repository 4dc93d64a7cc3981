"""What a session caches of a table is used where it is right.

Before `Table.version()` (Spark 4.1) Spark asks whether the table objects are equal: they are where their state is.
"""

from __future__ import annotations

import sys

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from icecomb.catalog import load_catalog
from icecomb.spark import spark_conf
from icecomb.spark.conf import CATALOG_CLASS
from icecomb.spark.jar import bridge_jar, spark_home
from tests.environments import made, pyspark_of, spark_venv
from tests.peers import spark_users
from tests.peers.spark_process import SMALL
from tests.rings import sampled


@pytest.mark.full("Spark's cache as it is, on two Sparks; what tables equal is tested plainly")
@pytest.mark.parametrize("minor", ["3.5", "4.3"])
def test_a_cached_table_is_read_from_memory_as_long_as_spark_may(sql_on, catalog, minor):
    sql = sql_on(minor)
    namespace = f"cached_{minor.replace('.', '_')}"
    name = f"lake.{namespace}.t"

    def answer():
        [[plan]] = sql(f"EXPLAIN SELECT sum(id) FROM {name}")
        return sql(
            f"SELECT sum(id) FROM {name}"
        ), "In-memory table" in plan or "InMemoryTableScan" in plan

    sql(f"CREATE NAMESPACE lake.{namespace}")
    sql(f"CREATE TABLE {name} (id BIGINT) USING iceberg")
    sql(f"INSERT INTO {name} VALUES (1)")
    sql(f"CACHE TABLE {name}")
    assert answer() == ([[1]], True)
    catalog.load_table((namespace, "t")).append(pa.table({"id": [10]}))
    # since SPARK-54022 a cached table stays what it was until the session refreshes it
    assert answer()[0] == ([[11]] if minor == "3.5" else [[1]])
    sql(f"REFRESH TABLE {name}")
    assert answer()[0] == [[11]]
    sql(f"INSERT INTO {name} VALUES (100)")
    assert answer()[0] == [[111]]
    sql(f"UNCACHE TABLE {name}")
    sql(f"DROP TABLE {name}")
    sql(f"DROP NAMESPACE lake.{namespace}")


OF_CACHED = {
    "INSERT OVERWRITE": "INSERT OVERWRITE {t} SELECT id * 2, k FROM {t}",
    "REPLACE WHERE": "INSERT INTO {t} REPLACE WHERE k = 'a' SELECT id * 2, k FROM {t}",
    "a subquery": "INSERT OVERWRITE {t} SELECT id, 'a' FROM range(9) WHERE id IN (SELECT id FROM {t})",
}


@pytest.mark.full("rows that a statement changes are in the gate, those below")
@pytest.mark.parametrize("minor", ["4.3", "4.1"])
def test_rows_are_not_replaced_by_cached_ones_that_lack_what_others_appended(
    sql_on, catalog, minor
):
    """Since SPARK-54022 (4.1) a session reads what it cached, also when others have changed the table."""
    sql = sql_on(minor)
    namespace = f"overwritten_{minor.replace('.', '_')}"
    name = f"lake.{namespace}.t"
    sql(f"CREATE NAMESPACE lake.{namespace}")
    sql(f"CREATE TABLE {name} (id BIGINT, k STRING) USING iceberg")
    sql(f"INSERT INTO {name} VALUES (1, 'a')")
    sql(f"CACHE TABLE {name}")
    others = catalog.load_table((namespace, "t"))
    others.append(pa.table({"id": [10], "k": ["a"]}))
    for text in OF_CACHED.values():
        # Spark 4.3 raises its own error, others of the tests' processes an AssertionError
        with pytest.raises((PySparkException, AssertionError), match="Found conflicting files"):
            sql(text.format(t=name))
        assert sorted(others.refresh().scan().to_arrow()["id"].to_pylist()) == [1, 10]
    sql(f"REFRESH TABLE {name}")
    sql(OF_CACHED["INSERT OVERWRITE"].format(t=name))
    assert sorted(others.refresh().scan().to_arrow()["id"].to_pylist()) == [2, 20]
    # its own write is no other's
    sql(OF_CACHED["INSERT OVERWRITE"].format(t=name))
    assert sorted(others.refresh().scan().to_arrow()["id"].to_pylist()) == [4, 40]
    sql(f"UNCACHE TABLE {name}")
    sql(f"DROP TABLE {name}")
    sql(f"DROP NAMESPACE lake.{namespace}")


# each would change, or add, rows by what the cache says of others; a function of its own keeps the source's rows
BY_CACHED = {
    "DELETE": "DELETE FROM {t} WHERE id NOT IN (SELECT id FROM {s})",
    "UPDATE": "UPDATE {t} SET k = 'z' WHERE id >= (SELECT max(id) FROM {s})",
    "MERGE": (
        "MERGE INTO {t} t USING (SELECT id, k FROM {s}) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET k = 'm' WHEN NOT MATCHED BY SOURCE THEN DELETE"
    ),
    "a kept source": (
        "MERGE INTO {t} t USING (SELECT id, uuid() AS k FROM {s}) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET k = s.k WHEN NOT MATCHED BY SOURCE THEN DELETE"
    ),
    "an inserting MERGE": (
        "MERGE INTO {t} t USING (SELECT max(id) + 18 AS id FROM {s}) s ON t.id = s.id "
        "WHEN NOT MATCHED THEN INSERT (id, k) VALUES (s.id, 'n')"
    ),
}


@pytest.mark.full("many statements over cached frames")
@pytest.mark.parametrize("mode", sampled(["copy-on-write", "merge-on-read"], keep=1))
@pytest.mark.parametrize("minor", ["4.3", "4.1"])
def test_rows_are_not_changed_by_cached_ones_that_lack_what_others_appended(
    sql_on, catalog, minor, mode
):
    sql = sql_on(minor)
    namespace = f"changed_{minor.replace('.', '_')}_{mode.replace('-', '_')}"
    name, view = f"lake.{namespace}.t", f"{namespace}_source"
    modes = ", ".join(f"'write.{each}.mode' = '{mode}'" for each in ("delete", "update", "merge"))
    sql(f"CREATE NAMESPACE lake.{namespace}")
    sql(f"CREATE TABLE {name} (id BIGINT, k STRING) USING iceberg TBLPROPERTIES ({modes})")
    sql(f"INSERT INTO {name} VALUES (1, 'a')")
    sql(f"CACHE TABLE {name}")
    sql(f"CREATE TEMPORARY VIEW {view} AS SELECT * FROM {name}")
    others = catalog.load_table((namespace, "t"))
    others.append(pa.table({"id": [10], "k": ["a"]}))
    for kind, text in BY_CACHED.items():
        with pytest.raises((PySparkException, AssertionError), match="Found conflicting files"):
            sql(text.format(t=name, s=view))
        assert sorted(others.refresh().scan().to_arrow()["id"].to_pylist()) == [1, 10], kind
    sql(f"REFRESH TABLE {name}")
    for kind in ("DELETE", "an inserting MERGE"):
        sql(BY_CACHED[kind].format(t=name, s=view))
    assert sorted(others.refresh().scan().to_arrow()["id"].to_pylist()) == [1, 10, 28]
    sql(f"UNCACHE TABLE {name}")
    sql(f"DROP VIEW {view}")
    sql(f"DROP TABLE {name}")
    sql(f"DROP NAMESPACE lake.{namespace}")


@pytest.mark.full("states of tables that are not cached are in the gate")
@pytest.mark.parametrize("minor", ["4.3", "4.1", "3.5"])
def test_options_choose_among_the_states_that_a_cached_table_has_now(
    sql_on, read_on, catalog, minor
):
    sql, read = sql_on(minor), read_on(minor)
    namespace = f"chosen_{minor.replace('.', '_')}"
    name = f"lake.{namespace}.t"
    sql(f"CREATE NAMESPACE lake.{namespace}")
    sql(f"CREATE TABLE {name} (id BIGINT) USING iceberg")
    sql(f"INSERT INTO {name} VALUES (1)")
    others = catalog.load_table((namespace, "t"))
    first = others.current_snapshot().snapshot_id
    with others.manage_snapshots() as manage:
        manage.create_branch(first, "side").create_tag(first, "kept")
    sql(f"CACHE TABLE {name}")
    others.append(pa.table({"id": [2]}))
    others.append(pa.table({"id": [3]}), branch="side")
    now = others.refresh().current_snapshot()
    with others.manage_snapshots() as manage:
        manage.create_branch(now.snapshot_id, "later").replace_tag(now.snapshot_id, "kept")
    later = f"{now.timestamp_ms + 1}"
    for option, value, ids in (
        ("branch", "side", [1, 3]),
        ("branch", "later", [1, 2]),
        ("branch", "main", [1, 2]),
        ("tag", "kept", [1, 2]),
        ("snapshot-id", f"{now.snapshot_id}", [1, 2]),
        ("snapshot-id", f"{first}", [1]),
        ("as-of-timestamp", later, [1, 2]),
        ("start-snapshot-id", f"{first}", [2]),
    ):
        assert sorted(read(name, **{option: value})) == [[each] for each in ids], option
    # what options choose, and what they are cached of, are not the table
    cached = [[1]] if minor != "3.5" else [[1], [2]]
    assert sorted(sql(f"SELECT * FROM {name}")) == cached
    sql(f"UNCACHE TABLE {name}")
    assert sorted(read(name, cache=True, branch="side")) == [[1], [3]]
    others.append(pa.table({"id": [4]}))
    assert sorted(sql(f"SELECT * FROM {name}")) == [[1], [2], [4]]
    others.append(pa.table({"id": [5]}), branch="side")
    assert sorted(read(name, branch="side")) == [[1], [3], [5]]
    sql(f"INSERT INTO {name} VALUES (6)")
    assert sorted(sql(f"SELECT * FROM {name}")) == [[1], [2], [4], [6]]
    assert sorted(read(name, branch="side")) == [[1], [3], [5]]
    # a query is understood with the columns that are cached
    sql(f"CACHE TABLE {name}")
    with others.refresh().update_schema() as update:
        update.rename_column("id", "number")
    if minor != "3.5":
        with pytest.raises((PySparkException, AssertionError), match=r"Column id .* was changed"):
            read(name, branch="side")
        sql(f"REFRESH TABLE {name}")
    assert sorted(read(name, branch="side")) == [[1], [3], [5]]
    sql("CLEAR CACHE")
    sql(f"DROP TABLE {name}")
    sql(f"DROP NAMESPACE lake.{namespace}")


@pytest.mark.full("one by its path is in the gate")
@pytest.mark.parametrize("minor", ["4.3", "4.1", "3.5"])
def test_a_cached_table_shows_what_was_written_by_another_name_of_it(
    sql_on, read_on, catalog, minor
):
    sql, read = sql_on(minor), read_on(minor)
    namespace = f"named_{minor.replace('.', '_')}"
    name = f"lake.{namespace}.t"
    sql(f"CREATE NAMESPACE lake.{namespace}")
    sql(f"CREATE TABLE {name} (id BIGINT, k STRING) USING iceberg PARTITIONED BY (k)")
    sql(f"INSERT INTO {name} VALUES (1, 'a')")
    sql(f"ALTER TABLE {name} CREATE BRANCH side")
    sql(f"ALTER TABLE {name} CREATE TAG kept")
    below = (f"{name}.branch_side", f"{name}.branch_main", f"{name}.tag_kept", f"{name}.snapshots")
    for each in (name, *below):
        sql(f"CACHE TABLE {each}")

    def ids(what):
        return sorted(row[0] for row in sql(f"SELECT id FROM {what}"))

    for statement, expected in (
        ("INSERT INTO {t} VALUES (2, 'b'), (3, 'b'), (4, 'c')", [1, 2, 3, 4]),
        ("DELETE FROM {t} WHERE k = 'c'", [1, 2, 3]),
        ("DELETE FROM {t} WHERE id % 100 = 3", [1, 2]),
        ("UPDATE {t} SET id = 20 WHERE id = 2", [1, 20]),
        (
            (
                "MERGE INTO {t} t USING (SELECT 1L AS n) s ON t.id = s.n "
                "WHEN MATCHED THEN UPDATE SET id = 10"
            ),
            [10, 20],
        ),
        ("INSERT OVERWRITE {t} SELECT 7, 'z'", [7]),
    ):
        sql(statement.format(t=f"{name}.branch_main"))
        assert ids(name) == ids(f"{name}.branch_main") == expected, statement
    # of the table by name, and of what others did
    sql(f"INSERT INTO {name} VALUES (8, 'z')")
    assert ids(name) == ids(f"{name}.branch_main") == [7, 8]
    others = catalog.load_table((namespace, "t"))
    others.append(pa.table({"id": [9], "k": ["z"]}), branch="side")
    assert ids(f"{name}.branch_side") == ids(f"{name} VERSION AS OF 'side'") == [1, 9]
    sql(f"INSERT INTO {name}.branch_side VALUES (11, 'z')")
    assert ids(f"{name}.branch_side") == ids(f"{name} VERSION AS OF 'side'") == [1, 9, 11]
    assert sorted(row[0] for row in read(name, branch="side")) == [1, 9, 11]
    sql(f"ALTER TABLE {name} CREATE OR REPLACE TAG kept")
    assert ids(f"{name}.tag_kept") == [7, 8]
    [[count]] = sql(f"SELECT count(*) FROM {name}.snapshots")
    assert count == len(others.refresh().snapshots())
    for each in below:
        sql(f"UNCACHE TABLE {each}")
    sql(f"UNCACHE TABLE {name}")
    sql(f"DROP TABLE {name}")
    sql(f"DROP NAMESPACE lake.{namespace}")


def test_a_cached_table_shows_what_was_written_by_its_path_or_a_catalog_of_another_session(
    spark, tmp_path
):
    folders = load_catalog("folders", type="hadoop", warehouse=f"file:{tmp_path}")
    folders.create_namespace("db")
    folders.create_table("db.t", pa.schema([("id", pa.int64())]))
    beside = {"": CATALOG_CLASS, ".type": "hadoop", ".warehouse": f"file:{tmp_path}"}
    other = spark.newSession()
    for key, value in {**beside, ".python": sys.executable}.items():
        other.conf.set(f"spark.sql.catalog.beside{key}", value)
    path = f"lake.`file:{tmp_path}/db/t`"
    names = ("beside.db.t", path)
    for each in names:
        other.sql(f"CACHE TABLE {each}")
    try:
        for number, (session, name) in enumerate(
            ((spark, path), (other, "beside.db.t"), (spark, f"lake.`{tmp_path}/db/t`")), 1
        ):
            session.sql(f"INSERT INTO {name} VALUES ({number})")
            assert [other.table(each).count() for each in names] == [number, number], name
    finally:
        for each in names:
            other.sql(f"UNCACHE TABLE {each}")


def test_the_past_of_a_cached_table_is_not_what_is_cached(other_spark, catalog):
    sql = other_spark("3.5").sql
    sql("CREATE NAMESPACE lake.cached_past")
    sql("CREATE TABLE lake.cached_past.t (id BIGINT) USING iceberg")
    sql("INSERT INTO lake.cached_past.t VALUES (1)")
    first = catalog.load_table(("cached_past", "t")).current_snapshot().snapshot_id
    sql("INSERT INTO lake.cached_past.t VALUES (2)")
    sql("CACHE TABLE lake.cached_past.t")
    assert sql("SELECT sum(id) FROM lake.cached_past.t") == [[3]]
    assert sql(f"SELECT sum(id) FROM lake.cached_past.t VERSION AS OF {first}") == [[1]]
    sql("UNCACHE TABLE lake.cached_past.t")
    sql("DROP TABLE lake.cached_past.t")


def test_a_table_that_was_dropped_and_made_anew_is_not_the_one_that_is_cached(
    other_spark, tmp_path
):
    """In a folder, its metadata file has the same name as before."""
    sql = other_spark("3.5").sql
    folders = load_catalog("folders", type="hadoop", warehouse=f"file:{tmp_path}")
    folders.create_namespace("db")
    name = f"lake.`file:{tmp_path}/db/t`"
    schema = pa.schema([("id", pa.int64())])
    places = set()
    for number in (1, 10):
        table = folders.create_table("db.t", schema)
        table.append(pa.table({"id": [number]}, schema))
        places.add(table.metadata_location)
        assert sql(f"SELECT sum(id) FROM {name}") == [[number]]
        if number == 1:
            sql(f"CACHE TABLE {name}")
        folders.drop_table("db.t", purge_requested=True)
    assert len(places) == 1


@pytest.mark.jvm
@pytest.mark.full("starts a Spark of its own")
@pytest.mark.parametrize("minor", ["3.5", "4.3"])
def test_a_view_of_a_dataframe_is_the_same_whether_it_is_cached_or_not(tmp_path, minor):
    """Before Spark 4.1 a DataFrame is of the state that it was made of; since then it is looked up again."""
    table = "lake.db.t"
    both = (
        "SELECT (SELECT sum(id) FROM global_temp.plain), (SELECT sum(id) FROM global_temp.cached)"
    )

    steps = {
        "made": step(
            "CREATE NAMESPACE lake.db",
            f"CREATE TABLE {table} (id BIGINT) USING iceberg",
            f"INSERT INTO {table} VALUES (1)",
            f"ALTER TABLE {table} CREATE TAG first",
            f"INSERT INTO {table} VALUES (10)",
            {"sql": f"SELECT id FROM {table} WHERE id > 0", "keep": "plain"},
            {"sql": f"SELECT id FROM {table} WHERE id > -1", "keep": "cached"},
            {"view": "plain"},
            {"view": "cached"},
            "CACHE TABLE global_temp.cached",
            both,
        ),
        "inserted": step(f"INSERT INTO {table} VALUES (100)", both),
        "called": step(
            f"CALL lake.system.set_current_snapshot(table => '{table}', ref => 'first')", both
        ),
        "altered": step(f"ALTER TABLE {table} ADD PARTITION FIELD bucket(2, id)", both),
        "by name": step(f"SELECT sum(id) FROM {table}"),
    }
    expected = [11, 11, 11, 11] if minor == "3.5" else [11, 111, 1, 1]
    answers = in_one_session(minor, tmp_path, steps.values())
    assert answers == [*([[each, each]] for each in expected), [[1]]]


def step(*statements):
    """What a session does, see `spark_users`."""
    return {"user": None, "real": None, "tokens": [], "sql": list(statements)}


def in_one_session(minor, warehouse, steps):
    """What a session of a Spark of its own answers, whose tables are in folders."""
    home = spark_home(pyspark_of(made(spark_venv(minor))))
    conf = spark_conf("lake", warehouse=str(warehouse), python=sys.executable, jar=bridge_jar(home))
    return spark_users.answers(
        {**SMALL, **conf, "spark.sql.catalog.lake.type": "hadoop"},
        steps,
        {"SPARK_HOME": str(home.path)},
        str(spark_venv(minor) / "bin" / "python"),
    )


@pytest.mark.jvm
@pytest.mark.full("starts a Spark of its own")
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("minor", ["3.5", "4.0"])
def test_rows_are_not_changed_by_an_old_dataframe_that_lacks_what_was_appended(
    tmp_path, minor, mode
):
    table = "lake.db.t"
    modes = ", ".join(f"'write.{each}.mode' = '{mode}'" for each in ("delete", "update", "merge"))
    first = step(
        "CREATE NAMESPACE lake.db",
        f"CREATE TABLE {table} (id BIGINT, k STRING) USING iceberg TBLPROPERTIES ({modes})",
        f"INSERT INTO {table} VALUES (1, 'a')",
        {"sql": f"SELECT id, k FROM {table} WHERE id > 0", "keep": "old"},
        {"view": "old"},
        "CACHE TABLE global_temp.old",
        f"INSERT INTO {table} VALUES (10, 'a')",
        "SELECT count(*) FROM global_temp.old",
    )
    changes = [text.format(t=table, s="global_temp.old") for text in BY_CACHED.values()]
    ids = f"SELECT sorted FROM (SELECT sort_array(collect_list(id)) AS sorted FROM {table})"
    seen, *answers, left = in_one_session(minor, tmp_path, [first, *map(step, changes), step(ids)])
    assert (seen, left) == ([[1]], [[[1, 10]]])
    for kind, answer in zip(BY_CACHED, answers, strict=True):
        assert "Found conflicting files" in answer["error"], kind
        assert "REFRESH TABLE" in answer["error"], kind
