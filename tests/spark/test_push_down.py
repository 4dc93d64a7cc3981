"""What Spark leaves to the planner: aggregates, limits, functions, and filters that partitions decide."""

from __future__ import annotations

import re
from contextlib import contextmanager

import pytest
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from tests.rings import sampled

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
    sampled(
        [
            (
                "SELECT count(*), min(id), max(ts) > TIMESTAMP '2026-01-03' FROM {t}",
                [[12, 0, True]],
            ),
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
        keep=2,
    ),
)
def test_aggregates_need_no_file(spark, query, rows):
    query = query.format(t=SALES)
    assert re.search(r"LocalTableScan \[((count|min|max)\(.*\)|country)#", plan(spark, query))
    assert answer(spark, query) == rows
    key = "spark.sql.iceberg.aggregate-push-down.enabled"
    with setting(spark, key, "false"):
        assert "LocalTableScan" not in plan(spark, query)
        assert answer(spark, query) == rows


def test_floats_without_nan_and_fields_of_structs_need_no_file(spark):
    name = f"{NAMESPACE}.measured"
    spark.sql(f"CREATE TABLE {name} (x DOUBLE, y FLOAT, st STRUCT<n: INT, deep: STRUCT<d: DATE>>)")
    spark.sql(
        f"INSERT INTO {name} VALUES (1.5, -1.25, NULL), (DOUBLE('Infinity'), 2.5, named_struct('n', 7, 'deep', NULL)), "
        "(-3, NULL, named_struct('n', NULL, 'deep', named_struct('d', DATE '2026-01-01')))"
    )
    query = f"SELECT min(x), max(x), min(y), max(y), count(st.n), max(st.n), count(st.deep.d) FROM {name}"
    assert "LocalTableScan" in plan(spark, query)
    assert answer(spark, query) == [[-3.0, float("inf"), -1.25, 2.5, 1, 7, 1]]
    spark.sql(f"INSERT INTO {name} VALUES (DOUBLE('NaN'), 3.5, NULL)")
    assert "LocalTableScan" not in plan(spark, f"SELECT max(x) FROM {name}")
    assert str(answer(spark, f"SELECT max(x), max(y) FROM {name}")) == "[[nan, 3.5]]"
    assert "LocalTableScan" in plan(spark, f"SELECT max(y) FROM {name}")
    spark.sql(f"DROP TABLE {name}")


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
        ("country IN (NULL, 'c1', 'c9')", False, [1, 4, 7, 10]),
        ("NOT (country IN (NULL, 'c1', 'c9'))", False, []),
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


# most are of Iceberg's TestFilterPushDown
SHOWN = {
    "country = 'c1'": "country IS NOT NULL, country = 'c1'",
    "country NOT IN ('c1', 'c2')": "(country IS NOT NULL AND country NOT IN ('c1', 'c2'))",
    "country LIKE 'c%' AND id IN (1, 5)": "country IS NOT NULL, country LIKE 'c%', id IN (1, 5)",
    "country NOT LIKE 'c5%'": "country IS NOT NULL, NOT (country LIKE 'c5%')",
    "country IN (NULL, 'c1', 'c9')": "country IN ('c1', 'c9')",
    "country <=> NULL OR id >= 1": "(country IS NULL OR id >= 1)",
    "x = double('NaN')": "x IS NOT NULL, is_nan(x)",
    "x != double('NaN')": "x IS NOT NULL, NOT (is_nan(x))",
    "x = double('-infinity')": "x IS NOT NULL, x = -Infinity",
    "ts < TIMESTAMP '2021-07-01T00:00:00.000Z'": "ts IS NOT NULL, ts < 1625097600000000",
    "lake.system.bucket(4, id) = 3": "bucket[4](id) = 3",
}


@pytest.mark.parametrize("where", SHOWN)
def test_plans_show_the_pushed_filters_in_icebergs_words(spark, where):
    assert f", filters={SHOWN[where]}," in plan(spark, f"SELECT id FROM {SALES} WHERE {where}")


FUNCTIONS = [
    # what is asked, and the same in a way that only rows can answer
    ("{f}.bucket(4, id) = 3", "{f}.bucket(4, id) + 0 = 3"),
    ("{f}.bucket(4, id) IN (0, 2) AND id > 1", "{f}.bucket(4, id) + 0 IN (0, 2) AND id > 1"),
    ("{f}.bucket(4, CAST(k AS INT)) <=> 1", "{f}.bucket(4, CAST(k AS INT)) + 0 <=> 1"),
    ("NOT {f}.truncate(2, s) = 'a0'", "NOT concat({f}.truncate(2, s), '') = 'a0'"),
    ("{f}.truncate(10, id) >= 20", "{f}.truncate(10, id) + 0 >= 20"),
    ("{f}.truncate(10, p) = 10.0", "{f}.truncate(10, p) + 0 = 10.0"),
    ("{f}.days(ts) < DATE '2026-01-03'", "date_add({f}.days(ts), 0) < DATE '2026-01-03'"),
    (
        "{f}.hours(n) = 490900 OR {f}.years(d) = 57",
        "{f}.hours(n) + 0 = 490900 OR {f}.years(d) + 0 = 57",
    ),
    ("{f}.months(d) IN (672, 673) OR k IS NULL", "{f}.months(d) + 0 IN (672, 673) OR k IS NULL"),
    ("{f}.years(n) <> 56", "{f}.years(n) + 0 <> 56"),
    ("{f}.bucket(4, b) = 1", "{f}.bucket(4, b) + 0 = 1"),
    ("{f}.days(ts) IS NULL", "date_add({f}.days(ts), 0) IS NULL"),
    ("{f}.bucket(k, id) = 1", "{f}.bucket(k, id) + 0 = 1"),
]


def test_functions_in_filters_leave_out_files_on_spark_3_5_and_answer_as_rows_do(other_spark):
    """Iceberg's ReplaceStaticInvoke: Spark 3.5 has made calls of code of them, which no table is told."""
    run = other_spark("3.5").sql
    name, functions = "lake.push_down_35.t", "lake.system"
    run("CREATE NAMESPACE lake.push_down_35")
    run(
        f"CREATE TABLE {name} (id BIGINT, k SMALLINT, s STRING, p DECIMAL(9, 1), ts TIMESTAMP, "
        "n TIMESTAMP_NTZ, d DATE, b BINARY) "
        "PARTITIONED BY (bucket(4, id), days(ts), truncate(10, p), truncate(2, s), months(d))"
    )
    run(
        f"INSERT INTO {name} SELECT id, IF(id % 5 = 4, NULL, id % 4 + 1), concat('a', id), id + 0.5, "
        "IF(id % 7 = 6, NULL, timestamp_micros(1767225600000000 + id * 21600000000)), "
        "to_timestamp_ntz(timestamp_micros(1767225600000000 + id * 3600000000)), "
        "date_add(DATE '2026-01-01', CAST(id * 20 AS INT)), CAST(s AS BINARY) "
        "FROM (SELECT id, concat('b', id) AS s FROM range(0, 40))"
    )
    for where, on_rows in FUNCTIONS:
        asked, expected = (text.format(f=functions) for text in (where, on_rows))
        rows = run(f"SELECT id FROM {name} WHERE {expected} ORDER BY id")
        assert run(f"SELECT id FROM {name} WHERE {asked} ORDER BY id") == rows, where
    [[text]] = run(f"EXPLAIN SELECT id FROM {name} WHERE {functions}.bucket(4, id) = 3 AND id > 1")
    assert "bucket" in text.split("BatchScan")[-1]
    assert "bucket" not in text.split("BatchScan")[0], "partitions decide it, not rows"
    [[counted]] = run(f"EXPLAIN SELECT count(*) FROM {name} WHERE {functions}.bucket(4, id) = 3")
    assert "LocalTableScan" in counted
    for where, on_rows in FUNCTIONS[:3] + FUNCTIONS[5:8]:
        asked, expected = (text.format(f=functions) for text in (where, on_rows))
        left = run(f"SELECT id FROM {name} WHERE NOT coalesce({expected}, false) ORDER BY id")
        run(f"DELETE FROM {name} WHERE {asked}")
        assert run(f"SELECT id FROM {name} ORDER BY id") == left, where
    run(f"DROP TABLE {name}")
    run("DROP NAMESPACE lake.push_down_35")


def test_deletes_by_functions_drop_whole_files_on_spark_3_5(other_spark):
    run, name = other_spark("3.5").sql, "lake.push_down_files.t"
    run("CREATE NAMESPACE lake.push_down_files")
    run(f"CREATE TABLE {name} (id BIGINT, x INT) PARTITIONED BY (bucket(4, id))")
    run(f"INSERT INTO {name} SELECT id, 0 FROM range(40)")
    expected = run(f"SELECT id FROM {name} WHERE lake.system.bucket(4, id) + 0 <> 1 ORDER BY id")
    assert 0 < len(expected) < 40
    run(f"DELETE FROM {name} WHERE lake.system.bucket(4, id) = 1")
    assert run(f"SELECT id FROM {name} ORDER BY id") == expected
    query = f"SELECT operation FROM {name}.snapshots ORDER BY committed_at DESC LIMIT 1"
    assert run(query) == [["delete"]]
    run(f"UPDATE {name} SET x = 1 WHERE lake.system.bucket(4, id) = 2 AND id > 9")
    changed = (
        f"SELECT id FROM {name} WHERE lake.system.bucket(4, id) + 0 = 2 AND id > 9 ORDER BY id"
    )
    assert run(f"SELECT id FROM {name} WHERE x = 1 ORDER BY id") == run(changed)
    assert run(f"SELECT id FROM {name} ORDER BY id") == expected
    run(
        f"MERGE INTO {name} t USING (SELECT id FROM range(40)) s ON t.id = s.id "
        "AND lake.system.bucket(4, t.id) = 3 WHEN MATCHED THEN UPDATE SET x = 7"
    )
    merged = f"SELECT id FROM {name} WHERE lake.system.bucket(4, id) + 0 = 3 ORDER BY id"
    assert run(f"SELECT id FROM {name} WHERE x = 7 ORDER BY id") == run(merged)
    assert run(f"SELECT id FROM {name} ORDER BY id") == expected
    run(f"DROP TABLE {name}")
    run("DROP NAMESPACE lake.push_down_files")


def test_a_merge_that_rewrites_files_joins_without_what_partitions_decide(sql):
    name = f"{NAMESPACE}_merged.t"
    sql(f"CREATE NAMESPACE IF NOT EXISTS {NAMESPACE}_merged")
    sql(f"CREATE TABLE {name} (id BIGINT, k STRING, x BIGINT) USING iceberg PARTITIONED BY (k)")
    sql(f"INSERT INTO {name} SELECT id, concat('k', id % 3), 0 FROM range(6)")
    merge = (
        f"MERGE INTO {name} t USING (SELECT id + 1 AS id FROM range(6)) s "
        "ON t.id = s.id AND t.k IN ('k0', 'k1') AND t.x < 9 "
        "WHEN MATCHED THEN UPDATE SET x = t.id WHEN NOT MATCHED THEN INSERT (id, k, x) VALUES (s.id, 'new', 7)"
    )
    [[text]] = sql(f"EXPLAIN {merge}")
    [join] = re.findall(r"Join .*FullOuter.*", text)
    assert "x#" in join
    assert "k#" not in join
    sql(merge)
    expected = [[0, "k0", 0], [1, "k1", 1], [2, "k2", 0], [2, "new", 7], [3, "k0", 3], [4, "k1", 4]]
    expected += [[5, "k2", 0], [5, "new", 7], [6, "new", 7]]
    assert sql(f"SELECT * FROM {name} ORDER BY id, k") == expected
    sql(f"DROP TABLE {name}")


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


def test_a_filter_that_a_program_nests_deeply_is_planned(spark):
    # SQL text becomes a balanced tree, the calls of a program one that is as deep as they are many
    deep = F.col("id") < 2
    for level in range(200):
        deep = (deep & (F.col("x") > -level - 1), deep | (F.col("id") == level))[level % 2]
    found = spark.table(SALES).filter(deep).collect()
    assert sorted(row.id for row in found) == [0, 1, 3, 5, 7, 9, 11]
