"""The planner killed, hung, slow or cut off while Spark asks it."""

from __future__ import annotations

import itertools
import os
import signal
import sys

import pytest

from icecomb.format.spec.partition import identity_spec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import DoubleType, LongType, NestedField
from tests.peers.dead_writers import kill, planner
from tests.rings import sampled

NAMESPACE = "planner_process"


@pytest.fixture(scope="module")
def create(catalog):
    """Makes tables of some fields."""
    numbers = itertools.count()
    catalog.create_namespace(NAMESPACE)

    def make(*fields, **more):
        return catalog.create_table((NAMESPACE, f"t{next(numbers)}"), Schema(*fields), **more)

    yield make
    for identifier in catalog.list_tables(NAMESPACE):
        catalog.drop_table(identifier)
    catalog.drop_namespace(NAMESPACE)


def name(table, catalog="lake"):
    return ".".join((catalog, *table.identifier))


def rows(spark, sql):
    return [tuple(row) for row in spark.sql(sql).collect()]


def test_a_planner_that_died_is_replaced_unnoticed(spark, create):
    table = create(NestedField(1, "x", DoubleType()))
    spark.sql(f"INSERT INTO {name(table)} VALUES (1.5)")
    frame = spark.table(name(table))
    kill(planner(spark))
    assert [tuple(row) for row in frame.collect()] == [(1.5,)]
    spark.sql(f"INSERT INTO {name(table)} VALUES (2.5)")
    assert rows(spark, f"SELECT sum(x) FROM {name(table)}") == [(4.0,)]


@pytest.mark.full(
    "one that died is replaced in the gate, and a statement under one that hangs canceled"
)
@pytest.mark.slow("waits until a planner is given up, and starts another one")
def test_a_planner_that_hangs_is_replaced_and_the_statement_still_answers(spark, create):
    table = create(NestedField(1, "x", DoubleType()))
    spark.sql(f"INSERT INTO {name(table)} VALUES (1.5)")
    properties = spark._jvm.java.lang.System
    properties.setProperty("icecomb.planner.patience.ms", "2000")
    hanging = planner(spark)
    try:
        os.kill(hanging, signal.SIGSTOP)
        assert rows(spark, f"SELECT x FROM {name(table)}") == [(1.5,)]
    finally:
        properties.clearProperty("icecomb.planner.patience.ms")
    assert planner(spark) != hanging
    spark.sql(f"INSERT INTO {name(table)} VALUES (2.5)")
    assert rows(spark, f"SELECT sum(x) FROM {name(table)}") == [(4.0,)]


SLOW = """
import time
from icecomb.spark.planner.table import tables
from icecomb.spark.planner.__main__ import main
from icecomb.spark.planner.table.tables import Tables
load = Tables.load_table
def slow(self, request):
    # whoever took a busy planner for one that hangs would end it after twice the patience
    time.sleep(5)
    return load(self, request)
Tables.load_table = slow
main()
"""


@pytest.mark.full("waits five seconds for an answer")
def test_an_answer_may_take_longer_than_the_patience_with_a_greeting(
    spark, create, metastore, tmp_path
):
    table = create(NestedField(1, "x", DoubleType()))
    slow = _catalog(spark, metastore, tmp_path, "slow", SLOW)
    properties = spark._jvm.java.lang.System
    properties.setProperty("icecomb.planner.patience.ms", "2000")
    try:
        assert rows(spark, f"SELECT x FROM {slow}.{'.'.join(table.identifier)}") == []
    finally:
        properties.clearProperty("icecomb.planner.patience.ms")


def _catalog(spark, metastore, tmp_path, catalog, code):
    """A catalog whose planner runs this code."""
    (tmp_path / "planner.py").write_text(code)
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\nexec {sys.executable} {tmp_path}/planner.py\n")
    python.chmod(0o755)
    settings = {"": "org.icecomb.spark.IcecombCatalog", ".uri": metastore.uri, ".python": python}
    for key, value in settings.items():
        spark.conf.set(f"spark.sql.catalog.{catalog}{key}", str(value))
    return catalog


CUT_OFF = """
import os
from icecomb.spark.planner import transport
from icecomb.spark.planner.__main__ import main
def converse(self, requests, connection):
    for line in requests:
        text = b"".join(transport.answer(self._handlers, line, requests))
        if b'"method":"commit_' in line:
            connection.sendall(text[:5])
            os._exit(1)
        connection.sendall(text)
transport.Server._converse = converse
main()
"""


@pytest.mark.parametrize(
    "statement",
    sampled(["INSERT INTO {} VALUES (1)", "REPLACE TABLE {} AS SELECT 1 AS i"], keep=1),
)
def test_a_commit_whose_answer_is_cut_off_keeps_its_files(
    spark, create, metastore, tmp_path, statement
):
    table = create(NestedField(1, "i", LongType()))
    cut_off = _catalog(spark, metastore, tmp_path, f"cut_off_{statement[:6].lower()}", CUT_OFF)
    with pytest.raises(Exception, match="lost"):
        spark.sql(statement.format(f"{cut_off}.{'.'.join(table.identifier)}"))
    assert table.refresh().scan().to_arrow()["i"].to_pylist() == [1]
    assert rows(spark, f"SELECT i FROM {name(table)}") == [(1,)]


DYING = """
import os, pathlib
from collections.abc import Generator
from icecomb.spark.planner import __main__ as process
dead, made = pathlib.Path(__file__).parent / "dead", process.handlers
dead.mkdir(exist_ok=True)
def dying(method, handler):
    def answer(params):
        found = handler(params)
        if (dead / method).exists():
            return found
        if isinstance(found, Generator):
            list(found)
        (dead / method).touch()
        os._exit(1)
    return answer
def handlers(*known):
    found = made(*known)
    return {**found, **{method: dying(method, found[method]) for method in METHODS}}
process.handlers = handlers
process.main()
"""
DEATHS_OF_QUERIES = {"decide_filters", "aggregate_files"}
DEATHS = {
    *DEATHS_OF_QUERIES,
    "open_stream",
    "stream_end",
    "latest_offset",
    "plan_stream",
}


@pytest.fixture
def dying(spark, create, metastore, tmp_path):
    """Makes a table, in a catalog whose planner dies once over each of some methods."""

    def make(deaths):
        fields = NestedField(1, "p", LongType()), NestedField(2, "x", DoubleType())
        table = create(*fields, partition_spec=identity_spec(fields[:1]))
        spark.sql(f"INSERT INTO {name(table)} VALUES (1, 1.5), (2, 2.5), (2, 3.5)")
        code = DYING.replace("METHODS", repr(deaths))
        return name(table, _catalog(spark, metastore, tmp_path, f"dying_{len(deaths)}", code))

    return make


@pytest.mark.full("a planner that died is replaced in the gate")
def test_what_a_query_only_reads_is_asked_again_when_the_planner_died_over_it(
    spark, dying, tmp_path
):
    there = dying(DEATHS_OF_QUERIES)
    assert rows(spark, f"SELECT count(*), max(p) FROM {there} WHERE p = 2") == [(2, 2)]
    assert {path.name for path in (tmp_path / "dead").iterdir()} == DEATHS_OF_QUERIES


@pytest.mark.full("a planner dies four times under a stream, as two do under a query")
def test_what_a_stream_only_reads_is_asked_again_when_the_planner_died_over_it(
    spark, dying, tmp_path
):
    there = dying(DEATHS)
    assert rows(spark, f"SELECT count(*), max(p) FROM {there} WHERE p = 2") == [(2, 2)]
    stream = spark.readStream.table(there).writeStream.format("memory").queryName("dying_rows")
    stream = stream.option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = stream.trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    assert rows(spark, "SELECT x FROM dying_rows ORDER BY x") == [(1.5,), (2.5,), (3.5,)]
    spark.catalog.dropTempView("dying_rows")
    assert {path.name for path in (tmp_path / "dead").iterdir()} == DEATHS
