"""A MERGE that only inserts: Spark makes an append of it, and others may add what it found missing."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as f

from tests.peers.prepared_statement import prepare, run
from tests.spark.standing_still import FUNCTION, StandingStill

pytestmark = pytest.mark.usefixtures("own_namespace")

NAMESPACE = "inserting_merge_tests"
NUMBERS = itertools.count(1)
SCHEMA = pa.schema([("id", pa.int64()), ("k", pa.string())])
OTHER_SPARKS = ("3.5", "4.0", "4.1", "4.2")
SOURCE = "(SELECT CAST(id AS BIGINT) AS id, 'a' AS k FROM VALUES (1), (5) AS r(id))"
INSERT = "WHEN NOT MATCHED THEN INSERT *"
PLAIN = f"MERGE INTO {{t}} t USING {SOURCE} s ON t.id = s.id {INSERT}"
# all of them insert a row of key 5
FORMS = {
    "one clause": PLAIN,
    "a condition": f"MERGE INTO {{t}} t USING {SOURCE} s ON t.id = s.id AND t.k = 'a' "
    "WHEN NOT MATCHED AND s.id < 9 THEN INSERT (k, id) VALUES ('a', s.id)",
    "two clauses": f"MERGE INTO {{t}} t USING {SOURCE} s ON t.id = s.id "
    "WHEN NOT MATCHED AND s.id > 9 THEN INSERT (id, k) VALUES (s.id, 'z') " + INSERT,
    "the table itself": "MERGE INTO {t} t USING (SELECT id + 4 AS id, k FROM {t} WHERE id = 1) s "
    f"ON t.id = s.id {INSERT}",
    "a clause before it": f"WITH s AS (SELECT * FROM {SOURCE}) MERGE INTO {{t}} t USING s "
    f"ON t.id = s.id {INSERT}",
    "a condition without the source": "MERGE INTO {t} t USING (SELECT 5L AS id, 'a' AS k) s ON t.id > 4 "
    + INSERT,
    "schema evolution": "MERGE WITH SCHEMA EVOLUTION INTO {t} t USING (SELECT *, 1 AS more FROM "
    f"{SOURCE}) s ON t.id = s.id {INSERT}",
}
IN_GATE = ("one clause", "schema evolution")


@dataclass
class Engine:
    """A Spark."""

    minor: str
    sql: Any
    prepare: Any
    run: Any


@pytest.fixture
def engine(request):
    minor = request.param
    if minor == "4.3":
        spark = request.getfixturevalue("spark")
        sql = request.getfixturevalue("sql_on")(minor)
        return Engine(minor, sql, partial(prepare, spark), run)
    other = request.getfixturevalue("other_spark")(minor)
    return Engine(minor, other.sql, other.prepare, other.run)


PLAINLY = pytest.mark.full("the gate has the rule plainly, in planner/test_read_targets.py")
EVERY = pytest.mark.parametrize(
    "engine",
    [
        "4.3",
        *(pytest.param(m, marks=pytest.mark.full("starts another Spark")) for m in OTHER_SPARKS),
    ],
    indirect=True,
)


@pytest.fixture
def new_table(catalog):
    made = []

    def new(**properties):
        name = f"{NAMESPACE}.t{next(NUMBERS)}"
        table = catalog.create_table(name, SCHEMA, properties=properties)
        made.append(name)
        return table

    yield new
    for name in made:
        catalog.drop_table(name)


def rows(*ids, k="a"):
    return pa.table([list(ids), [k] * len(ids)], SCHEMA)


def name_of(table):
    return f"lake.{'.'.join(table.identifier)}"


def ids(table, branch="main"):
    scan = table.refresh().scan(selected_fields=("id",)).use_ref(branch)
    return sorted(scan.to_arrow()["id"].to_pylist())


def check_refused(engine, catalog, table, text, place=""):
    """Others insert the row that the statement has found missing: it is there once."""
    statement = engine.prepare(text.format(t=name_of(table) + place))
    branch = place.removeprefix(".branch_") or "main"
    catalog.load_table(table.identifier).append(rows(5), branch=branch)
    before = ids(table, branch)
    with pytest.raises(Exception, match="Found conflicting files that can contain"):
        engine.run(statement)
    assert ids(table, branch) == before
    assert before.count(5) == 1


def cases():
    """Forms on all Sparks that have them."""
    for minor in ("4.3", *OTHER_SPARKS):
        for form in FORMS:
            if form != "schema evolution" or minor >= "4.1":
                is_in_gate = minor == "4.3" and form in IN_GATE
                few = pytest.mark.full("two forms on the newest Spark are in the gate")
                yield pytest.param(minor, form, marks=[] if is_in_gate else few)


@pytest.mark.parametrize(("engine", "form"), [*cases()], indirect=["engine"])
def test_it_is_refused_where_others_insert_what_it_missed(engine, catalog, new_table, form):
    table = new_table()
    table.append(rows(1, 2))
    check_refused(engine, catalog, table, FORMS[form])
    table.delete("id = 5")
    engine.sql(FORMS[form].format(t=name_of(table)))
    assert ids(table) == [1, 2, 5]
    snapshot = table.current_snapshot()
    assert snapshot.operation == "append"
    # Spark 4.1 counts what goes through a node of its own, which one clause does not need
    is_counted = engine.minor >= ("4.1" if form == "two clauses" else "4.2")
    counted = "1" if is_counted else None
    assert snapshot.summary.get("spark.merge-into.num-target-rows-inserted") == counted


@EVERY
def test_so_it_is_in_an_empty_table_and_on_branches(engine, catalog, new_table):
    table = new_table(**{"format-version": "1"})
    check_refused(engine, catalog, table, PLAIN)
    table.delete("id = 5")
    table.append(rows(1, 2))
    with table.manage_snapshots() as manage:
        manage.create_branch(table.current_snapshot().snapshot_id, "audit")
    check_refused(engine, catalog, table, PLAIN, ".branch_audit")
    assert ids(table) == [1, 2]
    statement = engine.prepare(PLAIN.format(t=name_of(table)))
    catalog.load_table(table.identifier).append(rows(6), branch="audit")
    engine.run(statement)
    assert (ids(table), ids(table, "audit")) == ([1, 2, 5], [1, 2, 5, 6])


@PLAINLY
@EVERY
def test_so_it_is_on_the_branch_that_a_session_is_audited_on(engine, catalog, new_table):
    table = new_table(**{"write.wap.enabled": "true"})
    table.append(rows(1, 2))
    engine.sql("SET spark.wap.branch=audit")
    try:
        statement = engine.prepare(PLAIN.format(t=name_of(table)))
        catalog.load_table(table.identifier).append(rows(5))
        with pytest.raises(Exception, match="Found conflicting files that can contain"):
            engine.run(statement)
        table.refresh().delete("id = 5")
        engine.sql(PLAIN.format(t=name_of(table)))
        statement = engine.prepare(PLAIN.format(t=name_of(table)).replace("(5)", "(7)"))
        catalog.load_table(table.identifier).append(rows(7), branch="audit")
        with pytest.raises(Exception, match="Found conflicting files that can contain"):
            engine.run(statement)
    finally:
        engine.sql("RESET spark.wap.branch")
    assert (ids(table), ids(table, "audit")) == ([1, 2], [1, 2, 5, 7])


@EVERY
def test_the_rows_of_a_cached_table_are_not_taken_for_it(engine, catalog, new_table):
    table = new_table()
    table.append(rows(1, 2))
    engine.sql(f"CACHE TABLE {name_of(table)}")
    try:
        assert engine.sql(f"SELECT count(*) FROM {name_of(table)}") == [[2]]
        check_refused(engine, catalog, table, PLAIN)
        engine.sql(f"REFRESH TABLE {name_of(table)}")
        engine.sql(PLAIN.format(t=name_of(table)).replace("(5)", "(6)"))
        assert engine.sql(f"SELECT count(*) FROM {name_of(table)}") == [[4]]
    finally:
        engine.sql(f"UNCACHE TABLE {name_of(table)}")
    assert ids(table) == [1, 2, 5, 6]


@PLAINLY
@EVERY
def test_what_others_add_where_it_does_not_look_is_no_conflict(engine, catalog, new_table):
    table = new_table()
    table.append(rows(1, 2))
    statement = engine.prepare(FORMS["a condition"].format(t=name_of(table)))
    catalog.load_table(table.identifier).append(rows(5, k="b"))
    engine.run(statement)
    assert ids(table) == [1, 2, 5, 5]
    never = PLAIN.format(t=name_of(table)).replace("t.id = s.id", "false")
    statement = engine.prepare(never)
    catalog.load_table(table.identifier).append(rows(6))
    engine.run(statement)
    assert ids(table) == [1, 1, 2, 5, 5, 5, 6]


@PLAINLY
@EVERY
def test_under_snapshot_isolation_it_is_the_append_that_spark_makes_of_it(
    engine, catalog, new_table
):
    table = new_table(**{"write.merge.isolation-level": "snapshot"})
    table.append(rows(1, 2))
    statement = engine.prepare(PLAIN.format(t=name_of(table)))
    catalog.load_table(table.identifier).append(rows(5))
    engine.run(statement)
    assert ids(table) == [1, 2, 5, 5]


@EVERY
def test_an_insert_that_reads_its_table_stays_an_append(engine, catalog, new_table):
    table = new_table()
    table.append(rows(1, 2))
    name = name_of(table)
    for rest in (
        f"s WHERE NOT EXISTS (SELECT * FROM {name} t WHERE t.id = s.id)",
        f"s LEFT ANTI JOIN {name} t ON t.id = s.id",
    ):
        statement = engine.prepare(f"INSERT INTO {name} SELECT * FROM {SOURCE} {rest}")
        catalog.load_table(table.identifier).append(rows(5))
        engine.run(statement)
        assert ids(table) == [1, 2, 5, 5]
        table.refresh().delete("id = 5")


def test_it_is_refused_while_it_runs_and_so_is_one_of_a_dataframe(
    spark, catalog, new_table, tmp_path
):
    table = new_table()
    table.append(rows(1, 2))

    def merge_dataframe():
        source = spark.range(5, 6, 1, 1).selectExpr(f"{FUNCTION}(id) AS id", "'a' AS k").alias("s")
        of_keys = f.expr(f"s.id = {name_of(table)}.id")
        source.mergeInto(name_of(table), of_keys).whenNotMatched().insertAll().merge()

    text = (
        f"MERGE INTO {name_of(table)} t USING (SELECT {FUNCTION}(id) AS id, 'a' AS k "
        f"FROM range(5, 6, 1, 1)) s ON t.id = s.id {INSERT}"
    )
    for number, merge in enumerate((text, merge_dataframe)):
        still = StandingStill(spark, tmp_path / str(number))
        with pytest.raises(PySparkException, match="Found conflicting files that can contain"):
            still.run(merge, lambda: catalog.load_table(table.identifier).append(rows(5)))
        still.close()
        assert ids(table) == [1, 2, 5]
        table.delete("id = 5")
