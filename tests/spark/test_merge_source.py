"""What MERGE, UPDATE and DELETE may read twice: what they find to change, and what they change, agree."""

from __future__ import annotations

import itertools
import re
import time

import pyarrow as pa
import pytest

from tests.peers.prepared_statement import prepare, run
from tests.rings import sampled

pytestmark = pytest.mark.usefixtures("own_namespace")

NAMESPACE = "merge_source_tests"
NUMBERS = itertools.count(1)
FILTER = "spark.sql.optimizer.runtime.rowLevelOperationGroupFilter.enabled"
SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string())])
MODES = ("copy-on-write", "merge-on-read")
SPARKS = ("4.3", "3.5")
SETTING = "spark.sql.icecomb.keepSourceRows"
MERGE = """MERGE INTO {t} t USING {s} s ON t.id = s.id
    WHEN MATCHED THEN UPDATE SET v = 'new'
    WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 'new')"""


def table_of(catalog, *files, **properties):
    table = catalog.create_table(
        f"{NAMESPACE}.t{next(NUMBERS)}", SCHEMA, properties={"format-version": "2", **properties}
    )
    with table.transaction() as change:
        for ids in files:
            columns = {"id": pa.array(ids, pa.int64()), "v": ["old"] * len(ids)}
            change.append(pa.table(columns, SCHEMA))
    return table


@pytest.fixture(params=MODES)
def target(request, catalog):
    """Twenty rows in five files."""
    files = [range(first, first + 4) for first in range(0, 20, 4)]
    table = table_of(catalog, *files, **{"write.merge.mode": request.param})
    yield table
    catalog.drop_table(table.identifier)


def name_of(table):
    return f"lake.{'.'.join(table.identifier)}"


def values(table):
    rows = table.refresh().scan().to_arrow().to_pylist()
    found = {row["id"]: row["v"] for row in rows}
    assert len(found) == len(rows), "a row is there twice"
    return found


@pytest.mark.parametrize("random", sampled(["rand() < 0.5", "hash(uuid()) % 2 = 0"], keep=1))
def test_a_source_that_says_it_is_random_is_read_once_or_refused(sql, target, random):
    source = f"(SELECT id FROM range(40) WHERE {random})"
    try:
        sql(MERGE.format(t=name_of(target), s=source))
    except Exception as refused:  # noqa: BLE001 - another one in each Spark
        assert "NON_DETERMINISTIC_EXPRESSIONS" in str(refused)  # noqa: PT017
        assert set(values(target).values()) == {"old"}
    else:
        assert set(range(20)) <= values(target).keys()


@pytest.mark.parametrize("target", sampled(MODES[::-1], keep=1), indirect=True)
def test_a_table_that_changes_meanwhile_is_read_in_one_state(spark, catalog, target):
    source = table_of(catalog, [0, 5, 50])
    statement = prepare(spark, MERGE.format(t=name_of(target), s=name_of(source)))
    rows = pa.table({"id": [9, 13, 60], "v": ["later"] * 3}, SCHEMA)
    catalog.load_table(source.identifier).append(rows)
    catalog.load_table(source.identifier).delete("id = 5")
    run(statement)
    found = values(target)
    assert {key for key, value in found.items() if value == "new"} == {0, 5, 50}
    assert found.keys() == {*range(20), 50}
    catalog.drop_table(source.identifier)


@pytest.fixture
def growing(spark, tmp_path):
    """A view of rows of which there are more at each reading, unknown to Spark; and how often it was read."""
    readings = tmp_path / "readings"

    def read(_):
        with readings.open("a") as file:
            file.write("x")
        return [(key,) for key in range(0, 4 * len(readings.read_text()), 2)]

    rdd = spark.sparkContext.parallelize([0], 1).mapPartitions(read)
    frame = spark.createDataFrame(rdd, "id BIGINT")
    frame.createOrReplaceTempView("growing")
    yield frame, lambda: len(readings.read_text()) if readings.exists() else 0
    frame.unpersist()
    spark.catalog.dropTempView("growing")


@pytest.mark.parametrize("target", sampled(MODES, keep=1), indirect=True)
def test_a_source_that_grows_is_read_once_where_spark_looks_for_no_files_first(
    spark, target, growing
):
    _, readings = growing
    spark.conf.set(FILTER, "false")
    try:
        spark.sql(MERGE.format(t=name_of(target), s="growing"))
    finally:
        spark.conf.unset(FILTER)
    found = values(target)
    assert readings() == 1
    assert {key for key, value in found.items() if value == "new"} == {0, 2}
    assert found.keys() == set(range(20))


@pytest.mark.parametrize("target", sampled(MODES, keep=1), indirect=True)
def test_a_source_that_grows_and_is_persisted_is_read_once(spark, target, growing):
    frame, readings = growing
    frame.persist()
    spark.sql(MERGE.format(t=name_of(target), s="growing"))
    found = values(target)
    assert readings() == 1
    assert {key for key, value in found.items() if value == "new"} == {0, 2}
    assert found.keys() == set(range(20))


@pytest.fixture(params=sampled(SPARKS, keep=1))
def every_sql(request, sql_on):
    return sql_on(request.param)


@pytest.fixture(params=sampled(SPARKS, keep=1))
def varying(request, spark, sql_on, tmp_path):
    """Gives SQL a condition `{name}(id)` on twenty ids that more of them meet at each reading.

    Answers a statement; the function's name; how often all ids were asked about.
    """
    calls, name = tmp_path / "calls", f"growing{next(NUMBERS)}"
    code = f"""
def {name}(key):
    with open({str(calls)!r}, "a") as file:
        file.write("x")
        file.flush()
        return key % 2 == 0 and key < 4 * (1 + (file.tell() - 1) // 20)
"""
    if request.param == "4.3":
        module = {"__name__": "__main__"}
        exec(code, module)  # noqa: S102 - as other Sparks get it
        spark.udf.register(name, module[name], "boolean")
    else:
        request.getfixturevalue("other_spark")(request.param).function(name, code, "boolean")

    def readings():
        asked = len(calls.read_text()) if calls.exists() else 0
        assert asked % 20 == 0
        return asked // 20

    sql = sql_on(request.param)
    yield sql, f"(SELECT id FROM range(0, 20, 1, 1) WHERE {name}(id))", readings
    sql(f"DROP TEMPORARY FUNCTION IF EXISTS {name}")


def test_the_rows_of_a_source_that_varies_are_read_once(varying, target):
    sql, source, readings = varying
    sql(MERGE.format(t=name_of(target), s=source))
    found = values(target)
    assert readings() == 1
    assert {key for key, value in found.items() if value == "new"} == {0, 2}
    assert found.keys() == set(range(20))


@pytest.mark.full("the two rules together")
@pytest.mark.parametrize("target", sampled(MODES[::-1], keep=1), indirect=True)
def test_they_are_also_where_its_keys_are_asked_for_first(varying, target):
    sql, source, readings = varying
    sql("SET spark.sql.icecomb.mergeKeyFilter=always")
    try:
        text = MERGE.format(t=name_of(target), s=source)
        assert "might_contain" in "".join(row[0] for row in sql(f"EXPLAIN {text}"))
        sql(text)
    finally:
        sql("RESET spark.sql.icecomb.mergeKeyFilter")
    found = values(target)
    assert readings() == 1
    assert {key for key, value in found.items() if value == "new"} == {0, 2}
    assert found.keys() == set(range(20))


@pytest.mark.full("shows what the rule is good for")
@pytest.mark.parametrize("target", MODES[:1], indirect=True)
def test_without_the_rule_a_source_that_varies_is_read_again(varying, target):
    sql, source, readings = varying
    sql(f"SET {SETTING}=never")
    try:
        sql(MERGE.format(t=name_of(target), s=source))
    finally:
        sql(f"RESET {SETTING}")
    assert readings() > 1


SUBQUERIES = {
    "DELETE FROM {t} WHERE id IN (SELECT id FROM {s})": {*range(20)} - {0, 2},
    "DELETE FROM {t} WHERE id > (SELECT max(id) FROM {s})": {0, 1, 2},
    "DELETE FROM {t} t WHERE EXISTS (SELECT 1 FROM {s} s WHERE s.id = t.id)": {*range(20)} - {0, 2},
    "UPDATE {t} t SET v = 'new' WHERE EXISTS (SELECT 1 FROM {s} s WHERE s.id = t.id)": {*range(20)},
    "DELETE FROM {t} WHERE id NOT IN (SELECT id FROM {s})": {0, 2},
    "UPDATE {t} SET v = 'new' WHERE id IN (SELECT id FROM {s})": {*range(20)},
}
OF_SUBQUERIES = [(mode, each) for each in SUBQUERIES for mode in MODES]


@pytest.mark.parametrize(("mode", "statement"), sampled(OF_SUBQUERIES, keep=2))
def test_the_rows_of_a_subquery_that_varies_are_read_once(varying, catalog, statement, mode):
    sql, source, readings = varying
    of = {f"write.{command}.mode": mode for command in ("delete", "update")}
    table = table_of(catalog, *(range(n, n + 4) for n in range(0, 20, 4)), **of)
    sql(statement.format(t=name_of(table), s=source))
    found = values(table)
    assert readings() == 1
    assert found.keys() == SUBQUERIES[statement]
    if "UPDATE" in statement:
        assert {key for key, value in found.items() if value == "new"} == {0, 2}
    catalog.drop_table(table.identifier)


def explained(sql, text, setting="auto"):
    sql(f"SET {SETTING}={setting}")
    try:
        plan = "\n".join(row[0] for row in sql(f"EXPLAIN {text}"))
    finally:
        sql(f"RESET {SETTING}")
    assert "== Physical Plan ==" in plan, plan
    return re.sub(r"#\d+L?|plan_id=\d+|@[0-9a-f]+|\[id=.*?\]", "", plan)


SAFE = [
    "{s}",
    "(SELECT s.id, max(v) AS v, count(*), sum(s.id) FROM {s} s GROUP BY s.id)",
    "(SELECT DISTINCT a.id FROM {s} a LEFT JOIN {s} b ON a.id = b.id WHERE upper(b.v) > 'A')",
    "(SELECT id FROM {s} UNION ALL SELECT explode(array(1, 2)) UNION SELECT id FROM range(3))",
    "(SELECT col1 AS id, current_date() FROM VALUES (1), (2))",
    "(SELECT id FROM (SELECT id, rank() OVER (ORDER BY id) n FROM {s}) WHERE n < 3 ORDER BY id)",
    "(WITH w AS (SELECT id FROM {s}) SELECT id FROM w WHERE id IN (SELECT id FROM w))",
]
UNSAFE = [
    "(SELECT id FROM {s} LIMIT 2)",
    "(SELECT id FROM {s} ORDER BY v LIMIT 2)",
    "(SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY v ORDER BY v) n FROM {s}) WHERE n = 1)",
    "(SELECT id FROM {s} TABLESAMPLE (50 PERCENT))",
    "(SELECT first(id) AS id FROM {s} GROUP BY v)",
    "(SELECT max(id) AS id FROM {s} GROUP BY v HAVING sum(id / 3.0D) > 1)",
    "(SELECT CAST(avg(id) AS BIGINT) AS id FROM {s} GROUP BY v)",
    "(SELECT max(id) AS id, max(id / 3.0D) FROM {s} GROUP BY v)",
    "(SELECT max(id) AS id, sum(CAST(id AS DECIMAL(38, 0))) FROM {s} GROUP BY v)",
    "(SELECT id FROM {s} WHERE id IN (SELECT id FROM {s} LIMIT 2))",
    "(WITH w AS (SELECT id FROM {s} LIMIT 2) SELECT id FROM w)",
    "(SELECT id FROM {files})",
    "(SELECT snapshot_id AS id FROM {s}.snapshots)",
]


def every_other(queries):
    """Half of them are in the gate."""
    others = pytest.param(queries[1::2], marks=pytest.mark.full("every other query is in the gate"))
    return pytest.mark.parametrize("queries", [queries[::2], others], ids=["some", "others"])


@pytest.mark.full("rows are in the gate")
@every_other(SAFE)
@pytest.mark.parametrize("target", MODES[:1], indirect=True)
def test_plans_over_sources_that_do_not_vary_are_as_they_were(every_sql, catalog, target, queries):
    source = table_of(catalog, [0, 5, 50])
    for query in queries:
        text = MERGE.format(t=name_of(target), s=query.format(s=name_of(source)))
        plan = explained(every_sql, text)
        assert plan == explained(every_sql, text, "never"), query
        assert "ExistingRDD" not in plan, query
        assert "ExistingRDD" in explained(every_sql, text, "always"), query
    catalog.drop_table(source.identifier)


@pytest.mark.full("plans of many sources; that rows are kept is shown by rows in the gate")
@every_other(UNSAFE)
@pytest.mark.parametrize("target", MODES[:1], indirect=True)
def test_rows_of_sources_that_may_vary_are_kept(every_sql, catalog, target, queries, tmp_path):
    source = table_of(catalog, [0, 5, 50])
    files = f"parquet.`{tmp_path / 'files'}`"
    every_sql(f"INSERT OVERWRITE DIRECTORY '{tmp_path / 'files'}' USING parquet SELECT 50L AS id")
    for query in queries:
        chosen = query.format(s=name_of(source), files=files)
        text = MERGE.format(t=name_of(target), s=chosen)
        assert "ExistingRDD" in explained(every_sql, text), query
        assert "ExistingRDD" not in explained(every_sql, text, "never"), query
    catalog.drop_table(source.identifier)


@pytest.mark.parametrize("target", MODES[:1], indirect=True)
def test_a_clause_before_the_statement_is_part_of_its_source(every_sql, catalog, target):
    source = table_of(catalog, [0, 5, 50])
    merge = MERGE.format(t=name_of(target), s="w")
    for limit in ("", " LIMIT 10"):
        every_sql(f"WITH w AS (SELECT id FROM {name_of(source)}{limit}) {merge}")
    assert values(target).keys() == {*range(20), 50}
    assert {key for key, value in values(target).items() if value == "new"} == {0, 5, 50}
    catalog.drop_table(source.identifier)


@pytest.mark.parametrize("target", MODES[:1], indirect=True)
def test_rows_are_not_kept_where_they_are_read_once(every_sql, target):
    source = "(SELECT id FROM range(40) LIMIT 2)"
    head = f"MERGE INTO {name_of(target)} t USING {source} s ON t.id = s.id"
    for clauses in (
        "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 'new')",
        "WHEN MATCHED THEN DELETE WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = 'x'",
    ):
        assert "ExistingRDD" not in explained(every_sql, f"{head} {clauses}")


@pytest.mark.parametrize("target", MODES[:1], indirect=True)
def test_a_subquery_that_can_neither_be_repeated_nor_kept_is_refused(every_sql, target):
    condition = (
        "EXISTS (SELECT 1 FROM (SELECT id, row_number() OVER (ORDER BY id % 2) n"
        " FROM range(9) s WHERE s.id = t.id) WHERE n = 1)"
    )
    before = values(target)
    with pytest.raises(Exception, match="Write its rows to a table first"):
        every_sql(f"DELETE FROM {name_of(target)} t WHERE {condition}")
    assert values(target) == before


@pytest.mark.parametrize("target", MODES[:1], indirect=True)
def test_another_value_of_the_setting_is_refused(every_sql, target):
    every_sql(f"SET {SETTING}=sometimes")
    try:
        with pytest.raises(Exception, match="Set it to auto, always or never"):
            every_sql(MERGE.format(t=name_of(target), s="(SELECT id FROM range(3))"))
    finally:
        every_sql(f"RESET {SETTING}")


def kept(spark, table, source):
    """The rows that a MERGE would keep, and not run."""
    state = spark._jsparkSession.sessionState()
    skip = spark._jvm.org.apache.spark.sql.execution.CommandExecutionMode.SKIP()
    text = MERGE.format(t=name_of(table), s=source)
    leaves = state.executePlan(state.sqlParser().parsePlan(text), skip).analyzed().collectLeaves()
    every = [leaves.apply(at) for at in range(leaves.size())]
    return next(each.rdd() for each in every if each.getClass().getSimpleName() == "LogicalRDD")


@pytest.mark.parametrize("target", MODES[:1], indirect=True)
def test_rows_that_are_lost_are_not_read_from_their_source_again(spark, target, growing):
    _, readings = growing
    rows = kept(spark, target, "growing")
    assert readings() == 0
    assert [rows.count(), rows.count()] == [2, 2]
    stored = spark.sparkContext._jsc.getPersistentRDDs()
    for each in list(stored.values()):
        if each.name() == "rows that a statement reads again":
            each.unpersist(True)
    with pytest.raises(Exception, match="lost with the executor that had them"):
        rows.count()
    assert readings() == 1


@pytest.mark.parametrize("target", sampled(MODES, keep=1), indirect=True)
def test_rows_are_let_go_when_the_statement_ends(spark, target, growing):
    def stored():
        found = spark.sparkContext._jsc.getPersistentRDDs().values()
        return [each for each in found if each.name() == "rows that a statement reads again"]

    spark.sql(MERGE.format(t=name_of(target), s="growing"))
    deadline = time.monotonic() + 60
    while stored():
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.full("writes many rows")
@pytest.mark.parametrize("target", sampled(MODES, keep=1), indirect=True)
def test_wide_and_many_rows_are_kept_as_they_are(spark, catalog, target):
    """Pages end between rows, and there are many of them."""
    spark.range(0, 30_000, 1, 3).createOrReplaceTempView("numbers")
    source = (
        "(SELECT id, repeat(cast(id AS STRING), 30) v, named_struct('a', array(id)) w"
        " FROM numbers LIMIT 30000)"
    )
    spark.sql(
        f"MERGE INTO {name_of(target)} t USING {source} s ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET v = s.v"
        " WHEN NOT MATCHED AND s.w.a[0] = s.id THEN INSERT (id, v) VALUES (s.id, s.v)"
    )
    spark.catalog.dropTempView("numbers")
    assert values(target) == {key: str(key) * 30 for key in range(30_000)}
