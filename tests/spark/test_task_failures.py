"""Attempts of tasks that fail, are overtaken by their twins or die with their executor: each row once."""

from __future__ import annotations

import itertools
import sys
import time
from collections import Counter

import pytest

from icecomb.spark import spark_conf
from icecomb.spark.jar import bridge_jar, spark_home
from tests.environments import VENV
from tests.peers import spark_programs
from tests.peers.spark_process import SparkProcess
from tests.peers.standalone_spark import StandaloneSpark
from tests.spark import fallible_statements as fallible

pytestmark = pytest.mark.jvm

NAMESPACE = "task_failures"
NUMBERS = itertools.count(1)
ROWS = 20_000
LAST = 9_999
"""A row near the end of the first of two files, whose task has written most of its rows by then."""
COMMANDS = ("delete", "update", "merge")
SETTINGS = {
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.python.worker.reuse": "false",
    "spark.pyspark.python": sys.executable,
    "spark.excludeOnFailure.enabled": "false",
    # what Python gives is written at once
    "spark.buffer.size": "1024",
    "spark.speculation": "true",
    "spark.speculation.task.duration.threshold": "1s",
    "spark.speculation.interval": "50ms",
    "spark.speculation.minTaskRuntime": "100ms",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1.1",
}
FUNCTION = '''
def {name}(value, row):
    """Does something else at the first time that this row comes."""
    import os
    import pathlib
    import signal
    import time
    folder = pathlib.Path({folder!r})
    def wait(name):
        end = time.monotonic() + 60
        while not (folder / name).exists() and time.monotonic() < end:
            time.sleep(0.01)
    if row == {last}:
        try:
            os.close(os.open(folder / "met", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            (folder / "again").touch()
            {again}
        else:
            {first}
    return value
'''
MISHAPS = {
    "fails": ("raise ValueError('the first attempt')", "pass"),
    # until it is killed, as the other one was first
    "is slow": ("time.sleep(60)", "pass"),
    # until the other one has come as far: one of the two must not commit
    "has a twin beside it": ("wait('again')", "pass"),
    "loses its executor": ("""
            status = pathlib.Path("/proc", str(os.getppid()), "status").read_text()
            executor = next(line for line in status.splitlines() if line.startswith("PPid:"))
            os.kill(int(executor.split()[1]), signal.SIGKILL)
            time.sleep(60)""", "pass"),
}  # fmt: skip
STATEMENTS = {
    "INSERT": "INSERT INTO {t} SELECT {f}(id, id - 20000), 1 FROM range(20000, 40000, 1, 2)",
    "DELETE": "DELETE FROM {t} WHERE id % 2 = 1 AND {f}(id, id) >= 0",
    "UPDATE": "UPDATE {t} SET x = {f}(x, id) + 1 WHERE id % 2 = 1",
    "MERGE": "MERGE INTO {t} t USING (SELECT id FROM range(1, 40000, 2)) s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET x = {f}(t.x, t.id) + 1 "
    "WHEN NOT MATCHED THEN INSERT (id, x) VALUES (s.id, 7)",
}
EFFECTS = {
    "INSERT": lambda i: [(i, 0), (i + ROWS, 1)],
    "DELETE": lambda i: [] if i % 2 else [(i, 0)],
    "UPDATE": lambda i: [(i, i % 2)],
    "MERGE": lambda i: [(i, i % 2), *([(i + ROWS, 7)] if i % 2 else [])],
}
"""What becomes of a row that there was, and of what there was not."""


@pytest.fixture(scope="module")
def cluster(metastore, catalog, tmp_path_factory):
    """A Spark of two executors, which it takes for two hosts."""
    folder = tmp_path_factory.mktemp("cluster")
    place = {"uri": metastore.uri, "warehouse": str(metastore.warehouse)}
    jar = bridge_jar(spark_home())
    conf = {**spark_conf("lake", **place, python=sys.executable, jar=jar), **SETTINGS}
    catalog.create_namespace(NAMESPACE)
    hosts = ("127.0.0.1", "localhost")
    with StandaloneSpark(folder, spark_programs.environment(), hosts, cores=1) as master:
        spark = SparkProcess(VENV, {**conf, "spark.master": master}, metastore, folder / "log")
        try:
            yield spark
        finally:
            spark.close()
    for each in catalog.list_tables(NAMESPACE):
        catalog.drop_table(each)
    catalog.drop_namespace(NAMESPACE)


def make(cluster, catalog, mode):
    """A table of two files, each of which a task reads, and writes what becomes of it itself."""
    name = f"{NAMESPACE}.t{next(NUMBERS)}"
    properties = {
        **{f"write.{each}.mode": mode for each in COMMANDS},
        **{f"write.{each}.distribution-mode": "none" for each in COMMANDS},
        "read.split.target-size": "4096",
        "read.split.open-file-cost": "4096",
    }
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    cluster.sql(f"CREATE TABLE lake.{name} (id BIGINT, x BIGINT) TBLPROPERTIES ({listed})")
    cluster.sql(f"INSERT INTO lake.{name} SELECT id, 0 FROM range(0, {ROWS}, 1, 2)")
    return catalog.load_table(name)


@pytest.mark.parametrize(
    ("command", "mode", "mishap"),
    [
        *(("INSERT", "copy-on-write", mishap) for mishap in MISHAPS),
        *(("UPDATE", "merge-on-read", mishap) for mishap in MISHAPS),
        ("UPDATE", "copy-on-write", "loses its executor"),
        ("DELETE", "merge-on-read", "is slow"),
        ("MERGE", "copy-on-write", "is slow"),
        ("MERGE", "merge-on-read", "fails"),
    ],
)
def test_each_row_is_written_once_when_an_attempt(
    cluster, catalog, tmp_path, command, mode, mishap
):
    table = make(cluster, catalog, mode)
    first, again = MISHAPS[mishap]
    name = f"mishap{next(NUMBERS)}"
    code = FUNCTION.format(name=name, folder=str(tmp_path), last=LAST, first=first, again=again)
    cluster.function(name, code, "bigint")
    cluster.sql(STATEMENTS[command].format(t=f"lake.{'.'.join(table.identifier)}", f=name))
    assert (tmp_path / "again").exists()
    expected = Counter(itertools.chain.from_iterable(EFFECTS[command](i) for i in range(ROWS)))
    assert fallible.rows(table) == expected
    if mishap == "loses its executor":
        # nobody knows of that file
        assert len(fallible.surplus(table)) <= 1
        return
    # whoever was second is told so when the statement is done already
    deadline = time.monotonic() + 30
    while fallible.surplus(table):
        assert time.monotonic() < deadline, fallible.surplus(table)
        time.sleep(0.1)
