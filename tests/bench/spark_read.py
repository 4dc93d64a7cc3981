"""Reading in Spark 4.1: icecomb beside plain Parquet or ORC, and beside Iceberg's runtime 1.12.

    python -m tests.bench.spark_read --work build/bench/spark_read

Three Sparks run at once, one for each peer, and take turns query by query over the same files; each
must give the same rows. `cpu_s` is of all the processes of a peer: Spark, its compiler threads and
its garbage collector, and the planner. The tables are made at the first run and kept.
"""

from __future__ import annotations

import math
import os
import shutil
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from icecomb.spark import spark_conf
from icecomb.spark.jar import bridge_jar, spark_home
from tests.bench.measure import Figures, expect, in_turn, parser, print_line, print_runs
from tests.bench.spark_tables import (
    TPCH,
    make_events,
    make_other_formats,
    make_tpch,
    tpch_queries,
)
from tests.environments import ICEBERG_JAVA_VENV, pyspark_of
from tests.peers.ivy import fetch
from tests.peers.spark_process import SparkProcess

_RUNTIME: Final = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PEERS: Final = ("native", "icecomb", "iceberg")
_SCANS: Final = {
    "filter": "SELECT count(*), sum(l) FROM {} WHERE i < 10000",
    "group": "SELECT s, count(*), sum(i), max(l) FROM {} GROUP BY s ORDER BY s",
    "wide": "SELECT sum(id), max(ts), sum(i), sum(l), max(d), max(f), sum(length(s)), sum(length(u)) FROM {}",
    "count": "SELECT count(*) FROM {}",
    "point": "SELECT * FROM {} WHERE id = 1234567",
}


@dataclass(frozen=True)
class Contestant:
    """Somebody's run of a query."""

    peer: str
    query: str


class Sparks:
    """The Sparks of all peers, each with its catalog `lake` on the same folder."""

    def __init__(self, work: Path, peers: Sequence[str], stack: ExitStack) -> None:
        self.ready_s: dict[str, float] = {}
        self._running: dict[str, SparkProcess] = {}
        for peer in peers:
            started = time.perf_counter()
            spark = SparkProcess(ICEBERG_JAVA_VENV, _conf(peer, work), None, work / f"{peer}.log")
            stack.callback(spark.close)
            self._running[peer] = spark
            self.ready_s[peer] = time.perf_counter() - started

    def sql(self, peer: str, text: str) -> list[list[Any]]:
        """The rows of a statement."""
        return self._running[peer].sql(text)

    def timed(self, contestant: Contestant) -> tuple[list[list[Any]], Figures]:
        """The rows of a query and what it took."""
        spark = self._running[contestant.peer]
        cpu, wall = cpu_s(spark.pid), time.perf_counter()
        rows = spark.sql(contestant.query)
        wall = time.perf_counter() - wall
        return rows, {"wall_s": wall, "cpu_s": cpu_s(spark.pid) - cpu}


def _conf(peer: str, work: Path) -> dict[str, str]:
    warehouse = str(work / "warehouse")
    common = {"spark.driver.memory": "2g", "spark.ui.showConsoleProgress": "false"}
    if peer == "icecomb":
        home = spark_home(pyspark_of(ICEBERG_JAVA_VENV))
        options = {"type": "hadoop", "warehouse": warehouse}
        return common | spark_conf(
            "lake", python=sys.executable, jar=bridge_jar(home), options=options
        )
    if peer == "iceberg":
        return common | {
            "spark.jars": str(fetch(_RUNTIME)),
            "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.lake.type": "hadoop",
            "spark.sql.catalog.lake.warehouse": warehouse,
        }
    return common


def cpu_s(pid: int) -> float:
    """CPU seconds of a process and of all below it, also of those that ended."""
    children: dict[int, list[int]] = {}
    ticks: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            children.setdefault(int(fields[1]), []).append(int(folder.name))
            ticks[int(folder.name)] = sum(map(int, fields[11:15]))
    found, waiting = 0, [pid]
    while waiting:
        each = waiting.pop()
        found += ticks.get(each, 0)
        waiting += children.get(each, [])
    return found / _TICKS


def make(work: Path, rows: int, scale: float) -> None:
    """The tables, unless they are there."""
    done = work / f"made-{rows}-{scale}"
    if done.exists():
        return
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    with ExitStack() as stack:
        sparks = Sparks(work, ("icecomb", "iceberg"), stack)
        make_tpch(work, scale, lambda text: sparks.sql("icecomb", text))
        make_events(work, rows, lambda text: sparks.sql("icecomb", text))
        make_other_formats(rows // 4, lambda text: sparks.sql("iceberg", text))
    done.touch()


@contextmanager
def opened(work: Path) -> Iterator[Sparks]:
    """The Sparks, the plain one with views of the same names over the same files."""
    with ExitStack() as stack:
        sparks = Sparks(work, _PEERS, stack)
        warehouse = work / "warehouse"
        for name in TPCH:
            _view(sparks, name, warehouse / "tpch" / name)
        for name, kind in (("events", "parquet"), ("tiny", "parquet"), ("events_orc", "orc")):
            _view(sparks, name, warehouse / "db" / name, kind)
        yield sparks


def _view(sparks: Sparks, name: str, table: Path, kind: str = "parquet") -> None:
    path = f"{table}/data"
    sparks.sql("native", f"CREATE TEMPORARY VIEW {name} USING {kind} OPTIONS (path '{path}')")


def compare(
    sparks: Sparks,
    case: str,
    contestants: Mapping[str, Contestant],
    against: Sequence[tuple[str, str]],
    arguments: Any,
    *,
    repeat: int | None = None,
    measure: str = "spark_read",
) -> Figures:
    """Run all in turn and print the line.

    Args:
        sparks: Who runs them.
        case: What is measured.
        contestants: By their name in the line. Those of one text but for the table give the same.
        against: Whose figures are divided by whose.
        arguments: How often.
        repeat: How often instead.
        measure: The benchmark.

    Returns:
        The figures of each, and the ratios.
    """
    answers: dict[str, list[list[Any]]] = {}

    def run(name: str, _: int) -> Figures:
        rows, figures = sparks.timed(contestants[name])
        same = answers.setdefault(contestants[name].query.replace("lake.db.", ""), rows)
        expect(rows, same, f"{case}, {name}")
        return figures

    runs = in_turn(list(contestants), run, repeat or arguments.repeat, arguments.warm)
    return print_runs(measure, runs, against, case=case)


def measure_scans(sparks: Sparks, arguments: Any) -> None:
    """Scans of one table, by all three."""
    for case, query in _SCANS.items():
        # so short that the first ones say how much is compiled yet
        repeat = 40 if case == "point" else None
        _compare_scan(sparks, case, query, "events", _PEERS, arguments, repeat)
    for case in ("filter", "group", "wide"):
        query = _SCANS[case].replace("max(ts), ", "")
        _compare_scan(sparks, f"orc {case}", query, "events_orc", _PEERS, arguments)
        _compare_scan(sparks, f"avro {case}", query, "events_avro", _PEERS[1:], arguments)


def _compare_scan(
    sparks: Sparks,
    case: str,
    query: str,
    table: str,
    peers: Sequence[str],
    arguments: Any,
    repeat: int | None = None,
) -> None:
    contestants = {
        peer: Contestant(peer, query.format(table if peer == "native" else f"lake.db.{table}"))
        for peer in peers
    }
    compare(sparks, case, contestants, _AGAINST, arguments, repeat=repeat)


def measure_deletes(sparks: Sparks, arguments: Any) -> None:
    """Scans of the same files with deleted rows, beside those without."""
    for kind in ("positions", "vectors", "keys", "texts"):
        for case in ("filter", "group", "wide"):
            query = _SCANS[case]
            contestants = {
                "none": Contestant("icecomb", query.format("lake.db.events")),
                "icecomb": Contestant("icecomb", query.format(f"lake.db.events_{kind}")),
                "iceberg": Contestant("iceberg", query.format(f"lake.db.events_{kind}")),
            }
            against = [("icecomb", "none"), ("icecomb", "iceberg")]
            compare(sparks, f"{kind} {case}", contestants, against, arguments)


def measure_tpch(sparks: Sparks, arguments: Any) -> None:
    """The queries one by one, and the geometric mean of their ratios."""
    for peer in _PEERS[1:]:
        sparks.sql(peer, "USE lake.tpch")
    found = []
    for number, text in tpch_queries().items():
        contestants = {peer: Contestant(peer, text) for peer in _PEERS}
        found.append(compare(sparks, f"tpch {number}", contestants, _AGAINST, arguments)["ratio"])
    means = {
        pair: {
            name: round(math.exp(statistics.mean(math.log(each[pair][name]) for each in found)), 3)
            for name in found[0][pair]
        }
        for pair in found[0]
    }
    print_line("spark_read", case="tpch geometric mean", ratio=means)


def measure_first(work: Path, arguments: Any) -> None:
    """The first query of sessions of their own, one Spark at a time; `ready_s` is until there is one.

    The plain one names the files by their folder, so that nothing was looked at before it, either.
    Whoever starts Spark seldom asks at once: the query comes `--pause` seconds after the session.
    """
    tiny = f"parquet.`{work / 'warehouse' / 'db' / 'tiny' / 'data'}`"

    def run(peer: str, _: int) -> Figures:
        table = tiny if peer == "native" else "lake.db.tiny"
        with ExitStack() as stack:
            sparks = Sparks(work, (peer,), stack)
            time.sleep(arguments.pause)
            _, figures = sparks.timed(Contestant(peer, _TINY.format(table)))
        return {**figures, "ready_s": sparks.ready_s[peer]}

    runs = in_turn(_PEERS, run, arguments.starts)
    print_runs("spark_read", runs, _AGAINST, case="first query")


def measure_overhead(sparks: Sparks, arguments: Any) -> None:
    """A trivial query, again and again."""
    contestants = {
        peer: Contestant(peer, _TINY.format("tiny" if peer == "native" else "lake.db.tiny"))
        for peer in _PEERS
    }
    found = compare(sparks, "trivial query", contestants, _AGAINST, arguments, repeat=40)
    for name in ("wall_s", "cpu_s"):
        more = 1000 * (found["icecomb"][name] - found["native"][name])
        print_line("spark_read", case=f"trivial query, {name} over native", ms=round(more, 1))


_TINY: Final = "SELECT id, s FROM {} WHERE id > 3"
_AGAINST: Final = [("icecomb", "native"), ("icecomb", "iceberg")]
_FIRST: Final = "first"
_CASES: Final = {
    "overhead": measure_overhead,
    "scans": measure_scans,
    "deletes": measure_deletes,
    "tpch": measure_tpch,
}


def main() -> None:
    """Print the lines."""
    arguments = parser(__doc__)
    arguments.add_argument("--work", type=Path, required=True, help="for the tables")
    arguments.add_argument("--rows", type=int, default=10_000_000)
    arguments.add_argument("--scale", type=float, default=1, help="of TPC-H")
    arguments.add_argument("--warm", type=int, default=2, help="turns that do not count")
    arguments.add_argument("--starts", type=int, default=3, help="Sparks a peer for `first`")
    arguments.add_argument("--pause", type=float, default=3, help="seconds before a first query")
    arguments.add_argument("--cases", default=",".join((_FIRST, *_CASES)))
    arguments.set_defaults(repeat=5)
    given = arguments.parse_args()
    given.work = given.work.resolve()
    make(given.work, given.rows, given.scale)
    cases = given.cases.split(",")
    if _FIRST in cases:
        cases.remove(_FIRST)
        measure_first(given.work, given)
    if cases:
        with opened(given.work) as sparks:
            for case in cases:
                _CASES[case](sparks, given)


if __name__ == "__main__":
    main()
