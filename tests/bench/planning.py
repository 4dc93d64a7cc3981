"""Planning a scan of a big table: all files, one day, or 1 % by the bounds of a column.

    python -m tests.bench.big_table --files 100000 --out build/bench/big100k
    python -m tests.bench.planning --table build/bench/big100k
    python -m tests.bench.planning --table build/bench/big100k --peers icecomb,iceberg_java
    python -m tests.bench.planning --table build/bench/big100kdel --peers icecomb,iceberg_java

`cold_s` is the first plan of a process, `import_s` and `open_s` stand apart, `process_s` is all
three; `warm_s` is the last of the plans after it. The page cache is warm. Every task's file is
looked at; `lazy_s` is a warm plan whose tasks are only counted, as an engine's planner may do.
"""

from __future__ import annotations

import argparse
import gc
import json
from pathlib import Path
from typing import Any

from tests.bench.measure import (
    clocked,
    compare,
    expect,
    load_peer,
    memory_mb,
    parser,
    report,
)


def measure(arguments: argparse.Namespace, name: str, scan: str) -> None:
    """One process: import, open, plan, plan again."""
    wanted = json.loads((Path(arguments.table) / "expected.json").read_text())[scan]
    metadata = str(Path(arguments.table).resolve() / "metadata" / "v1.metadata.json")
    peer = load_peer(name)
    if name == "iceberg_java":
        found = peer.plan(metadata, wanted["predicate"], 1 + arguments.warm)
        expect(found["files"], wanted["files"], f"{name} {scan}")
        report(**found)
        return
    _, import_s, import_cpu = clocked(peer.import_planning)
    table, open_s, open_cpu = clocked(lambda: peer.open_table(metadata, {}))

    def plan() -> int:
        return sum(1 for task in peer.tasks(table, wanted["predicate"]) if task.file.file_path)

    files, cold_s, cold_cpu = clocked(plan)
    expect(files, wanted["files"], f"{name} {scan}")
    figures: dict[str, Any] = {"files": files, "peak_mb": memory_mb()}
    if arguments.warm:
        gc.collect()
        for _ in range(arguments.warm):
            _, figures["warm_s"], figures["warm_cpu_s"] = clocked(plan)
        tasks = lambda: sum(1 for _ in peer.tasks(table, wanted["predicate"]))  # noqa: E731
        figures["lazy_s"] = min(clocked(tasks)[1] for _ in range(arguments.warm))
    report(
        import_s=import_s,
        open_s=open_s,
        cold_s=cold_s,
        cold_cpu_s=cold_cpu,
        process_s=import_s + open_s + cold_s,
        process_cpu_s=import_cpu + open_cpu + cold_cpu,
        **figures,
        version=peer.version(),
    )


def main() -> None:
    """Print a line a scan."""
    arguments = parser(__doc__)
    arguments.add_argument("--table", required=True, help="what big_table has written")
    arguments.add_argument("--scans", default="full,day,bounds")
    arguments.add_argument("--warm", type=int, default=4, help="plans after the first")
    given = arguments.parse_args()
    if given.child:
        measure(given, *given.child.split(":"))
        return
    for scan in given.scans.split(","):
        compare("planning", given, scan, table=Path(given.table).name)


if __name__ == "__main__":
    main()
