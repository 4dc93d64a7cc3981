"""Plans of a large table for Spark: the planner process alone, and a driver that asks it.

    python -m tests.bench.spark_planning --table build/bench/big100k            # planner alone
    python -m tests.bench.spark_planning --table build/bench/big100k --driver   # Spark as well

One JSON line a figure: seconds end to end (the first and the best of the rest), the planner's peak
of resident memory, and with `--driver` what the driver's heap holds of the plan.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.spark.planner.protocol import ENVIRONMENT, MYSELF, selection

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TOKEN = "bench"  # noqa: S105 - of a process that lives for one measurement
_MIB = 1 << 20
_FILTERS: dict[str, list[Any]] = {
    "full": [],
    "bounds": [
        {"op": "gt_eq", "column": ["key"], "type": "long", "value": 0},
        {"op": "lt_eq", "column": ["key"], "type": "long", "value": 0},
    ],
}


class Planner:
    """The planner process, asked as the bridge asks it."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "icecomb.spark.planner"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "ICECOMB_PLANNER_TOKEN": _TOKEN},
        )
        assert self.process.stdout is not None
        self._port = json.loads(self.process.stdout.readline())["port"]
        self._first = self.connected()

    def ask(self, method: str, **params: Any) -> tuple[dict[str, Any], int]:
        """See `Connection.ask`."""
        return self._first.ask(method, **params)

    def connected(self) -> Connection:
        """One more connection."""
        return Connection(self._port)

    def load(self, table: str, catalog: str) -> dict[str, Any]:
        """See `Connection.load`."""
        return self._first.load(table, catalog)

    def plan(self, loaded: dict[str, Any], field_ids: list[int], filters: list[Any]) -> int:
        """See `Connection.plan`."""
        return self._first.plan(loaded, field_ids, filters)

    def peak_mib(self) -> float:
        """Of its resident memory, until now."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.findall(r"VmHWM:\s+(\d+)", status)[0]) / 1024

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


class Connection:
    """A connection to a planner, which answers one question at a time."""

    def __init__(self, port: int) -> None:
        self._lines = socket.create_connection(("127.0.0.1", port)).makefile("rwb")
        self._lines.write(f"{_TOKEN}\n".encode())
        self._lines.flush()
        self._lines.readline()

    def ask(self, method: str, **params: Any) -> tuple[dict[str, Any], int]:
        """The answer without its pages, and how many bytes came."""
        line = json.dumps({"id": 1, "method": method, "params": params}) + "\n"
        self._lines.write(line.encode())
        self._lines.flush()
        size = 0
        while (found := self._lines.readline()).startswith(b'{"page"'):
            size += len(found)
        answer = json.loads(found)
        for _ in range(sum(answer.get("pages", {}).values())):
            size += len(self._lines.readline())
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer["result"], size + len(found)

    def load(self, table: str, catalog: str) -> dict[str, Any]:
        """A table, by its folder."""
        loaded, _ = self.ask(
            "load_table",
            catalog=catalog,
            table={"namespace": [], "name": table},
            version=None,
            timestamp_us=None,
            audit={"wap_id": None, "wap_branch": None},
        )
        return loaded

    def plan(self, loaded: dict[str, Any], field_ids: list[int], filters: list[Any]) -> int:
        """Plan a scan; how many bytes came."""
        _, size = self.ask(
            "plan_scan",
            selection=selection(loaded, filters, {}),
            field_ids=field_ids,
            hints={"parallelism": 2, "split_bytes": None, "open_cost_bytes": None},
            changes=None,
            limit=None,
            files=None,
            top=None,
            estimates_columns=False,
        )
        return size


def scan_of(planner: Planner, table: str) -> dict[str, Any]:
    """What a scan of a table names: the catalog's handle, the table loaded, and the ids of its columns."""
    options = {"type": "hadoop", "warehouse": str(Path(table).parent)}
    opened, _ = planner.ask(
        "open_catalog", name="b", options=options, environment=ENVIRONMENT, identity=MYSELF
    )
    loaded = planner.load(table, opened["catalog"])
    fields = [field["metadata"]["parquet.field.id"] for field in loaded["schema"]["fields"]]
    return {"catalog": opened["catalog"], "loaded": loaded, "field_ids": fields}


def planner_alone(table: str, scan: str, repeat: int) -> None:
    """Plan as often as asked for, in one new process."""
    planner = Planner()
    asked = scan_of(planner, table)
    begun, size, times = planner.peak_mib(), 0, []
    for _ in range(repeat):
        at = time.perf_counter()
        size = planner.plan(asked["loaded"], asked["field_ids"], _filters(table, scan))
        times.append(time.perf_counter() - at)
    figure("planner", table, scan, times, begin_mib=begun, peak_mib=planner.peak_mib(), bytes=size)
    planner.close()


def folder_session(warehouse: Path) -> SparkSession:
    """A Spark whose catalog `lake` is a folder."""
    import icecomb.spark

    options = {"type": "hadoop", "warehouse": str(warehouse)}
    conf = {f"spark.sql.catalog.lake.{key}": value for key, value in options.items()}
    return icecomb.spark.session("lake", **conf)


def with_driver(table: str, scan: str, repeat: int) -> None:
    """Plan in Spark, until its tasks are known; nothing is read."""
    spark = folder_session(Path(table).parent)
    memory = spark._jvm.java.lang.management.ManagementFactory
    pools = [p for p in memory.getMemoryPoolMXBeans() if str(p.getType()) == "Heap memory"]

    def used() -> float:
        spark._jvm.System.gc()
        return float(memory.getMemoryMXBean().getHeapMemoryUsage().getUsed()) / _MIB

    times, held, peak, count = [], 0.0, 0.0, 0
    before = used()
    for _ in range(repeat):
        for pool in pools:
            pool.resetPeakUsage()
        frame = spark.read.format("icecomb").load(table)
        for column, op, value in _expected(table)[scan]["predicate"]:
            frame = frame.where(f"{column} {op} {value!r}")
        at = time.perf_counter()
        count = frame._jdf.queryExecution().executedPlan().execute().getNumPartitions()
        times.append(time.perf_counter() - at)
        peak = max(peak, sum(p.getPeakUsage().getUsed() for p in pools) / _MIB - before)
        held = used() - before
        del frame
    spark._jvm.System.gc()
    after = used() - before
    figure("driver", table, scan, times, held_mib=held, peak_mib=peak, after_mib=after, tasks=count)
    spark.stop()


def figure(measure: str, table: str, scan: str, times: list[float], **more: float) -> None:
    """One line."""
    warm = min(times[1:]) if len(times) > 1 else None
    times_s = {"first_s": round(times[0], 3), "warm_s": warm and round(warm, 3)}
    rest = {key: round(value, 1) for key, value in more.items()}
    load = round(os.getloadavg()[0], 1)
    line = {"measure": f"spark_planning.{measure}", "table": Path(table).name, "scan": scan}
    print(json.dumps({**line, **times_s, **rest, "load": load}), flush=True)


def _expected(table: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((Path(table) / "expected.json").read_text())
    return found


def bounds_of(table: str) -> list[Any]:
    """The filter that the bounds of few files pass."""
    return _filters(table, "bounds")


def _filters(table: str, scan: str) -> list[Any]:
    filters = [dict(each) for each in _FILTERS[scan]]
    for each, (_, _, value) in zip(filters, _expected(table)[scan]["predicate"], strict=True):
        each["value"] = value
    return filters


def main() -> None:
    """Measure as the arguments say."""
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--table", required=True, help="a folder that big_table made")
    arguments.add_argument("--scans", default="full,bounds")
    arguments.add_argument("--repeat", type=int, default=3, help="plans of one process")
    arguments.add_argument("--driver", action="store_true", help="with Spark")
    given = arguments.parse_args()
    table = str(Path(given.table).resolve())
    for scan in given.scans.split(","):
        (with_driver if given.driver else planner_alone)(table, scan, given.repeat)


if __name__ == "__main__":
    main()
