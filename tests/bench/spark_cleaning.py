"""Expiry and orphans by CALL in Spark 4.1: icecomb beside Iceberg's runtime.

    python -m tests.bench.spark_cleaning --work build/bench/spark_cleaning
    python -m tests.bench.spark_cleaning --work build/bench/spark_cleaning --files 1000000 --cases orphans

orphans: a dry run over a folder of so many empty files, of which a hundredth are orphans; the peers take turns
on one table. expire: all snapshots but the last of tables of the same story, one table a turn and
peer; half of the files go. appends: the same after so many appends of one file each.
`peak_mb` of icecomb is that of the same action in a Python process of its own.
"""

from __future__ import annotations

import argparse
import itertools
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from icecomb.catalog import load_catalog
from icecomb.format.manifests.manifest import DataFile
from icecomb.format.operation.append import FastAppend
from icecomb.format.operation.overwrite import DeleteFiles
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import LongType, NestedField
from tests.bench.measure import (
    Figures,
    clocked,
    expect,
    in_turn,
    memory_mb,
    parser,
    print_runs,
    report,
    run_child,
)
from tests.bench.spark_read import Contestant, Sparks

_PEERS: Final = ("icecomb", "iceberg")
_AGAINST: Final = (("icecomb", "iceberg"),)
_LATER: Final = "TIMESTAMP '2999-01-01 00:00:00'"
_SCHEMA: Final = Schema((NestedField(1, "id", LongType()),))
_CASES: Final = ("orphans", "expire", "appends")


def make(work: Path, name: str, files: int, commits: int) -> Any:
    """A table of empty files; nothing reads them."""
    lake = load_catalog("lake", type="hadoop", warehouse=str(work / "warehouse"))
    if ("db",) not in lake.list_namespaces():
        lake.create_namespace("db")
    if lake.table_exists(f"db.{name}"):
        lake.drop_table(f"db.{name}", purge_requested=True)
    table = lake.create_table(f"db.{name}", _SCHEMA)
    folder = Path(table.location()) / "data"
    numbers = iter(range(files))
    while batch := list(itertools.islice(numbers, max(1, files // commits))):
        append = FastAppend(table.io)
        for place in _touched(folder, batch):
            append.append_data_file(
                DataFile(file_path=place, partition=(), record_count=1, file_size_in_bytes=1)
            )
        table.commit(append)
    return table


def _touched(folder: Path, numbers: list[int]) -> Iterator[str]:
    for number in numbers:
        path = folder / f"{number % 1000:03d}" / f"{number:08d}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        yield str(path)


def _age(folder: str) -> None:
    then = time.time() - 7 * 86_400
    for path in Path(folder).rglob("*"):
        if path.is_file():
            os.utime(path, (then, then))


def measure_orphans(sparks: Sparks, given: argparse.Namespace) -> None:
    """One table; dry runs."""
    table = make(given.work, "orphans", given.files, 100)
    left = range(given.files, given.files + given.files // 100)
    count = len(list(_touched(Path(table.location()) / "data", list(left))))
    _age(table.location())
    call = "CALL lake.system.remove_orphan_files(table => 'db.orphans', dry_run => true)"

    def run(peer: str, _: int) -> Figures:
        rows, figures = sparks.timed(Contestant(peer, call))
        expect(len(rows), count, f"orphans, {peer}")
        return figures

    _print("orphans", in_turn(_PEERS, run, given.repeat, warm=1), given)


def measure_expire(sparks: Sparks, given: argparse.Namespace, case: str) -> None:
    """A table a turn."""
    commits = given.snapshots if case == "expire" else given.appends
    files = given.files if case == "expire" else given.appends

    def run(peer: str, turn: int) -> Figures:
        table = make(given.work, f"{case}_{peer}", files, commits)
        gone = [task.file.file_path for task in table.scan().plan_files()][: files // 2]
        delete = DeleteFiles(table.io)
        for path in gone:
            delete.delete_data_file(path)
        table.commit(delete)
        call = f"CALL lake.system.expire_snapshots('db.{case}_{peer}', {_LATER}, 1)"
        rows, figures = sparks.timed(Contestant(peer, call))
        expect(rows[0][0], len(gone), f"{case}, {peer}, {turn}")
        return figures

    _print(case, in_turn(_PEERS, run, given.repeat), given, commits=commits)


def measure_memory(given: argparse.Namespace) -> None:
    """The orphans by Python alone, in a process of its own."""
    lake = load_catalog("lake", type="hadoop", warehouse=str(given.work / "warehouse"))
    table = lake.load_table("db.orphans")
    _, wall, cpu = clocked(table.maintenance.remove_orphan_files)
    report(wall_s=wall, cpu_s=cpu, peak_mb=memory_mb())


def _print(case: str, runs: Any, given: argparse.Namespace, **labels: Any) -> None:
    if case == "orphans":
        runs["python"] = [run_child("memory")]
    print_runs("spark_cleaning", runs, _AGAINST, case=case, files=given.files, **labels)


def main() -> None:
    """Print a line a case."""
    arguments = parser(__doc__)
    arguments.add_argument("--work", type=Path, required=True, help="for the tables; emptied")
    arguments.add_argument("--files", type=int, default=100_000)
    arguments.add_argument("--snapshots", type=int, default=1000, help="of the case `expire`")
    arguments.add_argument("--appends", type=int, default=10_000, help="of the case `appends`")
    arguments.add_argument("--cases", default=",".join(_CASES))
    given = arguments.parse_args()
    given.work = given.work.resolve()
    if given.child:
        measure_memory(given)
        return
    shutil.rmtree(given.work, ignore_errors=True)
    given.work.mkdir(parents=True)
    with ExitStack() as stack:
        sparks = Sparks(given.work, _PEERS, stack)
        for case in given.cases.split(","):
            if case == "orphans":
                measure_orphans(sparks, given)
            else:
                measure_expire(sparks, given, case)


if __name__ == "__main__":
    main()
