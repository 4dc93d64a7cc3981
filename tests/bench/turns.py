"""One process appends without a pause to a file-system table; another deletes rows meanwhile.

    python -m tests.bench.turns --work build/bench/turns          # on local folders; --hdfs: on HDFS

Who has more to do between reading and publishing must not lose every race. First the appender runs
alone, then beside deletes of two rows each that were there before; every delete commits, or is
counted as failed. Afterwards exactly the rows that were appended and not deleted are there. For
HDFS a cluster is started, unless `--hdfs` names the `HADOOP_CONF_DIR` of one.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.bench.measure import ROOT, expect, print_line
from tests.peers.hdfs import Hdfs

_OLD = 2_000


def main() -> None:
    """Runs the appender alone and beside deletes, or is the appender."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=Path, default=Path("build/bench/turns"), help="for tables")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--appenders", type=int, default=1)
    parser.add_argument("--hdfs", nargs="?", const="", metavar="CONF", help="tables on HDFS")
    parser.add_argument("--appender", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.appender:
        table, *numbers = arguments.appender
        _append(table, arguments.seconds, *map(int, numbers))
        return
    with _warehouse(arguments.work, arguments.hdfs) as warehouse:
        _measure(warehouse, arguments)


@contextmanager
def _warehouse(work: Path, conf: str | None) -> Iterator[str]:
    """Where tables go."""
    if conf is None:
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        yield str(work.absolute())
        return
    folder = Path(tempfile.mkdtemp())
    cluster = None if conf else Hdfs(folder)
    try:
        os.environ["HADOOP_CONF_DIR"] = conf or str(cluster.start().conf)
        os.environ["HADOOP_USER_NAME"] = "bench"
        yield f"hdfs:///warehouse/{uuid.uuid4().hex}"
    finally:
        if cluster:
            cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _measure(warehouse: str, arguments: argparse.Namespace) -> None:
    from icecomb.catalog import load_catalog

    for deletes in (False, True):
        place = f"{warehouse}/{'both' if deletes else 'alone'}"
        table = load_catalog("bench", type="hadoop", warehouse=place).create_table(
            "t", _rows(0).schema
        )
        table.append(pa.table({"id": pa.array(range(_OLD), pa.int64())}))
        started = [
            _start(place, arguments.seconds, number) for number in range(arguments.appenders)
        ]
        taken: list[float] = []
        failures: list[str] = []
        until = time.monotonic() + arguments.seconds
        while deletes and time.monotonic() < until and 2 * len(taken) < _OLD - 2:
            begun, first = time.monotonic(), 2 * len(taken)
            try:
                table.delete(f"id in ({first}, {first + 1})")
            except Exception as error:  # noqa: BLE001 - it is counted
                failures.append(repr(error)[:200])
                table.refresh()
            else:
                taken.append(time.monotonic() - begun)
        appended = [json.loads(each.communicate()[0]) for each in started]
        found = sorted(table.refresh().scan().to_arrow()["id"].to_pylist())
        wanted = [*range(2 * len(taken), _OLD), *(i for each in appended for i in each)]
        expect(found, sorted(wanted), "rows")
        print_line(
            "turns",
            case="both" if deletes else "alone",
            appends_per_s=round(sum(map(len, appended)) / arguments.seconds, 1),
            **(
                {"deletes": len(taken), "slowest_s": round(max(taken, default=0), 2)}
                if deletes
                else {}
            ),
            **({"failures": failures[:3], "failed": len(failures)} if failures else {}),
        )


def _start(place: str, seconds: float, number: int) -> subprocess.Popen[str]:
    own = [sys.executable, "-m", "tests.bench.turns", "--seconds", str(seconds)]
    command = [*own, "--appender", f"{place}/t", str(number), str(_OLD)]
    started = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert started.stdout is not None
    expect(started.stdout.readline().strip(), "ready", "an appender")
    return started


def _append(folder: str, seconds: float, number: int, first: int) -> None:
    from icecomb.catalog import open_table

    table = open_table(folder)
    done: list[int] = []
    following = first + number * 1_000_000_000
    print("ready", flush=True)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        table.append(_rows(following))
        done.append(following)
        following += 1
    print(json.dumps(done), flush=True)


def _rows(number: int) -> Any:
    return pa.table({"id": pa.array([number], pa.int64())})


if __name__ == "__main__":
    main()
