"""INSERT OVERWRITE under a Hive table's name replaces the same rows before and after a migration."""

from __future__ import annotations

import sys

import pytest
from pyspark.sql.functions import expr

from icecomb.catalog import migrate
from icecomb.spark.conf import EXTENSIONS, SESSION_CATALOG_CLASS, spark_conf
from icecomb.spark.jar import bridge_jar, spark_home
from tests.environments import made, pyspark_of, spark_venv
from tests.peers.spark_process import SparkProcess
from tests.peers.spark_worker import plain

STORED = {
    "parquet": "(id INT) PARTITIONED BY (a STRING, b STRING) STORED AS PARQUET",
    "orc": "(id INT) PARTITIONED BY (a STRING, b STRING) STORED AS ORC",
    "avro": "(id INT) PARTITIONED BY (a STRING, b STRING) STORED AS AVRO",
    "spark": "(id INT, a STRING, b STRING) USING parquet PARTITIONED BY (a, b)",
    "whole": "(id INT, a STRING, b STRING) STORED AS PARQUET",
    "spark_whole": "(id INT, a STRING, b STRING) USING orc",
}
"""Tables of Hive and of Spark; the last two are not partitioned."""

FORMS = (
    "INSERT OVERWRITE {t} SELECT 10, 'x', '1'",
    "frame: SELECT 18, 'z', '1'",
    "INSERT OVERWRITE {t} SELECT 23, 'x', '' UNION ALL SELECT 24, 'y', '__HIVE_DEFAULT_PARTITION__'",
    "INSERT OVERWRITE {t} PARTITION (a = 'x', b = NULL) SELECT 27",
    "INSERT OVERWRITE {t} PARTITION (a = 'x', b) SELECT 12, '1'",
    "INSERT OVERWRITE {t} PARTITION (a = 'x', b = '1') SELECT 14 WHERE false",
    "INSERT OVERWRITE {t} PARTITION (a = 'x', b = '1') SELECT 13",
    "INSERT OVERWRITE TABLE {t} PARTITION (a, b) SELECT 11, 'x', '2'",
    "INSERT OVERWRITE {t} SELECT 15, 'x', '1' WHERE false",
    "INSERT OVERWRITE {t} PARTITION (a = 'x', b) SELECT 16, '1' WHERE false",
    "INSERT OVERWRITE {t} (b, id, a) SELECT '1', 17, 'y'",
    "INSERT OVERWRITE {t} BY NAME SELECT 'y' AS a, 19 AS id, '2' AS b",
    "WITH s AS (SELECT 20, 'x', '1') INSERT OVERWRITE {t} SELECT * FROM s",
    "FROM range(2) INSERT OVERWRITE {t} SELECT id + 60, 'x', '1' INSERT INTO {t} SELECT 70, 'w', '9'",
    "INSERT OVERWRITE {t} PARTITION (B = '1', A = 'x') SELECT 21",
    "frame: SELECT 22, 'z', '1' WHERE false",
    "INSERT INTO {t} SELECT 25, 'x', ''",
    "frame: SELECT 26, '', ''",
)
NULL = "__HIVE_DEFAULT_PARTITION__"
MODE = "spark.sql.sources.partitionOverwriteMode"


class InSession:
    """What `SparkProcess` does, in a session of the shared Spark."""

    def __init__(self, session):
        self._session = session

    def sql(self, text):
        return [[plain(value) for value in row] for row in self._session.sql(text).collect()]

    def insert_into(self, table, rows, **options):
        self._session.sql(rows).write.options(**options).insertInto(table, overwrite=True)

    def overwrite(self, table, where, rows, **options):
        self._session.sql(rows).writeTo(table).options(**options).overwrite(expr(where))


@pytest.fixture(scope="module")
def peer_on(spark, other_spark):
    """Gives a Spark by its minor version; its own catalog has Hive and Iceberg tables."""
    session = spark.newSession()
    for key, value in {"": SESSION_CATALOG_CLASS, ".python": sys.executable}.items():
        session.conf.set(f"spark.sql.catalog.spark_catalog{key}", value)
    return lambda minor: InSession(session) if minor == "4.3" else other_spark(minor)


@pytest.fixture
def two_tables(peer_on, minor, stored, catalog):
    """A Spark, a Hive table and one like it that is migrated."""
    peer = peer_on(minor)
    database = f"overwrites_{stored}_{minor.replace('.', '_')}"
    peer.sql(f"CREATE DATABASE {database}")
    peer.sql("SET hive.exec.dynamic.partition.mode = nonstrict")
    tables = [f"{database}.stays", f"{database}.migrated"]
    for table in tables:
        peer.sql(f"CREATE TABLE {table} {STORED[stored]}")
        peer.sql(f"INSERT INTO {table} VALUES (0, 'x', '0')")
    migrate.apply(catalog, tables[1])
    yield peer, *tables
    peer.sql(f"RESET `{MODE}`")
    for table in tables:
        peer.sql(f"DROP TABLE {table}")
    peer.sql(f"DROP DATABASE {database}")


def after(peer, table, form):
    """The rows of a table after a statement on three partitions; what it says if it is refused."""
    peer.sql(f"TRUNCATE TABLE {table}")
    peer.sql(f"INSERT INTO {table} VALUES (1, 'x', '1'), (2, 'x', '2'), (3, 'y', '1')")
    if form.startswith("frame: "):
        peer.insert_into(table, form.removeprefix("frame: "))
    else:
        peer.sql(form.format(t=table))
    return sorted(peer.sql(f"SELECT id, a, b FROM {table}"), key=str)


def of_hive(rows, stored):
    """Rows of the Hive table: of Avro, which Hive's own reader reads, Spark shows the name of the null partition."""
    if stored != "avro":
        return rows
    return sorted(([None if v == NULL else v for v in row] for row in rows), key=str)


@pytest.mark.full("a job of many statements")
@pytest.mark.parametrize(
    ("minor", "stored", "forms"),
    [
        ("4.3", "parquet", FORMS[:4]),
        *(
            pytest.param(minor, stored, FORMS, marks=pytest.mark.full("all forms on all tables"))
            for minor in ("3.5", "4.1", "4.3")
            for stored in STORED
        ),
    ],
    ids=lambda each: "" if isinstance(each, tuple) else each,
)
def test_a_job_overwrites_a_migrated_table_as_it_did_the_hive_table(two_tables, stored, forms):
    peer, stays, migrated = two_tables
    for mode in (None, "dynamic") if forms == FORMS else (None,):
        if mode:
            peer.sql(f"SET {MODE} = {mode}")
        for form in forms:
            if "whole" in stored and "PARTITION" in form:
                continue
            expected = of_hive(after(peer, stays, form), stored)
            assert after(peer, migrated, form) == expected, (form, mode)
    for table in (stays, migrated):
        peer.sql(f"ALTER TABLE {table} ADD COLUMNS (note STRING)")
        # a whole table has no partition columns, which would stay the last
        values = "'new', 'x', '1'" if "whole" not in stored else "'x', '1', 'new'"
        peer.sql(f"INSERT INTO {table} SELECT 28, {values}")
    query = "SELECT * FROM {} ORDER BY id"
    expected = of_hive(peer.sql(query.format(stays)), stored)
    assert sorted(peer.sql(query.format(migrated)), key=str) == sorted(expected, key=str)
    if "whole" not in stored:
        for text in ("", "__HIVE_DEFAULT_PARTITION__"):
            with pytest.raises(Exception, match="partition of null"):
                peer.sql(f"INSERT INTO {migrated} PARTITION (a = 'x', b = '{text}') SELECT 1, 'n'")


NEW = "SELECT 30 AS id, 'x' AS a, '1' AS b"
OVERWRITE = f"INSERT OVERWRITE {{t}} {NEW}"
ALL, PARTITIONS = [30], [2, 3, 30]
"""What is left of the three partitions of `after`."""


def ids(peer, table, form):
    return [row[0] for row in after(peer, table, form)]


@pytest.mark.full("what goes by Iceberg's rules is shown on other tables in the gate")
@pytest.mark.parametrize("stored", ["parquet"])
@pytest.mark.parametrize("minor", ["3.5", "4.1", "4.3"])
def test_who_chooses_otherwise_replaces_all_rows(two_tables, minor, catalog):
    peer, _, table = two_tables
    assert ids(peer, table, OVERWRITE) == PARTITIONS
    peer.sql(f"SET {MODE} = static")
    assert ids(peer, table, OVERWRITE) == ids(peer, table, f"frame: {NEW}") == ALL
    peer.sql(f"RESET `{MODE}`")
    assert ids(peer, table, f"INSERT INTO {{t}} REPLACE WHERE true {NEW}") == ALL
    ids(peer, table, OVERWRITE)
    peer.overwrite(table, "true", NEW)
    assert peer.sql(f"SELECT id FROM {table}") == [[30]]
    with pytest.raises(Exception, match=r"(?i)not.exists"):
        ids(peer, table, "INSERT OVERWRITE {t} PARTITION (a='x', b='1') IF NOT EXISTS SELECT 1")
    if minor != "3.5":
        chosen = OVERWRITE.replace("{t}", "{t} WITH (`overwrite-mode` = 'static')")
        assert ids(peer, table, chosen) == ALL
        ids(peer, table, OVERWRITE)
        # Spark itself drops the options of insertInto in its session catalog
        peer.insert_into(f"lake.{table}", NEW, **{"overwrite-mode": "static"})
        assert peer.sql(f"SELECT id FROM {table}") == [[30]]
    migrate.finalize(catalog, table, unverified=True)
    assert ids(peer, table, OVERWRITE) == PARTITIONS
    peer.sql(f"ALTER TABLE {table} UNSET TBLPROPERTIES ('icecomb.partition-overwrite-mode')")
    assert ids(peer, table, OVERWRITE) == ids(peer, table, f"frame: {NEW}") == ALL


@pytest.mark.full("starts a Spark of its own")
@pytest.mark.parametrize(("minor", "stored"), [("4.1", "parquet")])
def test_without_the_extension_an_overwrite_that_is_not_told_apart_is_refused(
    two_tables, metastore, tmp_path
):
    *_, table = two_tables
    venv = made(spark_venv("4.1"))
    home = spark_home(pyspark_of(venv))
    conf = spark_conf("lake", uri=metastore.uri, session_catalog=True, jar=bridge_jar(home))
    del conf[EXTENSIONS]
    bare = SparkProcess(venv, conf, metastore, tmp_path / "log", home.path)
    try:
        for form in (OVERWRITE, f"frame: {NEW}"):
            with pytest.raises(Exception, match="lacks icecomb's extension"):
                ids(bare, table, form)
            assert len(bare.sql(f"SELECT id FROM {table}")) == 3
        bare.sql(f"SET {MODE} = dynamic")
        assert ids(bare, table, OVERWRITE) == PARTITIONS
        bare.sql(f"SET {MODE} = static")
        assert ids(bare, table, OVERWRITE) == ALL
    finally:
        bare.close()
