"""What a JVM of our Spark loads first, read and checked ahead of time: a start takes half of its time.

Where there is no archive, or it is not of this Java and these jars, the JVM starts as without one. `python -m tests.peers.class_archive`
makes it beside the tests, and gets the jars that Spark is given.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from filelock import FileLock

from tests.environments import VENV
from tests.peers.ivy import pyspark_jars
from tests.peers.s3a import s3a_jars
from tests.peers.spark_process import SHORT_LIVED, SMALL

ARCHIVE = VENV / "spark.jsa"
_LOADED = """
import json, sys
from pyspark.sql import SparkSession

conf, folder = json.loads(sys.argv[1]), sys.argv[2]
builder = SparkSession.builder.enableHiveSupport()
for key, value in conf.items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
spark.range(0, 10, 1, 2).selectExpr("id", "string(id) AS s").write.partitionBy("s").parquet(f"{folder}/t")
rows = spark.read.parquet(f"{folder}/t")
rows.join(rows, "id").groupBy("id").count().orderBy("id").collect()
spark.sql("EXPLAIN SELECT max(col1) FROM VALUES (1), (2)").collect()
spark.stop()
"""


def options() -> str:
    """What Spark's JVM is told: to use the archive where there is one, and not to say so where it cannot."""
    return f"{SHORT_LIVED} -XX:SharedArchiveFile={ARCHIVE} -Xlog:disable"


def make() -> None:
    """Make the archive where none is as new as the environment, or wait for who makes it."""
    with FileLock(ARCHIVE.with_suffix(".lock")):
        if not ARCHIVE.exists() or ARCHIVE.stat().st_mtime < (VENV / ".recipe").stat().st_mtime:
            _make()


def _make() -> None:
    with tempfile.TemporaryDirectory(prefix="class-archive-", dir=VENV) as folder:
        draft = Path(folder) / ARCHIVE.name
        told = f"{SHORT_LIVED} -XX:ArchiveClassesAtExit={draft} -Xlog:disable"
        conf = {**SMALL, "spark.sql.warehouse.dir": f"{folder}/warehouse"}
        # the JVM holds its ends of the pipes until the archive is written
        subprocess.run(
            [sys.executable, "-c", _LOADED, json.dumps(conf), folder],
            env={**os.environ, "SPARK_SUBMIT_OPTS": told, "SPARK_LOCAL_IP": "127.0.0.1"},
            cwd=folder,
            capture_output=True,
            check=False,
        )
        if draft.exists():
            draft.replace(ARCHIVE)


if __name__ == "__main__":
    with ThreadPoolExecutor(2) as pool:
        for asked in (pool.submit(make), pool.submit(s3a_jars, pyspark_jars())):
            asked.result()
