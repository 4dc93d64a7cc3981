"""Micro-batches of Structured Streaming into a table on a metastore, beside Iceberg's runtime 1.12.

    python -m tests.bench.spark_stream --work build/bench/spark_stream

Sparks 4.1 take turns. Each run is a query that writes as many batches as there are JSON files,
of 1,000 rows each, into a table of its own; `batch_s` is its time over their number, the start of
the query among it. Every table must have every row once. `nowhere` is a sink that does nothing:
no table can be written to in less.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

from icecomb.catalog import metastore as embedded
from icecomb.spark import spark_conf
from icecomb.spark.jar import bridge_jar, spark_home
from tests.bench.measure import Figures, expect, in_turn, parser, print_runs
from tests.bench.spark_read import cpu_s
from tests.environments import ICEBERG_JAVA_VENV, pyspark_of
from tests.peers.ivy import fetch
from tests.peers.spark_process import SparkProcess

if TYPE_CHECKING:
    from icecomb.catalog.metastore import RunningMetastore

_RUNTIME: Final = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
_NOWHERE: Final = "nowhere"
_PEERS: Final = ("icecomb", "iceberg", _NOWHERE)
_COLUMNS: Final = "id long, s string"
_ROWS: Final = 1_000


def _conf(peer: str, metastore: RunningMetastore) -> dict[str, str]:
    common = {"spark.ui.showConsoleProgress": "false"}
    if peer == _NOWHERE:
        return common
    place = {"uri": metastore.uri, "warehouse": str(metastore.warehouse)}
    if peer == "icecomb":
        home = spark_home(pyspark_of(ICEBERG_JAVA_VENV))
        return common | spark_conf("lake", **place, python=sys.executable, jar=bridge_jar(home))
    catalog = "spark.sql.catalog.lake"
    return common | {
        "spark.jars": str(fetch(_RUNTIME)),
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.type": "hive",
        **{f"{catalog}.{key}": value for key, value in place.items()},
    }


def _files(folder: Path, batches: int) -> None:
    """The source: a file a batch, in the order of their times."""
    folder.mkdir(parents=True)
    for number in range(batches):
        path = folder / f"{number:05d}.json"
        ids = range(number * _ROWS, (number + 1) * _ROWS)
        path.write_text("".join(json.dumps({"id": i, "s": f"value {i}"}) + "\n" for i in ids))
        os.utime(path, (1_600_000_000 + number, 1_600_000_000 + number))


def _run(
    spark: SparkProcess, table: str | None, source: Path, checkpoint: Path, batches: int
) -> Figures:
    if table is not None:
        spark.sql(f"CREATE TABLE {table} (id bigint, s string) USING iceberg")
    cpu, wall = cpu_s(spark.pid), time.perf_counter()
    spark.sink(table, _COLUMNS, source, checkpoint)
    wall = time.perf_counter() - wall
    cpu = cpu_s(spark.pid) - cpu
    if table is not None:
        found = spark.sql(f"SELECT count(*), count(DISTINCT id) FROM {table}")
        expect(found, [[batches * _ROWS] * 2], table)
        spark.sql(f"DROP TABLE {table}")
    return {"batch_s": wall / batches, "cpu_s": cpu / batches, "a_minute": 60 * batches / wall}


def _measure(given: argparse.Namespace) -> None:
    shutil.rmtree(given.work, ignore_errors=True)
    few, many = given.work / "few", given.work / "many"
    _files(few, 5)
    _files(many, given.batches)
    with ExitStack() as stack:
        metastore = embedded.start(given.work / "warehouse")
        stack.callback(embedded.stop, metastore.warehouse)
        sparks = {}
        for peer in _PEERS:
            log = given.work / f"{peer}.log"
            spark = SparkProcess(ICEBERG_JAVA_VENV, _conf(peer, metastore), metastore, log)
            stack.callback(spark.close)
            sparks[peer] = spark
        sparks["icecomb"].sql("CREATE NAMESPACE lake.db")

        def run(peer: str, turn: int) -> Figures:
            source, batches = (many, given.batches) if turn else (few, 5)
            checkpoint = given.work / f"checkpoint-{peer}-{turn}"
            table = None if peer == _NOWHERE else f"lake.db.{peer}"
            return _run(sparks[peer], table, source, checkpoint, batches)

        runs = in_turn(_PEERS, run, given.repeat, warm=1)
    print_runs(
        "spark_stream",
        runs,
        [(_PEERS[0], peer) for peer in _PEERS[1:]],
        rows=_ROWS,
        batches=given.batches,
    )


def main() -> None:
    """Print the line."""
    arguments = parser(__doc__)
    arguments.add_argument("--work", type=Path, required=True, help="for tables and checkpoints")
    arguments.add_argument("--batches", type=int, default=60)
    given = arguments.parse_args()
    given.work = given.work.resolve()
    _measure(given)


if __name__ == "__main__":
    main()
