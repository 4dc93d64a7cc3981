"""Attempts of tasks that fail, are overtaken by their twins or die with their executor: each row once.

`--spark VERSION` runs them on another Spark than the newest.
"""

from __future__ import annotations

import itertools
import json
import sys
import time
from collections import Counter

import pyarrow as pa
import pytest

from icecomb.spark import spark_conf
from icecomb.spark.jar import bridge_jar, spark_home
from tests.environments import made, pyspark_of, spark_venv
from tests.peers import spark_programs
from tests.peers.spark_process import SHORT_LIVED, SparkProcess
from tests.peers.standalone_spark import StandaloneSpark
from tests.spark import fallible_statements as fallible

pytestmark = [
    pytest.mark.jvm,
    pytest.mark.full("a cluster of executors, which fail, are late and are killed"),
]

NAMESPACE = "task_failures"
NUMBERS = itertools.count(1)
ROWS = 20_000
SCHEMA = pa.schema([("id", pa.int64()), ("x", pa.int64())])
LAST = 9_999
"""A row near the end of the first of two files, whose task has written most of its rows by then."""
COMMANDS = ("delete", "update", "merge")
SETTINGS = {
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.executor.extraJavaOptions": SHORT_LIVED,
    "spark.python.worker.reuse": "false",
    "spark.excludeOnFailure.enabled": "false",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.eventLog.rolling.enabled": "false",
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
LOSS = '''
def {name}(value, row):
    """The first task of the last stage deletes what the executors have written for the others."""
    import os
    import pathlib
    import time
    from pyspark import TaskContext
    folder, local = pathlib.Path({folder!r}), pathlib.Path({local!r})
    task = TaskContext.get()
    def wait(name):
        end = time.monotonic() + 90
        while not (folder / name).exists() and time.monotonic() < end:
            time.sleep(0.01)
    if task.partitionId() != 0:
        # none of the others has what it needs, and ends, before
        wait("lost")
        return value
    try:
        (folder / "first").symlink_to(str(task.taskAttemptId()))
    except FileExistsError:
        if os.readlink(folder / "first") != str(task.taskAttemptId()):
            (folder / "again").touch()
        return value
    # of both executors: what one of them wrote may be a twin's, which nobody needs
    for each in local.glob("**/shuffle_*"):
        each.unlink()
    (folder / "lost").touch()
    {then}
    return value
'''
"""There are more tasks than can run at once: those that begin later cannot get what they need."""
STATEMENTS = {
    "INSERT": "INSERT INTO {t} SELECT {f}(id, id - 20000), 1 FROM range(20000, 40000, 1, 2)",
    "DELETE": "DELETE FROM {t} WHERE id % 2 = 1 AND {f}(id, id) >= 0",
    "UPDATE": "UPDATE {t} SET x = {f}(x, id) + 1 WHERE id % 2 = 1",
    "MERGE": "MERGE INTO {t} t USING (SELECT id FROM range(1, 40000, 2)) s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET x = {f}(t.x, t.id) + 1 "
    "WHEN NOT MATCHED THEN INSERT (id, x) VALUES (s.id, 7)",
}
SHUFFLED = (
    "INSERT INTO {t} SELECT {f}(id, id - 20000), 1 FROM "
    "(SELECT /*+ REPARTITION(6, id) */ id FROM range(20000, 40000, 1, 2))"
)
EFFECTS = {
    "INSERT": lambda i: [(i, 0), (i + ROWS, 1)],
    "DELETE": lambda i: [] if i % 2 else [(i, 0)],
    "UPDATE": lambda i: [(i, i % 2)],
    "MERGE": lambda i: [(i, i % 2), *([(i + ROWS, 7)] if i % 2 else [])],
}
"""What becomes of a row that there was, and of what there was not."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the cluster has its files: those of its tasks are in `local`, its events in `events`."""
    made = tmp_path_factory.mktemp("cluster")
    (made / "events").mkdir()
    return made


@pytest.fixture(scope="module")
def cluster(request, metastore, catalog, folder):
    """A Spark of two executors, which it takes for two hosts."""
    venv = made(spark_venv(request.config.getoption("--spark") or "4.3"))
    home = spark_home(pyspark_of(venv))
    place = {"uri": metastore.uri, "warehouse": str(metastore.warehouse)}
    conf = {
        **spark_conf("lake", **place, python=sys.executable, jar=bridge_jar(home)),
        **SETTINGS,
        "spark.pyspark.python": str(venv / "bin" / "python"),
        "spark.eventLog.dir": f"file:{folder}/events",
    }
    catalog.create_namespace(NAMESPACE)
    hosts = ("127.0.0.1", "localhost")
    env = spark_programs.environment(
        SPARK_HOME=str(home.path), SPARK_LOCAL_DIRS=str(folder / "local")
    )
    with StandaloneSpark(folder, env, hosts, cores=1) as master:
        spark = SparkProcess(
            venv, {**conf, "spark.master": master}, metastore, folder / "log", home.path
        )
        try:
            yield spark
        finally:
            spark.close()
    for each in catalog.list_tables(NAMESPACE):
        catalog.drop_table(each)
    catalog.drop_namespace(NAMESPACE)


def make(catalog, mode):
    """A table of two files, each of which a task reads, and writes what becomes of it itself."""
    properties = {
        **{f"write.{each}.mode": mode for each in COMMANDS},
        **{f"write.{each}.distribution-mode": "none" for each in COMMANDS},
        "read.split.target-size": "4096",
        "read.split.open-file-cost": "4096",
    }
    table = catalog.create_table(f"{NAMESPACE}.t{next(NUMBERS)}", SCHEMA, properties=properties)
    with table.transaction() as change:
        for first in (0, ROWS // 2):
            ids = pa.array(range(first, first + ROWS // 2), pa.int64())
            change.append(pa.table([ids, pa.array([0] * len(ids), pa.int64())], SCHEMA))
    return table


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
    table = make(catalog, mode)
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
    all_deleted(table)


def all_deleted(table):
    """Whoever was second is told so when the statement is done already."""
    deadline = time.monotonic() + 120
    while fallible.surplus(table):
        assert time.monotonic() < deadline, fallible.surplus(table)
        time.sleep(0.1)


def retried(folder, since):
    """The stages that began again since then, and how many tasks could not get what others had written."""
    stages, lost = set(), 0
    for each in (folder / "events").iterdir():
        for line in each.read_text().splitlines():
            event = json.loads(line)
            if event["Event"] == "SparkListenerStageSubmitted":
                stage = event["Stage Info"]
                at = stage.get("Submission Time", 0)
                if at >= since and stage["Stage Attempt ID"] > 0:
                    stages.add(stage["Stage ID"])
            elif event["Event"] == "SparkListenerTaskEnd":
                is_new = event["Task Info"]["Launch Time"] >= since
                lost += is_new and event["Task End Reason"]["Reason"] == "FetchFailed"
    return stages, lost


@pytest.mark.parametrize("then", ["pass", "wait('again')"], ids=["goes on", "waits for its twin"])
@pytest.mark.parametrize(
    ("command", "mode"),
    [("INSERT", "copy-on-write"), ("MERGE", "copy-on-write"), ("MERGE", "merge-on-read")],
)
def test_each_row_is_written_once_when_a_stage_begins_again(
    cluster, catalog, folder, tmp_path, command, mode, then
):
    """Some of its tasks are done then, one runs, and comes to its commit beside its twin."""
    table = make(catalog, mode)
    name = f"loss{next(NUMBERS)}"
    local = str(folder / "local")
    code = LOSS.format(name=name, folder=str(tmp_path), local=local, then=then)
    cluster.function(name, code, "bigint")
    settings = {
        "spark.sql.shuffle.partitions": "6",
        "spark.sql.autoBroadcastJoinThreshold": "-1",
        "spark.sql.adaptive.enabled": "false",
    }
    for key, value in settings.items():
        cluster.sql(f"SET {key} = {value}")
    since = time.time() * 1000
    try:
        text = SHUFFLED if command == "INSERT" else STATEMENTS[command]
        cluster.sql(text.format(t=f"lake.{'.'.join(table.identifier)}", f=name))
    finally:
        for key in settings:
            cluster.sql(f"RESET {key}")
    assert (tmp_path / "lost").exists()
    assert (tmp_path / "again").exists() or then == "pass"
    expected = Counter(itertools.chain.from_iterable(EFFECTS[command](i) for i in range(ROWS)))
    assert fallible.rows(table) == expected
    all_deleted(table)
    deadline = time.monotonic() + 120
    while True:
        stages, lost = retried(folder, since)
        # what was lost is written again, and the stage that needed it begins again
        if len(stages) >= 2 and lost:
            break
        assert time.monotonic() < deadline, (stages, lost)
        time.sleep(0.1)
