"""A driver is killed in the middle of a statement: the statement is there or not, and can be run again.

`--spark VERSION` kills the drivers of another Spark than the newest.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from icecomb.spark import spark_conf
from icecomb.spark.jar import bridge_jar, spark_home
from tests.catalog.thrift_proxy import ThriftProxy
from tests.environments import made, pyspark_of, spark_venv
from tests.peers.dead_writers import break_locks
from tests.peers.spark_process import SparkProcess
from tests.spark import fallible_statements as fallible
from tests.spark.fallible_statements import INSERT, STATEMENTS

pytestmark = [pytest.mark.jvm, pytest.mark.full("a Spark of its own is killed in each case")]

NAMESPACE = "killed_drivers"
ALTER = "alter_table_with_environment_context"
DELETE, UPDATE, MERGE = STATEMENTS[-3:]

WAITING = """
def waiting(value):
    import pathlib
    import time
    pathlib.Path({folder!r}, "waits").touch()
    time.sleep(60)
    return value
"""


@pytest.fixture(scope="module")
def proxy(metastore):
    found = ThriftProxy(metastore.port)
    yield found
    found.close()


@pytest.fixture
def driver(request, spark, metastore, proxy, tmp_path):
    """A Spark of its own behind the proxy."""
    place = {"uri": proxy.uri, "warehouse": str(metastore.warehouse)}
    venv = made(spark_venv(request.config.getoption("--spark") or "4.3"))
    home = spark_home(pyspark_of(venv))
    conf = spark_conf("lake", **place, python=sys.executable, jar=bridge_jar(home))
    found = SparkProcess(venv, conf, metastore, tmp_path / "log")
    yield found
    found.close()


@pytest.fixture(scope="module", autouse=True)
def namespace(catalog):
    catalog.create_namespace(NAMESPACE)
    yield
    for each in catalog.list_tables(NAMESPACE):
        catalog.drop_table(each)
    catalog.drop_namespace(NAMESPACE)


def below(pid):
    """The processes that a process started, and those that these did, by their commands."""
    found = {}
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in children.read_text().split():
            found[int(child)] = Path(f"/proc/{child}/cmdline").read_text()
            found |= below(child)
    return found


def kill(driver, *, planner):
    """Kills the driver; its planner in the same moment, or it is left to find out."""
    processes = below(driver.pid)
    victims = [pid for pid, command in processes.items() if "org.apache.spark" in command]
    if planner:
        victims += [pid for pid, command in processes.items() if "icecomb.spark.planner" in command]
    assert len(victims) == 1 + planner, processes
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + 60
    # a planner that is left ends by itself
    while any(_runs(pid) for pid in processes):
        assert time.monotonic() < deadline, processes
        time.sleep(0.02)


def _runs(pid):
    """Whether a process is neither gone nor only waits to be asked what became of it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize(
    ("statement", "moment", "planner"),
    [
        (UPDATE, "while tasks run", False),
        (INSERT, "before the change", True),
        (MERGE, "in the change", True),
        (INSERT, "in the change", False),
        (DELETE, "after the change", True),
    ],
    ids=str,
)
def test_a_statement_whose_driver_is_killed_is_there_once_when_it_is_run_again(
    spark, catalog, proxy, driver, tmp_path, statement, moment, planner
):
    name = f"{NAMESPACE}.t{sum(map(ord, tmp_path.name))}"
    table = fallible.make(driver, catalog, name, statement.mode)
    before, snapshot, function = fallible.rows(table), table.current_snapshot(), ""

    def end():
        kill(driver, planner=planner)

    if moment == "while tasks run":
        function = "waiting"
        driver.function(function, WAITING.format(folder=str(tmp_path)), "bigint")
    elif moment == "before the change":
        proxy.before("lock", end)
    elif moment == "in the change":
        # which the metastore has got
        proxy.before(ALTER, end)
    else:
        proxy.after(ALTER, end)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(driver.sql, statement.of(f"lake.{name}", 3, function))
        if moment == "while tasks run":
            while not (tmp_path / "waits").exists():
                assert not running.done()
                time.sleep(0.02)
            end()
        assert running.exception(120) is not None
    if moment in {"in the change", "after the change"}:
        deadline = time.monotonic() + 60
        while table.refresh().current_snapshot() == snapshot:
            assert time.monotonic() < deadline
            time.sleep(0.02)
    break_locks(catalog, table, until_s=1.0)
    now, after = fallible.rows(table), statement.effect(before, 3)
    happened = now == after
    assert happened or now == before
    assert (moment in {"in the change", "after the change"}) == happened
    # what it refers to is there
    left = fallible.surplus(table)
    if not happened:
        spark.sql(statement.of(f"lake.{name}", 3))
        assert fallible.rows(table) == after
    # nobody takes what a writer left for his own
    assert fallible.surplus(table) == left
