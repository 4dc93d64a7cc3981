"""What Spark leaves to the planner: aggregates, limits, functions, and filters that partitions decide."""

from __future__ import annotations

import re
from contextlib import contextmanager

import pytest

NAMESPACE = "lake.push_down"
SALES = f"{NAMESPACE}.sales"


@pytest.fixture(scope="module", autouse=True)
def sales(spark):
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {NAMESPACE}")
    spark.sql(
        f"CREATE TABLE {SALES} (id BIGINT, country STRING, ts TIMESTAMP, x DOUBLE) "
        "PARTITIONED BY (country, days(ts), bucket(4, id))"
    )
    spark.sql(
        f"INSERT INTO {SALES} SELECT id, IF(id % 3 = 2, NULL, concat('c', id % 3)), "
        "timestamp_micros(1767225600000000 + id * 21600000000), id / 2 FROM range(0, 12)"
    )
    yield
    spark.sql(f"DROP TABLE {SALES}")


def plan(spark, query):
    return spark.sql(query)._jdf.queryExecution().executedPlan().toString()


def answer(spark, query):
    return [list(row) for row in spark.sql(query).collect()]


@contextmanager
def setting(spark, key, value):
    spark.conf.set(key, value)
    try:
        yield
    finally:
        spark.conf.unset(key)


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT count(*), min(id), max(ts) > TIMESTAMP '2026-01-03' FROM {t}", [[12, 0, True]]),
        ("SELECT count(country), max(country) FROM {t} WHERE country <> 'c0'", [[4, "c1"]]),
        ("SELECT count(*) FROM {t} WHERE ts < TIMESTAMP '2026-01-02 00:00:00'", [[4]]),
        ("SELECT count(*) FROM {t} WHERE lake.system.days(ts) = DATE '2026-01-02'", [[4]]),
        (
            "SELECT country, count(*) FROM {t} GROUP BY country ORDER BY 1",
            [[None, 4], ["c0", 4], ["c1", 4]],
        ),
        ("SELECT DISTINCT country FROM {t} ORDER BY 1", [[None], ["c0"], ["c1"]]),
        ("SELECT count(*), max(id) FROM {t} WHERE country = 'nowhere'", [[0, None]]),
    ],
)
def test_aggregates_need_no_file(spark, query, rows):
    query = query.format(t=SALES)
    assert re.search(r"LocalTableScan \[((count|min|max)\(.*\)|country)#", plan(spark, query))
    assert answer(spark, query) == rows
    key = "spark.sql.iceberg.aggregate-push-down.enabled"
    with setting(spark, key, "false"):
        assert "LocalTableScan" not in plan(spark, query)
        assert answer(spark, query) == rows


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*) FROM {t} WHERE id > 3",
        "SELECT count(*) FROM {t} WHERE ts > TIMESTAMP '2026-01-02 00:00:00'",
        "SELECT count(DISTINCT country) FROM {t} WHERE id > 3",
        "SELECT avg(id) FROM {t}",
        "SELECT max(_file) IS NULL FROM {t}",
        "SELECT id, count(*) FROM {t} GROUP BY id",
        "SELECT max(id + 1) FROM {t}",
    ],
)
def test_other_questions_are_put_to_the_rows(spark, query):
    assert "LocalTableScan" not in plan(spark, query.format(t=SALES))


@pytest.mark.parametrize(
    ("where", "on_rows", "ids"),
    [
        ("country = 'c1'", False, [1, 4, 7, 10]),
        ("country IS NULL AND ts >= TIMESTAMP '2026-01-03 00:00:00'", False, [8, 11]),
        ("country = 'c1' AND id > 4", True, [7, 10]),
        ("lake.system.bucket(4, id) IN (0, 1, 2, 3) AND country <=> NULL", False, [2, 5, 8, 11]),
        ("lake.system.hours(ts) = 490896", True, [0]),
        ("NOT lake.system.years(ts) = 56", False, []),
    ],
)
def test_filters_that_partitions_decide_are_not_evaluated_on_rows(spark, where, on_rows, ids):
    query = f"SELECT id FROM {SALES} WHERE {where}"
    found = plan(spark, query)
    assert bool(re.search(r"\bFilter \(", found)) is on_rows, found
    assert sorted(answer(spark, query)) == [[i] for i in ids]


def test_a_limit_reads_the_files_it_needs_and_cached_plans_are_told_apart(spark):
    part = f"(SELECT * FROM {SALES} LIMIT 1)"
    query = f"SELECT (SELECT count(*) FROM {part}), (SELECT count(*) FROM (SELECT * FROM {SALES} LIMIT 5))"
    assert answer(spark, query) == [[1, 5]]
    assert "limit: 3" in plan(spark, f"SELECT * FROM {SALES} LIMIT 3")
    assert "limit: 5" in plan(spark, f"SELECT * FROM {SALES} WHERE country = 'c0' LIMIT 3 OFFSET 2")
    assert "limit" not in plan(spark, f"SELECT * FROM {SALES} WHERE id > 3 LIMIT 3")
    assert len(answer(spark, f"SELECT id FROM {SALES} LIMIT 100")) == 12


def test_changes_of_rows_look_at_every_row_of_the_files_that_partitions_choose(spark):
    name = f"{NAMESPACE}.changed"
    spark.sql(
        f"CREATE TABLE {name} PARTITIONED BY (country, bucket(4, id)) AS SELECT * FROM {SALES}"
    )
    spark.sql(f"UPDATE {name} SET x = -1 WHERE country = 'c0' AND lake.system.bucket(4, id) = 0")
    expected = answer(
        spark, f"SELECT id FROM {SALES} WHERE country = 'c0' AND lake.system.bucket(4, id) + 0 = 0"
    )
    assert sorted(answer(spark, f"SELECT id FROM {name} WHERE x = -1")) == sorted(expected)
    assert answer(spark, f"SELECT count(*), sum(id) FROM {name}") == [[12, 66]]
    spark.sql(f"DELETE FROM {name} WHERE lake.system.bucket(4, id) = 1 OR country IS NULL")
    left = answer(
        spark,
        f"SELECT id FROM {SALES} WHERE NOT (lake.system.bucket(4, id) + 0 = 1 OR country IS NULL)",
    )
    assert sorted(answer(spark, f"SELECT id FROM {name}")) == sorted(left)
    (operation,) = answer(
        spark, f"SELECT operation FROM {name}.snapshots ORDER BY committed_at DESC LIMIT 1"
    )
    assert operation == ["delete"]
    spark.sql(f"DROP TABLE {name}")


def test_states_of_a_table_are_counted_each_for_itself(spark):
    name = f"{NAMESPACE}.states"
    spark.sql(f"CREATE TABLE {name} (id BIGINT)")
    for rows in (1, 2):
        spark.sql(f"INSERT INTO {name} SELECT id FROM range({rows})")
    (first,) = answer(
        spark, f"SELECT min(snapshot_id) FROM {name}.snapshots WHERE parent_id IS NULL"
    )[0]
    spark.sql(f"ALTER TABLE {name} CREATE BRANCH audit AS OF VERSION {first}")
    assert answer(spark, f"SELECT count(*) FROM {name}") == [[3]]
    assert answer(spark, f"SELECT count(*) FROM {name} VERSION AS OF {first}") == [[1]]
    assert answer(spark, f"SELECT count(*) FROM {name}.branch_audit") == [[1]]
    assert answer(spark, f"SELECT count(*) FROM {name}.snapshots") == [[2]]
    appended = spark.read.option("start-snapshot-id", str(first)).table(name)
    assert appended.groupBy().count().collect()[0][0] == 2
    spark.sql(f"DROP TABLE {name}")
