"""Many queries at once on one planner: what one waits for, and how many there are a second.

    python -m tests.bench.spark_concurrent --table build/bench/big100k              # planner alone
    python -m tests.bench.spark_concurrent --table build/bench/big100k --driver     # one Spark session

The planner alone is asked what a query asks, to load a table and to plan its scan, on as many
connections as `--threads` says: `small` is a table of one file, `bounds` a filter over all files of
`--table`. `busy` is how many cores the planner kept busy: near 1 while latencies grow with the
threads, Python's lock is what they wait for. With `--driver` the threads run queries of one
session on a small table, and on its file as plain Parquet; `planner` is the planner's part of the
CPU seconds.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any, Final

import pyarrow as pa

from icecomb.catalog import load_catalog
from tests.bench.measure import print_line
from tests.bench.spark_planning import Planner, bounds_of, folder_session, scan_of
from tests.bench.spark_read import cpu_s

_TICKS: Final = os.sysconf("SC_CLK_TCK")


def at_once(threads: int, rounds: int, work: Callable[[int], object]) -> tuple[list[float], float]:
    """The seconds of every call of `work` in so many threads, and until all were done."""
    begin = Barrier(threads + 1)

    def run(number: int) -> list[float]:
        begin.wait()
        found = []
        for _ in range(rounds):
            at = time.perf_counter()
            work(number)
            found.append(time.perf_counter() - at)
        return found

    with ThreadPoolExecutor(threads) as pool:
        running = [pool.submit(run, number) for number in range(threads)]
        begin.wait()
        at = time.perf_counter()
        times = [seconds for each in running for seconds in each.result()]
        return times, time.perf_counter() - at


def planner_alone(case: str, table: str, filters: list[Any], given: argparse.Namespace) -> None:
    """A line for each number of threads."""
    planner = Planner()
    try:
        scan = scan_of(planner, table)
        _plan(planner, table, scan, filters)
        for threads in given.threads:
            connections = [planner.connected() for _ in range(threads)]
            cpu = _process_cpu_s(planner.process.pid)
            times, wall = at_once(
                threads,
                given.rounds,
                lambda number, use=connections: _plan(use[number], table, scan, filters),
            )
            cpu = _process_cpu_s(planner.process.pid) - cpu
            _line(case, threads, times, wall, cpu_ms=1000 * cpu / len(times), busy=cpu / wall)
    finally:
        planner.close()


def _plan(planner: Any, table: str, scan: dict[str, Any], filters: list[Any]) -> None:
    loaded = planner.load(table, scan["catalog"])
    planner.plan(loaded, scan["field_ids"], filters)


def with_driver(table: Path, given: argparse.Namespace) -> None:
    """Queries of one session, of ours and of plain Parquet."""
    spark = folder_session(table.parents[1])
    jvm = int(spark._jvm.java.lang.ProcessHandle.current().pid())
    sources = {
        "icecomb": f"lake.db.{table.name}",
        "parquet": f"parquet.`{table}/data`",
    }
    for name, source in sources.items():

        def query(_: int, source: str = source) -> None:
            assert len(spark.sql(f"SELECT id FROM {source} WHERE id > 3").collect()) == 6

        at_once(2, 10, query)
        for threads in given.threads:
            cpu, children = _process_cpu_s(jvm), cpu_s(jvm)
            times, wall = at_once(threads, given.rounds, query)
            driver = _process_cpu_s(jvm) - cpu
            planner = cpu_s(jvm) - children - driver
            more = {"cpu_ms": 1000 * (driver + planner) / len(times), "planner": planner / driver}
            _line(f"driver, {name}", threads, times, wall, **more)
    spark.stop()


def small_table(folder: Path) -> Path:
    """A table `db.small` of ten rows in one file."""
    catalog = load_catalog("small", type="hadoop", warehouse=str(folder))
    catalog.create_namespace("db")
    rows = pa.table({"id": pa.array(range(10), pa.int64())})
    catalog.create_table("db.small", rows.schema).append(rows)
    return folder / "db" / "small"


def _line(case: str, threads: int, times: list[float], wall: float, **more: float) -> None:
    ordered = sorted(times)
    print_line(
        "spark_concurrent",
        case=case,
        threads=threads,
        per_s=round(len(times) / wall, 1),
        median_ms=round(1000 * statistics.median(ordered), 1),
        p95_ms=round(1000 * ordered[int(0.95 * (len(ordered) - 1))], 1),
        **{key: round(value, 3) for key, value in more.items()},
    )


def _process_cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def main() -> None:
    """Print the lines."""
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--table", type=Path, help="a folder that big_table made")
    arguments.add_argument("--threads", type=_numbers, default=[1, 4, 32])
    arguments.add_argument(
        "--rounds", type=int, default=20, help="queries of a thread; of `bounds` a fifth"
    )
    arguments.add_argument("--driver", action="store_true", help="with Spark")
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        small = small_table(Path(folder))
        if given.driver:
            with_driver(small, given)
            return
        planner_alone("small", str(small), [], given)
        if given.table is not None:
            large = str(given.table.resolve())
            given.rounds = max(1, given.rounds // 5)
            planner_alone("bounds", large, bounds_of(large), given)


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


if __name__ == "__main__":
    main()
