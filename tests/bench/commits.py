"""Commits: many small appends, one append to an old table, one commit of many files.

    python -m tests.bench.commits --work build/bench/commits

growth: appends of one row each; `growth` is the time of the last 50 over that of the first 50,
`growth_cpu` the same of CPU time, which does not depend on what else the machine does; `slowest_cpu_ms` is the
append that merges manifests, `first_merge_cpu_ms` the one that does it first in its process.
old: the median of three appends of one row to a table of 10,000 snapshots.
files: one commit of 10,000 data files with the metrics of 20 columns, which are written already.

Catalogs need no server: icecomb's file-system catalog, PyIceberg's SQLite catalog (install
`pyiceberg[sql-sqlite]`). Files are not synced to disk by either.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
from functools import partial
from pathlib import Path
from typing import Any

from tests.bench.measure import clocked, compare, expect, load_peer, memory_mb, parser, report
from tests.bench.table_metadata import COLUMNS, long_history, to_bytes, write_manifest_list

_HALF = 50


def growth(arguments: argparse.Namespace, peer: Any, folder: Path) -> None:
    """Append row by row."""
    table = peer.create(peer.catalog(str(folder)), "t", _rows(0).schema)
    peer.append(table, _rows(0))
    seconds, cpu_seconds = [], []
    for number in range(arguments.appends):
        _, wall, used = clocked(partial(peer.append, table, _rows(number)))
        seconds.append(wall)
        cpu_seconds.append(used)
    (first, last), (first_cpu, last_cpu) = (
        (sum(times[:_HALF]), sum(times[-_HALF:])) for times in (seconds, cpu_seconds)
    )
    expect(len(table.metadata.snapshots), arguments.appends + 1, "snapshots")
    report(
        appends=arguments.appends,
        total_s=sum(seconds),
        total_cpu_s=sum(cpu_seconds),
        first_ms=first / _HALF * 1000,
        last_ms=last / _HALF * 1000,
        growth=last / first,
        first_cpu_ms=first_cpu / _HALF * 1000,
        last_cpu_ms=last_cpu / _HALF * 1000,
        growth_cpu=last_cpu / first_cpu,
        first_merge_cpu_ms=max(cpu_seconds[:150]) * 1000,
        slowest_cpu_ms=max(cpu_seconds[150:], default=0.0) * 1000,
        version=peer.version(),
    )


def old(arguments: argparse.Namespace, peer: Any, folder: Path) -> None:
    """Append to a table with a long history; its last snapshot lists no manifest."""
    import pyarrow as pa

    location = folder / "t"
    metadata = location / "metadata"
    metadata.mkdir(parents=True)
    made = long_history(f"file://{location}", arguments.snapshots, 100)
    last = made["snapshots"][-1]
    listed = last["manifest-list"].removeprefix("file://")
    write_manifest_list(listed, [], last["sequence-number"], last["snapshot-id"])
    path = metadata / f"{arguments.snapshots:05d}-a.metadata.json"
    path.write_text(json.dumps(made))
    table = peer.adopt(str(folder), "t", str(path))
    rows = pa.table({"id": pa.array([1], pa.int64())})
    runs = [clocked(lambda: peer.append(table, rows)) for _ in range(3)]
    expect(len(table.metadata.snapshots), arguments.snapshots + 3, "snapshots")
    report(
        snapshots=arguments.snapshots,
        append_s=statistics.median(run[1] for run in runs),
        append_cpu_s=statistics.median(run[2] for run in runs),
        first_s=runs[0][1],
        peak_mb=memory_mb(),
        version=peer.version(),
    )


def files(arguments: argparse.Namespace, peer: Any, folder: Path) -> None:
    """Commit files that are written already."""
    if peer.__name__.endswith("iceberg_java"):
        found = peer.commit_files(folder / "t", arguments.files, len(COLUMNS))
        expect(found["files"], arguments.files, "data files")
        report(**found)
        return
    import pyarrow as pa

    names = [f"c{column}" for column, _, _ in COLUMNS]
    schema = pa.schema([(name, pa.int64()) for name in names])
    table = peer.create(peer.catalog(str(folder)), "t", schema)
    peer.append_files(table, [_file(arguments.files)])
    many = [_file(number) for number in range(arguments.files)]
    _, commit_s, commit_cpu_s = clocked(lambda: peer.append_files(table, many))
    summary = table.metadata.current_snapshot().summary
    expect(int(summary["total-data-files"]), arguments.files + 1, "data files")
    report(
        files=arguments.files,
        commit_s=commit_s,
        commit_cpu_s=commit_cpu_s,
        peak_mb=memory_mb(),
        version=peer.version(),
    )


def _file(number: int) -> dict[str, Any]:
    ids = [column for column, _, _ in COLUMNS]
    return {
        "file_path": f"file:///nowhere/{number:08d}.parquet",
        "partition": (),
        "record_count": 100_000,
        "file_size_in_bytes": 8_000_000 + number,
        "column_sizes": dict.fromkeys(ids, 300000 + number),
        "value_counts": dict.fromkeys(ids, 100_000),
        "null_value_counts": dict.fromkeys(ids, number % 100),
        "nan_value_counts": {},
        "lower_bounds": {i: to_bytes("long", number) for i in ids},
        "upper_bounds": {i: to_bytes("long", number + 1000) for i in ids},
    }


def _rows(number: int) -> Any:
    import pyarrow as pa

    return pa.table({"id": pa.array([number], pa.int64()), "name": [f"row {number}"]})


def main() -> None:
    """Print a line a case."""
    cases = {"growth": growth, "old": old, "files": files}
    arguments = parser(__doc__)
    arguments.add_argument("--work", required=True, help="a scratch folder; emptied")
    arguments.add_argument("--cases", default=",".join(cases))
    arguments.add_argument("--appends", type=int, default=300)
    arguments.add_argument("--snapshots", type=int, default=10_000)
    arguments.add_argument("--files", type=int, default=10_000)
    given = arguments.parse_args()
    if given.child:
        name, case = given.child.split(":")
        folder = Path(given.work).resolve() / case / name
        shutil.rmtree(folder, ignore_errors=True)
        cases[case](given, load_peer(name), folder)
        return
    for case in given.cases.split(","):
        compare("commits", given, case)


if __name__ == "__main__":
    main()
