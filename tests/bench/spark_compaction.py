"""rewrite_data_files by CALL in Spark 4.1: icecomb's planner, its executors, and Iceberg's runtime.

    python -m tests.bench.spark_compaction --work build/bench/spark_compaction
    python -m tests.bench.spark_compaction --work build/bench/spark_compaction --cases large --files 30

small: many files of 1,000 rows become some of 128 MiB. large: files of 400,000 rows, whose row groups
of 11 MB are decoded. copied: the same, row groups copied where that can be. sort: the same, sorted by two
columns. The peers take turns on one table, which is rolled back after each.
"""

from __future__ import annotations

import argparse
import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from tests.bench.compaction import add_files
from tests.bench.measure import Figures, expect, in_turn, parser, print_runs
from tests.bench.peer_icecomb import catalog, create
from tests.bench.rows import arrow_rows
from tests.bench.spark_read import Contestant, Sparks

_PEERS: Final = ("planner", "executors", "iceberg")
_AGAINST: Final = (("planner", "iceberg"), ("executors", "iceberg"))
_ROWS: Final = {"small": 1_000, "large": 400_000, "copied": 400_000, "sort": 400_000}
_OPTIONS: Final = {"target-file-size-bytes": str(128 << 20), "rewrite-all": "true"}


def make(work: Path, case: str, files: int) -> int:
    """The table; gives its snapshot."""
    table = create(catalog(str(work)), case, arrow_rows(1).schema)
    count = _ROWS[case]
    rows = arrow_rows(count * min(files, 50))
    add_files(table, [rows.slice(at, count) for at in range(0, len(rows), count)], files)
    snapshot = table.refresh().current_snapshot()
    return int(snapshot.snapshot_id)


def call(case: str, peer: str) -> str:
    """The statement of a peer."""
    options = dict(_OPTIONS)
    if peer == "executors":
        options["engine"] = "spark"
    elif peer == "planner":
        options["engine"] = "local"
        if case != "copied":
            options["copy"] = "never"
    given = ", ".join(f"'{key}', '{value}'" for key, value in options.items())
    order = ", strategy => 'sort', sort_order => 'l, id DESC'" if case == "sort" else ""
    return (
        f"CALL lake.system.rewrite_data_files(table => 'db.{case}', options => map({given}){order})"
    )


def measure(sparks: Sparks, given: argparse.Namespace, case: str) -> None:
    """All turns of one case."""
    files = given.small_files if case == "small" else given.files
    snapshot = make(given.work, case, files)

    def run(peer: str, _: int) -> Figures:
        spark = "iceberg" if peer == "iceberg" else "icecomb"
        sparks.sql(spark, f"REFRESH TABLE lake.db.{case}")
        rows, figures = sparks.timed(Contestant(spark, call(case, peer)))
        expect(rows[0][0], files, f"files, {peer}")
        figures["files"] = rows[0][1]
        sparks.sql(spark, f"CALL lake.system.rollback_to_snapshot('db.{case}', {snapshot})")
        return figures

    runs = in_turn(given.peers.split(","), run, given.repeat, warm=given.warm)
    print_runs("spark_compaction", runs, _AGAINST, case=case, files=files, rows=_ROWS[case] * files)


def main() -> None:
    """Print a line a case."""
    arguments = parser(__doc__)
    arguments.set_defaults(peers=",".join(_PEERS))
    arguments.add_argument("--work", type=Path, required=True, help="for the tables; emptied")
    arguments.add_argument("--small-files", type=int, default=10_000, help="of the case `small`")
    arguments.add_argument("--files", type=int, default=60, help="of the others")
    arguments.add_argument("--warm", type=int, default=0, help="turns that do not count")
    arguments.add_argument("--cases", default=",".join(_ROWS))
    given = arguments.parse_args()
    given.work = given.work.resolve()
    shutil.rmtree(given.work, ignore_errors=True)
    (given.work / "warehouse").mkdir(parents=True)
    with ExitStack() as stack:
        sparks = Sparks(given.work, ("icecomb", "iceberg"), stack)
        for case in given.cases.split(","):
            measure(sparks, given, case)
    shutil.rmtree(given.work, ignore_errors=True)


if __name__ == "__main__":
    main()
