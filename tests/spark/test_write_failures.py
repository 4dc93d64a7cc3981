"""The metastore or the planner fails under a statement: no row is lost or there twice, no lie is told."""

from __future__ import annotations

import itertools
import os
import signal
import sys
import time

import pytest

from icecomb.catalog import load_catalog, metastore as embedded
from tests.catalog.thrift_proxy import ThriftProxy
from tests.peers.dead_writers import break_locks, kill, planner
from tests.spark import fallible_statements as fallible
from tests.spark.fallible_statements import INSERT, STATEMENTS
from tests.spark.standing_still import FUNCTION, StandingStill

NAMESPACE = "write_failures"
NUMBERS = itertools.count(1)
ALTER = "alter_table_with_environment_context"
AT_THE_COMMIT = [(ALTER, how) for how in ("late", "reply", "refused", "betrayed")]
AROUND_IT = [
    *((ALTER, how) for how in ("request", "reset", "torn")),
    *(("lock", how) for how in ("request", "late", "reply", "refused")),
    *(("unlock", how) for how in ("request", "reply", "refused")),
]
CERTAIN = {"reply": True, "torn": True, "betrayed": True, "refused": False}
"""What is known in spite of it, and whether a statement happened then."""
ALL_AROUND = {"INSERT", "MERGE, merge-on-read"}
OTHERS = pytest.mark.full("what fails around their commit fails around those of the others")


def those(*kept):
    """All statements, of which the gate has some."""
    return [s if str(s) in kept else pytest.param(s, marks=OTHERS) for s in STATEMENTS]


@pytest.fixture(scope="module")
def proxy(spark, metastore):
    """What is between the metastore and Spark's catalog `faulty`."""
    found = ThriftProxy(metastore.port)
    catalog_of(spark, "faulty", found.uri, metastore.warehouse)
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS lake.{NAMESPACE}")
    yield found
    spark.conf.unset("spark.sql.catalog.faulty")
    found.close()


def catalog_of(spark, name, uri, warehouse):
    settings = {
        "": "org.icecomb.spark.IcecombCatalog",
        ".uri": uri,
        ".warehouse": warehouse,
        ".python": sys.executable,
        # a broken connection may be a new server's, which is asked by an alter whether it checks
        # them: a fault would meet that one, and not the commit
        ".hive.check-and-put": "trusted",
    }
    for key, value in settings.items():
        spark.conf.set(f"spark.sql.catalog.{name}{key}", str(value))


@pytest.fixture
def table(spark, catalog, proxy, request):
    """A table for a statement."""
    statement = request.getfixturevalue("statement")
    name = f"{NAMESPACE}.t{next(NUMBERS)}"
    # what the planner has to find out about the metastore, it knows then
    found = fallible.make(spark, catalog, name, statement.mode, within="faulty")
    yield found
    catalog.drop_table(found.identifier)


def failure(run, *given):
    """What a statement fails with; None if it does not."""
    try:
        run(*given)
    except Exception as error:  # noqa: BLE001 - Spark has many classes of them
        return str(error)
    return None


def gone(catalog, table):
    """Whether every lock of the table is released soon."""
    deadline = time.monotonic() + 60
    while catalog.client.locks(*table.identifier):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


@pytest.mark.parametrize("statement", those("INSERT"), ids=str)
def test_whatever_the_metastore_does_at_the_commit_a_statement_says_the_truth(
    spark, catalog, proxy, table, statement
):
    faults = AT_THE_COMMIT + (AROUND_IT if str(statement) in ALL_AROUND else [])
    for number, (call, how) in enumerate(faults):
        before, left, injected = (
            fallible.rows(table),
            fallible.surplus(table),
            proxy.injected.total(),
        )
        proxy.begin()
        proxy.fail(call, how)
        text = statement.of(f"faulty.{'.'.join(table.identifier)}", number)
        error = failure(spark.sql, text)
        assert proxy.injected.total() == injected + 1
        proxy.deliver()
        happened = fallible.judge(table, statement, number, before, error)
        is_unknown = error is not None and fallible.is_unknown(error)
        if how in CERTAIN:
            assert (happened, is_unknown) == (CERTAIN[how] or call == "unlock", False), error
        # files of what may still happen, or did, are kept
        now = fallible.surplus(table)
        assert now >= left if is_unknown else now == left
        if how == "late":
            break_locks(catalog, table)
        assert gone(catalog, table)
    assert fallible.rows_of_spark(spark, table) == fallible.rows(table)


@pytest.fixture
def restarted(spark, tmp_path):
    """A metastore of the test's own behind a proxy: the catalog `restarted` of Spark, and ours."""
    found = Restarted(spark, tmp_path)
    yield found
    found.close()


class Restarted:
    def __init__(self, spark, folder):
        self._spark, self._folder = spark, folder
        self._running = embedded.start(folder)
        self.proxy = ThriftProxy(self._running.port)
        self.name = f"restarted{next(NUMBERS)}"
        catalog_of(spark, self.name, self.proxy.uri, folder)
        self.catalog = load_catalog("restarted", uri=self.proxy.uri, warehouse=str(folder))
        self.catalog.create_namespace(NAMESPACE)

    def kill(self):
        os.kill(self._running.pid, signal.SIGKILL)

    def start(self):
        self._running = embedded.start(self._folder)
        self.proxy.target = self._running.port

    def kill_and_start(self):
        self.kill()
        self.start()

    def close(self):
        self._spark.conf.unset(f"spark.sql.catalog.{self.name}")
        self.catalog.close()
        self.proxy.close()
        embedded.stop(self._folder)


@pytest.mark.full("starts a metastore four times")
def test_a_metastore_that_is_killed_under_a_statement_loses_and_repeats_nothing(
    spark, restarted, standing_still
):
    name, proxy, merge = f"{NAMESPACE}.t", restarted.proxy, STATEMENTS[-1]
    table = fallible.make(spark, restarted.catalog, name, "merge-on-read", restarted.name)
    there = f"{restarted.name}.{name}"

    before, left = fallible.rows(table), fallible.surplus(table)
    error = failure(standing_still.run, merge.of(there, 0, FUNCTION), restarted.kill)
    restarted.start()
    assert error is not None
    assert not fallible.judge(table, merge, 0, before, error)
    assert fallible.surplus(table) == left == set()

    for number, moment in ((1, "before"), (2, "after")):
        # the planner asks a metastore that is new to it what it can do, by a change of nothing
        spark.sql(INSERT.of(there, number + 10))
        before = fallible.rows(table)
        if moment == "before":
            proxy.before(ALTER, restarted.kill_and_start)
        else:
            proxy.after(ALTER, restarted.kill_and_start)
            proxy.fail(ALTER, "reply")
        error = failure(spark.sql, merge.of(there, number))
        happened = fallible.judge(table, merge, number, before, error)
        assert moment == "before" or (happened and error is None)
        assert happened or fallible.is_unknown(str(error)) or fallible.surplus(table) == set()
        break_locks(restarted.catalog, table)
    spark.sql(INSERT.of(there, 20))


@pytest.fixture
def standing_still(spark, tmp_path):
    found = StandingStill(spark, tmp_path)
    yield found
    found.close()


@pytest.mark.full("one that is killed in a commit is in the gate")
@pytest.mark.parametrize("statement", those("MERGE, merge-on-read"), ids=str)
def test_a_planner_that_is_killed_while_tasks_run_is_replaced_unnoticed(
    spark, proxy, table, statement, standing_still
):
    before = fallible.rows(table)
    text = statement.of(f"faulty.{'.'.join(table.identifier)}", 3, FUNCTION)
    standing_still.run(text, lambda: kill(planner(spark)))
    assert fallible.judge(table, statement, 3, before, None)
    assert fallible.surplus(table) == set()


@pytest.mark.parametrize(
    ("statement", "moment"),
    [
        (INSERT, "before the lock"),
        pytest.param(STATEMENTS[-1], "before the lock", marks=OTHERS),
        pytest.param(INSERT, "before the change", marks=OTHERS),
        (STATEMENTS[2], "before the change"),
        pytest.param(STATEMENTS[-3], "after the change", marks=OTHERS),
        pytest.param(STATEMENTS[3], "after the change", marks=OTHERS),
    ],
    ids=str,
)
def test_a_planner_that_is_killed_in_a_commit_leaves_it_unknown_and_its_files(
    spark, catalog, proxy, table, statement, moment
):
    before = fallible.rows(table)
    snapshot = table.current_snapshot()
    if moment == "before the lock":
        proxy.before("lock", lambda: kill(planner(spark)))
        proxy.fail("lock", "request")
    elif moment == "before the change":
        # which the metastore gets all the same
        proxy.before(ALTER, lambda: kill(planner(spark)))
    else:
        proxy.after(ALTER, lambda: kill(planner(spark)))
    text = statement.of(f"faulty.{'.'.join(table.identifier)}", 3)
    error = failure(spark.sql, text)
    assert error is not None
    assert "planner was lost during commit_write" in error
    if moment != "before the lock":
        deadline = time.monotonic() + 60
        while table.refresh().current_snapshot() == snapshot:
            assert time.monotonic() < deadline
            time.sleep(0.02)
    break_locks(catalog, table)
    happened = fallible.judge(table, statement, 3, before, error)
    assert happened == (moment != "before the lock")
    assert bool(fallible.surplus(table)) == (not happened)
    if not happened:
        spark.sql(text)
        assert fallible.judge(table, statement, 3, before, None)
