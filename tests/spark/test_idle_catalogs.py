"""A catalog is let go whenever nobody asks for it: statements, plans, writes and streams go on."""

from __future__ import annotations

import os
import signal
import stat
import sys
import time
from pathlib import Path

import pytest

from icecomb.spark.conf import CATALOG_CLASS
from tests.peers import impatient_planner

pytestmark = pytest.mark.full("waits for a planner of its own to let catalogs go")

NAMESPACE = "idle_catalogs"
TABLE = f"idle.{NAMESPACE}.t"


class LettingGo:
    """A session with a catalog `idle`, in a planner that lets it go at once."""

    def __init__(self, session, file):
        self.session = session
        self._file = file

    def sql(self, text):
        return [tuple(row) for row in self.session.sql(text).collect()]

    def wait(self):
        """Until the catalog was let go that served what was asked before."""
        before = self.times()
        # one that is gone already goes once more
        self.sql("SHOW NAMESPACES IN idle")
        deadline = time.monotonic() + 60
        while self.times() == before:
            assert time.monotonic() < deadline, "the catalog was not let go"
            time.sleep(0.05)

    @property
    def planner(self):
        return int(self._file.read_text().split()[0])

    def times(self):
        """How often it was let go."""
        return self._file.read_text().count("idle-") if self._file.exists() else 0


@pytest.fixture
def idle(spark, metastore, catalog, tmp_path):
    python, file = tmp_path / "python", tmp_path / "let-go"
    program = Path(impatient_planner.__file__)
    python.write_text(f'#!/bin/sh\nexec {sys.executable} {program} {file} "$@"\n')
    python.chmod(python.stat().st_mode | stat.S_IXUSR)
    session = spark.newSession()
    settings = {
        "type": "hive",
        "uri": metastore.uri,
        "warehouse": str(metastore.warehouse),
        "python": str(python),
        "client.pool.cache.eviction-interval-ms": "0",
    }
    session.conf.set("spark.sql.catalog.idle", CATALOG_CLASS)
    for key, value in settings.items():
        session.conf.set(f"spark.sql.catalog.idle.{key}", value)
    catalog.create_namespace(NAMESPACE)
    found = LettingGo(session, file)
    found.sql(f"CREATE TABLE {TABLE} (id BIGINT)")
    yield found
    os.kill(found.planner, signal.SIGKILL)
    catalog.drop_table((NAMESPACE, "t"))
    catalog.drop_namespace(NAMESPACE)


def test_statements_and_plans_go_on(idle, catalog):
    idle.sql(f"INSERT INTO {TABLE} VALUES (1)")
    first = catalog.load_table((NAMESPACE, "t")).current_snapshot().snapshot_id
    opened = idle.session.sql(f"SELECT id FROM {TABLE} VERSION AS OF {first}")
    planned = idle.session.sql(f"SELECT id FROM {TABLE} VERSION AS OF {first} WHERE id > 0")
    assert "BatchScan" in planned._jdf.queryExecution().executedPlan().toString()
    idle.wait()
    idle.sql(f"INSERT INTO {TABLE} VALUES (2)")
    idle.wait()
    assert idle.sql(f"SELECT id FROM {TABLE} ORDER BY id") == [(1,), (2,)]
    assert opened.collect() == planned.collect() == [(1,)]


def test_a_write_goes_on_that_takes_longer_than_its_catalog_is_kept(idle):
    slow = "java_method('java.lang.Thread', 'sleep', 1000L) IS NOT NULL OR id > 0"
    idle.sql(f"INSERT INTO {TABLE} VALUES (1), (2), (3)")
    before = idle.times()
    idle.sql(f"INSERT INTO {TABLE} SELECT id FROM range(4, 6) WHERE {slow}")
    assert idle.times() > before
    assert idle.sql(f"SELECT id FROM {TABLE} ORDER BY id") == [(1,), (2,), (3,), (4,), (5,)]
    before = idle.times()
    idle.sql(f"INSERT OVERWRITE {TABLE} SELECT id FROM range(6, 7) WHERE {slow}")
    assert idle.times() > before
    assert idle.sql(f"SELECT id FROM {TABLE}") == [(6,)]


def test_a_stream_goes_on(idle, tmp_path):
    rows = idle.session.readStream.table(TABLE)
    sink = rows.writeStream.format("parquet").option("path", str(tmp_path / "sink"))
    sink = sink.option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = sink.trigger(processingTime="2 seconds").start()
    try:
        for number in range(3):
            idle.sql(f"INSERT INTO {TABLE} VALUES ({number})")
            idle.wait()
            query.processAllAvailable()
            idle.wait()
    finally:
        query.stop()
    found = idle.session.read.parquet(str(tmp_path / "sink"))
    assert sorted(row["id"] for row in found.collect()) == [0, 1, 2]
