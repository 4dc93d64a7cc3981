"""An executor is killed that keeps rows for a statement: another one has them, too."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from icecomb.spark import spark_conf

pytestmark = [
    pytest.mark.jvm,
    pytest.mark.full("a Spark with two executors, of which one is killed"),
]

PROGRAM = """
import json, os, signal, subprocess, sys, time
from pyspark.sql import SparkSession

builder = SparkSession.builder.master("local-cluster[2,1,600]")
for key, value in json.loads(sys.argv[1]).items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
spark.sql("CREATE NAMESPACE lake.db")
spark.sql("CREATE TABLE lake.db.t (id BIGINT, v DOUBLE) USING iceberg")
context = spark.sparkContext._jsc
limit = time.monotonic() + 120
while context.sc().getExecutorMemoryStatus().size() < 3:
    assert time.monotonic() < limit
    time.sleep(0.1)
text = (
    "MERGE INTO lake.db.t t USING (SELECT id, rand() AS v FROM range(0, 100, 1, 4)) s "
    "ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *"
)
state = spark._jsparkSession.sessionState()
skip = spark._jvm.org.apache.spark.sql.execution.CommandExecutionMode.SKIP()
leaves = state.executePlan(state.sqlParser().parsePlan(text), skip).analyzed().collectLeaves()
every = [leaves.apply(at) for at in range(leaves.size())]
rows = next(each.rdd() for each in every if each.getClass().getSimpleName() == "LogicalRDD")
before = rows.count()


def below(pid):
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", pid], capture_output=True, text=True)
    for child in found.stdout.split():
        yield child
        yield from below(child)


def is_executor(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as line:
            return b"CoarseGrainedExecutorBackend" in line.read()
    except OSError:
        return False


os.kill(int(next(filter(is_executor, below(str(os.getpid()))))), signal.SIGKILL)
print("ANSWER", before, rows.count())
"""


def test_rows_that_are_kept_for_a_merge_outlive_an_executor(tmp_path):
    conf = {
        **spark_conf("lake", warehouse=str(tmp_path), python=sys.executable),
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.executor.memory": "600m",
        "spark.ui.enabled": "false",
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(conf)],
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert "ANSWER 100 100" in done.stdout, done.stderr[-3000:]
