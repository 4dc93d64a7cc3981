"""The health of one big table beside planning it, and of very many tables of a metastore.

    python -m tests.bench.big_table --files 100000 --out build/bench/big100k
    python -m tests.bench.health --table build/bench/big100k --cases one
    python -m tests.bench.health --work build/bench/health --cases settled
    python -m tests.bench.health --work build/bench/health --cases many --tables 1000

one: fresh processes take turns; `health` opens the table by its metadata file and examines it,
`plan` plans a full scan and looks at every task's file. `process_s` has imports and opening, too.
settled: a hundred partitions of a thousand small files, of metadata alone, and their statistics:
health with these takes turns with health that opens every manifest.
many: a metastore 2.3.10 of its own with so many tables, each with its own metadata file; manifests
and their lists are those of one table of 20 commits of 5 files, so that making them takes minutes
and not hours; each is read and decoded again for every table. `icecomb health --output json` runs
in a process of its own; the metastore's CPU seconds stand apart. `page` is the same with `--html`.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.manifests.reader import read_manifest
from tests.bench.measure import (
    clocked,
    expect,
    in_turn,
    memory_mb,
    print_line,
    print_runs,
    report,
    run_child,
)
from tests.bench.peer_icecomb import append, catalog, create
from tests.bench.rows import arrow_rows

_COMMITS, _FILES = 20, 5
_PARTITIONS, _IN_EACH = 100, 1000


def examine(table: str) -> None:
    """One process: import, open, examine."""
    from icecomb.catalog import open_table

    metadata = str(Path(table).resolve() / "metadata" / "v1.metadata.json")
    opened, open_s, open_cpu_s = clocked(lambda: open_table(metadata))
    found, health_s, health_cpu_s = clocked(opened.maintenance.health)
    wanted = json.loads((Path(table) / "expected.json").read_text())["full"]["files"]
    expect(found.facts and found.facts.files, wanted, "files")
    report(
        process_s=open_s + health_s,
        process_cpu_s=open_cpu_s + health_cpu_s,
        work_s=health_s,
        work_cpu_s=health_cpu_s,
        peak_mb=memory_mb(),
        findings=[one.code for one in found.findings],
    )


def plan(table: str) -> None:
    """One process: import, open, plan everything, look at each file."""
    from icecomb.catalog import open_table

    metadata = str(Path(table).resolve() / "metadata" / "v1.metadata.json")
    opened, open_s, open_cpu_s = clocked(lambda: open_table(metadata))

    def tasks() -> int:
        return sum(1 for task in opened.scan().plan_files() if task.file.file_path)

    _, plan_s, plan_cpu_s = clocked(tasks)
    report(
        process_s=open_s + plan_s,
        process_cpu_s=open_cpu_s + plan_cpu_s,
        work_s=plan_s,
        work_cpu_s=plan_cpu_s,
        peak_mb=memory_mb(),
    )


def one(arguments: argparse.Namespace) -> None:
    """Print a line: both in turn."""
    runs = in_turn(["health", "plan"], lambda name, _: run_child(name), arguments.repeat)
    print_runs("health", runs, [("health", "plan")], case="one", table=Path(arguments.table).name)


def settled(arguments: argparse.Namespace) -> None:
    """Print a line: with partition statistics, and without, in turn."""
    work = Path(arguments.work).resolve()
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    rows = arrow_rows(1)
    table = create(catalog(str(work)), "settled", rows.schema, partitioned_by="i")
    append(table, rows)
    [manifest] = read_manifests(table.io, table.current_snapshot())
    [first] = [entry.data_file for entry in read_manifest(table.io, manifest)]
    for commit in range(_PARTITIONS):
        change = table.new_fast_append()
        for at in range(_IN_EACH):
            path = f"{first.file_path}/{commit}/{at}"
            size = 50_000 + at
            change.append_data_file(
                replace(first, file_path=path, partition=(commit,), file_size_in_bytes=size)
            )
        table.commit(change)
    table.maintenance.compute_partition_stats()
    names = ["statistics", "every_file"]
    runs = in_turn(names, lambda name, _: run_child(name), arguments.repeat)
    print_runs("health", runs, [("statistics", "every_file")], case="settled")
    shutil.rmtree(work)


def examine_settled(work: str, *, every_file: bool) -> None:
    """One process: examine the table of `settled`."""
    table = catalog(str(Path(work).resolve())).load_table("db.settled")
    found, health_s, health_cpu_s = clocked(lambda: table.maintenance.health(every_file=every_file))
    expect(found.facts and found.facts.files, _PARTITIONS * _IN_EACH + 1, "files")
    report(
        work_s=health_s,
        work_cpu_s=health_cpu_s,
        peak_mb=memory_mb(),
        findings=[one.code for one in found.findings],
    )


def many(arguments: argparse.Namespace) -> None:
    """Print a line a run over all tables."""
    from icecomb.catalog import load_catalog, metastore

    work = Path(arguments.work).resolve()
    shutil.rmtree(work, ignore_errors=True)
    server = metastore.start(work / "warehouse")
    try:
        place = {"uri": server.uri, "warehouse": server.warehouse.as_uri()}
        lake = load_catalog("bench", type="hive", **place)
        lake.create_namespace("many")
        _make(lake, arguments.tables)
        options = ["--uri", server.uri, "--warehouse", server.warehouse.as_uri()]
        for case, more in (("many", []), ("page", ["--html", str(work / "health.html")])):
            for turn in range(arguments.repeat):
                figures = _command(server.pid, [*options, "health", "many", *more])
                expect(figures["tables"], arguments.tables, "tables")
                print_line("health", case=case, turn=turn, **figures)
        size = (work / "health.html").stat().st_size
        print_line("health", case="page", tables=arguments.tables, bytes=size)
    finally:
        metastore.stop(server.warehouse)
        shutil.rmtree(work, ignore_errors=True)


def _make(lake: Any, count: int) -> None:
    rows = pa.table({"id": pa.array(range(_FILES), pa.int64())})
    base = lake.create_table("many.t0", rows.schema)
    with base.update_spec() as spec:
        spec.add_identity("id")
    for _ in range(_COMMITS):
        base.append(rows)
    source = Path(base.metadata_location.removeprefix("file:").replace("///", "/"))
    text = json.loads(source.read_text())
    for number in range(1, count):
        folder = source.parents[2] / f"t{number}" / "metadata"
        folder.mkdir(parents=True)
        made = folder / source.name
        made.write_text(json.dumps({**text, "location": folder.parent.as_uri()}))
        lake.register_table(f"many.t{number}", made.as_uri())


def _command(server: int, words: list[str]) -> dict[str, Any]:
    command = [str(Path(sys.executable).parent / "icecomb"), "--output", "json", *words]
    busy, before, wall = _cpu_s(server), os.times(), time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wall = time.perf_counter() - wall
    after = os.times()
    if done.returncode not in {0, 3}:
        raise SystemExit(done.stderr)
    return {
        "tables": len(json.loads(done.stdout)),
        "wall_s": round(wall, 2),
        "cpu_s": round(
            after.children_user
            + after.children_system
            - before.children_user
            - before.children_system,
            2,
        ),
        "metastore_cpu_s": round(_cpu_s(server) - busy, 2),
    }


def _cpu_s(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Print a line a figure."""
    found = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    found.add_argument("--cases", default="one,settled,many")
    found.add_argument("--table", default="build/bench/big100k", help="what big_table has written")
    found.add_argument("--work", default="build/bench/health", help="a folder for the metastore")
    found.add_argument("--tables", type=int, default=1000)
    found.add_argument("--repeat", type=int, default=3, help="fresh processes a figure")
    found.add_argument("--child", help=argparse.SUPPRESS)
    given = found.parse_args()
    children = {
        "health": partial(examine, given.table),
        "plan": partial(plan, given.table),
        "statistics": partial(examine_settled, given.work, every_file=False),
        "every_file": partial(examine_settled, given.work, every_file=True),
    }
    if given.child:
        children[given.child]()
        return
    for case in given.cases.split(","):
        {"one": one, "settled": settled, "many": many}[case](given)


if __name__ == "__main__":
    main()
