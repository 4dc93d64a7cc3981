"""A planner that hangs, and a statement that nobody waits for any more: no thread stays, no row goes."""

from __future__ import annotations

import itertools
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from icecomb.catalog.hive.thrift.entity import LockState
from tests.rings import sampled

NUMBERS = itertools.count()
NAMESPACE = "cancellation_tests"
HANGING = """
import os
import signal
import sys
import threading
from pathlib import Path
import icecomb.spark.planner.__main__ as planner
wishes = Path(sys.argv[0]).parent
made = planner.handlers
def stop(wish):
    if wish.exists():
        wish.unlink()
        os.kill(os.getpid(), signal.SIGSTOP)
        # another thread may take the signal
        threading.Event().wait()
def hanging(method, serve):
    def answer(params):
        before, after = wishes / f"before-{method}", wishes / f"after-{method}"
        stop(before)
        done = serve(params)
        stop(after)
        return done
    return answer
planner.handlers = lambda: {name: hanging(name, serve) for name, serve in made().items()}
planner.main()
"""


@pytest.fixture(scope="module")
def wishes(spark, metastore, tmp_path_factory):
    """A folder in which a file's name says at which request the planner of `hanging` stops."""
    folder = tmp_path_factory.mktemp("hanging")
    (folder / "planner.py").write_text(HANGING)
    python = folder / "python"
    python.write_text(f"#!/bin/sh\nexec {sys.executable} {folder}/planner.py\n")
    python.chmod(0o755)
    settings = {"": "org.icecomb.spark.IcecombCatalog", ".uri": metastore.uri, ".python": python}
    for key, value in settings.items():
        spark.conf.set(f"spark.sql.catalog.hanging{key}", str(value))
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS lake.{NAMESPACE}")
    properties = spark._jvm.java.lang.System
    properties.setProperty("icecomb.planner.patience.ms", "1500")
    yield folder
    properties.clearProperty("icecomb.planner.patience.ms")
    for key in settings:
        spark.conf.unset(f"spark.sql.catalog.hanging{key}")


@pytest.fixture
def table(spark, catalog, wishes):
    name = f"{NAMESPACE}.t{next(NUMBERS)}"
    spark.sql(f"CREATE TABLE lake.{name} (i BIGINT)")
    spark.sql(f"INSERT INTO lake.{name} VALUES (1)")
    yield catalog.load_table(name)
    spark.sql(f"DROP TABLE lake.{name}")


def _name(table, catalog="hanging"):
    return f"{catalog}.{'.'.join(table.identifier)}"


def _rows(spark, table):
    return sorted(row.i for row in spark.sql(f"SELECT i FROM {_name(table)}").collect())


def _files(table):
    return sorted(Path(table.location().removeprefix("file:"), "data").rglob("*.parquet"))


@pytest.mark.full("a planner that dies is in the gate's planner_process")
@pytest.mark.parametrize(
    ("method", "when"),
    sampled(itertools.product(["load_table", "plan_scan"], ["before", "after"]), keep=1),
)
def test_a_planner_that_stops_while_it_is_asked_is_asked_again(spark, table, wishes, method, when):
    (wishes / f"{when}-{method}").touch()
    assert _rows(spark, table) == [1]
    assert not (wishes / f"{when}-{method}").exists()


@pytest.mark.full("one that is killed in a commit is in the gate")
@pytest.mark.parametrize(
    ("when", "happened"), sampled([("after", True), ("before", False)], keep=1)
)
def test_a_planner_that_stops_in_a_commit_leaves_it_unknown_and_its_files(
    spark, table, wishes, when, happened
):
    (wishes / f"{when}-commit_write").touch()
    with pytest.raises(Exception, match="planner was lost during commit_write"):
        spark.sql(f"INSERT INTO {_name(table)} VALUES (2)")
    assert len(_files(table)) == 2
    assert _rows(spark, table) == ([1, 2] if happened else [1])


def _waiting_thread(spark, done):
    """The JVM's thread that waits for the planner."""
    while not done.done():
        stacks = spark._jvm.java.lang.Thread.getAllStackTraces()
        for thread in stacks.keySet():
            frames = [f"{frame.getClassName()}.{frame.getMethodName()}" for frame in stacks[thread]]
            asks = "org.icecomb.spark.planner.Planner.ask" in frames
            if asks and "org.icecomb.spark.planner.PlannerSocket.await" in frames:
                return thread
        time.sleep(0.05)
    return pytest.fail(f"nobody waited: {done.exception() or done.result()}")


@pytest.fixture
def statement(spark):
    """Runs a statement in a thread."""
    with ThreadPoolExecutor(1) as pool:
        yield lambda text: pool.submit(lambda: spark.sql(text).collect())


def _stopped(wish):
    """Wait until the planner has stopped itself."""
    deadline = time.monotonic() + 300
    while wish.exists():
        assert time.monotonic() < deadline, "nobody asked the planner"
        time.sleep(0.02)


@pytest.mark.parametrize("method", sampled(["commit_write", "plan_scan"], keep=1))
def test_a_statement_that_is_canceled_while_the_planner_hangs_comes_back(
    spark, table, wishes, statement, method
):
    properties = spark._jvm.java.lang.System
    properties.setProperty("icecomb.planner.patience.ms", "600000")
    wish = wishes / f"before-{method}"
    wish.touch()
    try:
        is_read = method == "plan_scan"
        done = statement(
            f"SELECT i FROM {_name(table)}" if is_read else f"INSERT INTO {_name(table)} VALUES (2)"
        )
        _stopped(wish)
        _waiting_thread(spark, done).interrupt()
        with pytest.raises(Exception, match="cancell?ed" if is_read else "planner was lost"):
            done.result(300)
    finally:
        properties.setProperty("icecomb.planner.patience.ms", "1500")
    # what may have been published is kept
    assert len(_files(table)) == (1 if is_read else 2)
    assert _rows(spark, table) == [1]


def test_a_commit_that_waits_for_a_lock_is_canceled_and_nothing_of_it_is_left(
    spark, table, catalog, wishes, statement
):
    name = tuple(table.identifier)
    held = catalog.client.lock(*name, user="ann", host="etl-07", agent="theirs")
    try:
        done = statement(f"INSERT INTO {_name(table)} VALUES (2)")
        while not any(row.state is LockState.WAITING for row in catalog.client.locks(*name)):
            assert not done.done()
            time.sleep(0.05)
        _waiting_thread(spark, done).interrupt()
        with pytest.raises(Exception, match="The statement was canceled"):
            done.result(300)
        assert [row.agent for row in catalog.client.locks(*name)] == ["theirs"]
    finally:
        catalog.client.unlock(held.lock_id)
    assert len(_files(table)) == 1
    spark.sql(f"INSERT INTO {_name(table)} VALUES (3)")
    assert _rows(spark, table) == [1, 3]
