"""Joins in Spark 4.1 with what `compute_table_stats` tells of columns, and without: TPC-H 5, 8, 9.

    python -m tests.bench.spark_tpch_statistics --work build/bench/spark_tpch_statistics

Prints for each query the seconds of three ways that take turns, and the order in which each joins:
`plain`, with Spark's defaults; `blind`, with the cost-based optimizer and its reordering of joins,
but without numbers of distinct values; `told`, with them. In an order, `(a & b)` is a join that
sends one side to all executors, `(a + b)` one that sorts both.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from tests.bench.measure import Figures, expect, in_turn, parser, print_line, print_runs
from tests.bench.spark_read import Contestant, Sparks
from tests.bench.spark_tables import TPCH, make_tpch, tpch_queries

_PEER: Final = "icecomb"
_QUERIES: Final = (5, 8, 9)
_COST: Final = ("spark.sql.cbo.enabled", "spark.sql.cbo.joinReorder.enabled")
_TOLD: Final = "spark.sql.iceberg.report-column-stats"
_WAYS: Final = {"plain": ("false", "false"), "blind": ("true", "false"), "told": ("true", "true")}
_NODE: Final = re.compile(r"^([ :+*()0-9-]*)([A-Z]\w*)(.*)")
_TABLE: Final = re.compile(r"\btpch\.(\w+)")


def make(work: Path, scale: float) -> None:
    """The tables and their statistics, unless they are there."""
    done = work / f"made-{scale}"
    if done.exists():
        return
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    with ExitStack() as stack:
        sparks = Sparks(work, (_PEER,), stack)
        make_tpch(work, scale, lambda text: sparks.sql(_PEER, text))
        for name in TPCH:
            call = f"CALL lake.system.compute_table_stats(table => 'tpch.{name}')"
            _, figures = sparks.timed(Contestant(_PEER, call))
            print_line("spark_tpch_statistics", case=f"statistics of {name}", **figures)
    done.touch()


def choose(sparks: Sparks, way: str) -> None:
    """Set what a way of planning has."""
    cost, told = _WAYS[way]
    for key in _COST:
        sparks.sql(_PEER, f"SET {key}={cost}")
    sparks.sql(_PEER, f"SET `{_TOLD}`={told}")


def join_order(plan: str) -> str:
    """The joins of a physical plan, inner ones in parentheses."""
    physical = plan.partition("== Physical Plan ==")[2]
    nodes = iter([match for line in physical.splitlines() if (match := _NODE.match(line))])
    return _joined(nodes)


def _joined(nodes: Iterator[re.Match[str]]) -> str:
    for node in nodes:
        if node[2].endswith("Join"):
            sign = "&" if node[2].startswith("Broadcast") else "+"
            left = _joined(nodes)
            return f"({left} {sign} {_joined(nodes)})"
        if node[2] == "BatchScan" and (table := _TABLE.search(node[3])):
            return table[1]
    return "?"


def measure(sparks: Sparks, number: int, query: str, arguments: Any) -> None:
    """One query, each way."""
    for way in _WAYS:
        choose(sparks, way)
        ((plan,),) = sparks.sql(_PEER, f"EXPLAIN {query}")
        print_line("spark_tpch_statistics", case=f"tpch {number}", way=way, joins=join_order(plan))
    answers: list[list[list[Any]]] = []

    def run(way: str, _: int) -> Figures:
        choose(sparks, way)
        rows, figures = sparks.timed(Contestant(_PEER, query))
        answers.append(rows)
        expect(rows, answers[0], f"tpch {number}, {way}")
        return figures

    runs = in_turn(list(_WAYS), run, arguments.repeat, arguments.warm)
    against = [("told", "plain"), ("told", "blind")]
    print_runs("spark_tpch_statistics", runs, against, case=f"tpch {number}")


def main() -> None:
    """Print the lines."""
    arguments = parser(__doc__)
    arguments.add_argument("--work", type=Path, required=True, help="for the tables")
    arguments.add_argument("--scale", type=float, default=1, help="of TPC-H")
    arguments.add_argument("--warm", type=int, default=1, help="turns that do not count")
    given = arguments.parse_args()
    given.work = given.work.resolve()
    make(given.work, given.scale)
    with ExitStack() as stack:
        sparks = Sparks(given.work, (_PEER,), stack)
        sparks.sql(_PEER, "USE lake.tpch")
        for number, query in tpch_queries(_QUERIES).items():
            measure(sparks, number, query, given)


if __name__ == "__main__":
    main()
