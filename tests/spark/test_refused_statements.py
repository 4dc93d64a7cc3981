"""Statements that Iceberg tables have no use for say what to do instead; those on Hive's tables stay Spark's."""

from __future__ import annotations

import re
import sys

import pytest

from icecomb.spark.conf import SESSION_CATALOG_CLASS

NAMESPACE = "refused_statement_tests"
PARTITION = "PARTITION (k = 'a')"
ADD_FILES = r"CALL system\.add_files"
INSTEAD = {
    "SHOW PARTITIONS {t}": r"SELECT \* FROM {t}\.partitions",
    f"DESCRIBE TABLE {{t}} {PARTITION}": r"SELECT \* FROM {t}\.partitions",
    f"ALTER TABLE {{t}} ADD {PARTITION}": rf"INSERT INTO {{t}} .*{ADD_FILES}",
    f"ALTER TABLE {{t}} DROP {PARTITION}": "DELETE FROM {t} WHERE",
    f"TRUNCATE TABLE {{t}} {PARTITION}": "DELETE FROM {t} WHERE",
    f"ALTER TABLE {{t}} {PARTITION} RENAME TO PARTITION (k = 'b')": "UPDATE {t} SET",
    f"ALTER TABLE {{t}} {PARTITION} SET LOCATION '/tmp/a'": ADD_FILES,
    "ALTER TABLE {t} RECOVER PARTITIONS": ADD_FILES,
    "MSCK REPAIR TABLE {t}": ADD_FILES,
    "LOAD DATA INPATH '/tmp/nothing' INTO TABLE {t}": rf"{ADD_FILES}.*INSERT INTO {{t}} SELECT",
    "ANALYZE TABLE {t} PARTITION (id) COMPUTE STATISTICS": "the columns that partitions are made of",
    "ANALYZE TABLE {t}.files COMPUTE STATISTICS": "Name the table itself",
    "ALTER TABLE {t} SET SERDE 'a'": r"SET TBLPROPERTIES",
    "ALTER TABLE {t} SET SERDEPROPERTIES ('a' = 'b')": r"SET TBLPROPERTIES",
    "SHOW CREATE TABLE {t} AS SERDE": "SHOW CREATE TABLE {t}$",
    "CREATE INDEX i ON TABLE {t} (id)": "WRITE ORDERED BY",
    "DROP INDEX i ON TABLE {t}": "WRITE ORDERED BY",
}


def check(run, namespace, statements):
    """Each is refused with the way out, and none changed the table."""
    table = f"{namespace}.t"
    run(f"CREATE TABLE {table} (id INT, k STRING) USING iceberg PARTITIONED BY (k)")
    run(f"INSERT INTO {table} VALUES (1, 'a')")
    before = run(f"SHOW CREATE TABLE {table}")
    for statement, hint in statements.items():
        said = rf"(?s)\n\s*hint: .*{hint.format(t=re.escape(table), n=re.escape(namespace))}"
        with pytest.raises(Exception, match=said.replace("$", r"(?:\n|$)")):
            run(statement.format(t=table, n=namespace, s=namespace.split(".")[-1]))
    assert run(f"SHOW CREATE TABLE {table}") == before
    assert run(f"SELECT id, k FROM {table}") == [[1, "a"]]
    run(f"DROP TABLE {table}")


def check_beside_hives(run, namespace):
    """In the session catalog; what the statements do to a table of Hive, they do there, too."""
    table = f"{namespace}.of_hive"
    run(f"CREATE TABLE {table} (id INT, k STRING) USING parquet PARTITIONED BY (k)")
    check(run, f"spark_catalog.{namespace}", INSTEAD)
    run(f"ALTER TABLE {table} ADD {PARTITION}")
    assert run(f"SHOW PARTITIONS {table}") == [["k=a"]]
    run(f"ALTER TABLE {table} {PARTITION} RENAME TO PARTITION (k = 'b')")
    run(f"TRUNCATE TABLE {table} PARTITION (k = 'b')")
    run(f"ALTER TABLE {table} DROP PARTITION (k = 'b')")
    run(f"MSCK REPAIR TABLE {table}")
    run(f"ANALYZE TABLE {table} COMPUTE STATISTICS")
    run(f"ANALYZE TABLES IN {namespace} COMPUTE STATISTICS")
    assert run(f"SHOW PARTITIONS {table}") == []
    run(f"DROP TABLE {table}")


def rows_of(session):
    return lambda text: [list(row) for row in session.sql(text).collect()]


@pytest.mark.full("the session catalog refuses them in the gate")
def test_they_are_refused_with_the_way_out(spark):
    run = rows_of(spark)
    run(f"CREATE NAMESPACE lake.{NAMESPACE}")
    check(run, f"lake.{NAMESPACE}", INSTEAD)
    run(f"DROP NAMESPACE lake.{NAMESPACE}")


@pytest.mark.full("refused in our own catalog in the gate")
def test_they_are_refused_in_the_session_catalog_for_tables_of_ours_only(spark):
    session = spark.newSession()
    session.conf.set("spark.sql.catalog.spark_catalog", SESSION_CATALOG_CLASS)
    session.conf.set("spark.sql.catalog.spark_catalog.python", sys.executable)
    run, namespace = rows_of(session), f"{NAMESPACE}_session"
    run(f"CREATE NAMESPACE {namespace}")
    check_beside_hives(run, namespace)
    run(f"DROP NAMESPACE {namespace}")


def test_they_are_refused_on_the_oldest_spark(other_spark):
    run, namespace = other_spark("3.5").sql, f"{NAMESPACE}_35"
    run(f"CREATE NAMESPACE lake.{namespace}")
    check(run, f"lake.{namespace}", INSTEAD)
    check_beside_hives(run, namespace)
    run(f"DROP NAMESPACE lake.{namespace}")
