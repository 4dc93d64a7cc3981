"""What Spark's cost-based optimizer gets of columns, and ANALYZE TABLE, which computes it."""

from __future__ import annotations

import json
from contextlib import contextmanager
from pathlib import Path

import pytest

NAMESPACE = "lake.column_statistics"
CBO = ("spark.sql.cbo.enabled", "spark.sql.cbo.joinReorder.enabled")


@contextmanager
def setting(run, value):
    for key in CBO:
        run(f"SET {key}={value}")
    try:
        yield
    finally:
        for key in CBO:
            run(f"RESET {key}")


def optimized(run, query):
    """The optimized plan with its estimates, as EXPLAIN COST prints it."""
    ((text,),) = run(f"EXPLAIN COST {query}")
    return text.partition("== Physical Plan ==")[0]


def rows_of(run, query):
    """The estimated number of rows of a query; None where Spark guesses sizes only."""
    first = next(line for line in optimized(run, query).splitlines() if "Statistics(" in line)
    told = first.partition("rowCount=")[2].rstrip(")")
    return float(told) if told else None


def check(run, namespace):
    facts, names = f"{namespace}.facts", f"{namespace}.names"
    run(
        f"CREATE TABLE {facts} (Id INT, k BIGINT, s STRING, n TIMESTAMP_NTZ, nothing INT, blank STRING) "
        "USING iceberg"
    )
    run(f"CREATE TABLE {names} (k BIGINT, name STRING) USING iceberg")
    run(
        f"INSERT INTO {facts} SELECT /*+ COALESCE(1) */ id, IF(id < 20, NULL, id % 100), concat('s', id % 7), "
        "TIMESTAMP_NTZ '2026-01-01 00:00:00', NULL, NULL FROM range(1000)"
    )
    run(f"INSERT INTO {names} SELECT id, concat('name ', id) FROM range(100)")
    joined = f"SELECT * FROM {facts} f JOIN {names} USING (k)"
    with setting(run, "true"):
        # the product of both
        assert rows_of(run, joined) == 100_000
        run(f"ANALYZE TABLE {facts} COMPUTE STATISTICS FOR COLUMNS ID, k")
        run(f"ANALYZE TABLE {names} COMPUTE STATISTICS FOR ALL COLUMNS")
        # of 980 rows with a key each meets the one of its name
        assert 970 <= rows_of(run, joined) <= 990
        assert 95 <= rows_of(run, f"SELECT * FROM {facts} WHERE Id < 100") <= 105
        assert rows_of(run, f"SELECT * FROM {facts} WHERE k = 5000") in (0, 1)
        assert 5 <= rows_of(run, f"SELECT * FROM {facts} WHERE k = 50") <= 15
        run(f"ANALYZE TABLE {facts} COMPUTE STATISTICS")
        where, pairs = f"SELECT * FROM {facts} WHERE", f"SELECT * FROM {facts} a JOIN {facts} b"
        # columns whose limits Spark cannot use hide no rows
        assert rows_of(run, f"{pairs} ON a.n = b.n") == 1_000_000
        assert 140_000 < rows_of(run, f"{pairs} ON a.s = b.s") < 145_000
        # neither do those without a value, and nothing is divided by their number of values
        assert rows_of(run, f"{pairs} ON a.nothing = b.nothing") in (0, 1)
        assert rows_of(run, f"{pairs} ON a.blank = b.blank") is not None
        for nowhere in ("nothing = 5", "blank = 'a'", "Id < -5 AND s = 's1'", "Id < -5 AND k = 5"):
            assert rows_of(run, f"{where} {nowhere}") <= 1000, nowhere
        # values that are younger than the statistics, which know of none
        run(f"INSERT INTO {facts} VALUES (1, 1, 's', TIMESTAMP_NTZ '2026-01-01 00:00:00', 7, 'b')")
        for new in ("nothing = 7", "nothing > 3", "blank = 'b'"):
            assert rows_of(run, f"{where} {new}") >= 1, new
        assert rows_of(run, f"{pairs} ON a.nothing = b.nothing") >= 1
        run("SET `spark.sql.iceberg.report-column-stats`=false")
        assert rows_of(run, joined) == 100_000
        run("RESET `spark.sql.iceberg.report-column-stats`")
    with setting(run, "false"):
        assert rows_of(run, joined) is None
    ((path,),) = run(f"CALL lake.system.compute_table_stats('{names}', columns => array('k'))")
    assert path.endswith(".stats")
    with pytest.raises(Exception, match="has no column 'K'"):
        run(f"CALL lake.system.compute_table_stats(table => '{names}', columns => array('K'))")
    with pytest.raises(Exception, match=r"no column 'z'(.|\n)*hint: It has: Id, k"):
        run(f"ANALYZE TABLE {facts} COMPUTE STATISTICS FOR COLUMNS z")
    run(f"CREATE TABLE {namespace}.empty (k BIGINT) USING iceberg")
    assert run(f"CALL lake.system.compute_table_stats('{namespace}.empty')") == []
    run(f"ANALYZE TABLE {namespace}.empty COMPUTE STATISTICS")
    check_all_tables(run, namespace)
    for table in (facts, names, f"{namespace}.empty"):
        run(f"DROP TABLE {table}")


def check_all_tables(run, namespace):
    """ANALYZE of partitions, of metadata only, and of all tables of a namespace."""
    days = f"{namespace}.of_days"
    run(
        f"CREATE TABLE {days} (k BIGINT, ts TIMESTAMP, s STRUCT<a: INT>) USING iceberg "
        "PARTITIONED BY (days(ts), s.a)"
    )
    run(f"INSERT INTO {days} VALUES (1, TIMESTAMP '2026-01-01 00:00:00', named_struct('a', 1))")

    def counted(table):
        """The kinds of statistics files of a table."""
        kinds = ("statistics", "partition-statistics")
        files = [row[0] for row in run(f"SELECT file FROM {table}.metadata_log_entries")]
        told = json.loads(Path(files[-1].removeprefix("file:")).read_text(encoding="utf-8"))
        return [kind for kind in kinds if told.get(kind)]

    for nothing in ("NOSCAN", "noscan"):
        run(f"ANALYZE TABLE {days} COMPUTE STATISTICS {nothing}")
        run(f"ANALYZE TABLES IN {namespace} COMPUTE STATISTICS {nothing}")
        assert counted(days) == []
    run(f"ANALYZE TABLE {days} PARTITION (TS) COMPUTE STATISTICS")
    assert counted(days) == ["partition-statistics"]
    run(f"ANALYZE TABLE {days} PARTITION (ts = '2026-01-01') COMPUTE STATISTICS NOSCAN")
    run(f"ANALYZE TABLES IN {namespace} COMPUTE STATISTICS")
    assert counted(days) == ["statistics", "partition-statistics"]
    assert run(f"SELECT record_count FROM {days}.partitions") == [[1]]
    with pytest.raises(Exception, match="no partition field is made of k"):
        run(f"ANALYZE TABLE {days} PARTITION (k = 1) COMPUTE STATISTICS")
    odd = f"{namespace}.odd"
    run(f"CREATE TABLE {odd} (l ARRAY<INT>) USING iceberg")
    run(f"INSERT INTO {odd} VALUES (array(1))")
    run(f"INSERT INTO {days} VALUES (2, TIMESTAMP '2026-01-02 00:00:00', named_struct('a', 2))")
    run(f"ANALYZE TABLES IN {namespace} COMPUTE STATISTICS")
    assert (counted(days), counted(odd)) == (["statistics", "partition-statistics"], [])
    with setting(run, "true"):
        assert rows_of(run, f"SELECT * FROM {days} WHERE k = 1") == 1
    for table in (days, odd):
        run(f"DROP TABLE {table}")


@pytest.mark.full("plans many statements")
def test_estimates_of_joins_and_filters_come_from_what_analyze_computes(spark):
    def run(text):
        return [list(row) for row in spark.sql(text).collect()]

    run(f"CREATE NAMESPACE {NAMESPACE}")
    check(run, NAMESPACE)
    run(f"DROP NAMESPACE {NAMESPACE}")


@pytest.mark.full("needs another Spark")
@pytest.mark.sparks("3.5", "4.1")
def test_so_they_do_on_other_sparks(other_spark, minor):
    run, namespace = other_spark(minor).sql, f"{NAMESPACE}_{minor.replace('.', '_')}"
    run(f"CREATE NAMESPACE {namespace}")
    check(run, namespace)
    run(f"DROP NAMESPACE {namespace}")
