"""Writers on one table of a Hive metastore: how many appends succeed, and how many a second.

    python -m tests.bench.contention --work build/bench/contention
    python -m tests.bench.contention --work build/bench/contention --cases 4x10,8x20 --modes locks

Starts a metastore 2.3.10 of its own. `4x10` is four processes that append ten times one row each,
`1x40` is one, `threads4x10` are four threads on one catalog object. They are started, connected and
warm (each has appended to a table of its own) before the clock runs. Modes: `locks` and `lockfree`
are icecomb's, `pyiceberg` is PyIceberg; `iceberg_java` and `iceberg_java_lockfree` are Iceberg Java,
a JVM a process. An append that raises is not repeated; afterwards exactly
the rows of those that did not must be in the table.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.bench.measure import ROOT, expect, print_line

_PATIENCE_S = 120.0


def main() -> None:
    """Runs every case in every mode, or one writer."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=Path, required=True, help="a folder for tables")
    parser.add_argument("--cases", default="1x40,4x10,threads4x10,16x10,8x20")
    parser.add_argument("--modes", default="locks,lockfree,pyiceberg,iceberg_java")
    parser.add_argument("--writer", nargs=7, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.writer:
        _writer(*arguments.writer)
        return
    from icecomb.catalog import load_catalog, metastore

    shutil.rmtree(arguments.work, ignore_errors=True)
    server = metastore.start(arguments.work.absolute())
    try:
        catalog = load_catalog("bench", uri=server.uri, warehouse=str(server.warehouse))
        catalog.create_namespace("db")
        for case in arguments.cases.split(","):
            for mode in arguments.modes.split(","):
                if case in {"16x10", "8x20"} and mode == "pyiceberg":
                    continue  # it would take a quarter of an hour
                _run(catalog, server.uri, str(server.warehouse), case, mode)
    finally:
        metastore.stop(arguments.work.absolute())


def _run(catalog: Any, uri: str, warehouse: str, case: str, mode: str) -> None:
    parsed = re.fullmatch(r"(threads)?(\d+)x(\d+)", case)
    assert parsed is not None, case
    writers, times = int(parsed[2]), int(parsed[3])
    processes, threads = (1, writers) if parsed[1] else (writers, 1)
    properties = {"engine.hive.lock-enabled": str("lockfree" not in mode).lower()}
    name = f"db.t{mode}_{case}"
    table = catalog.create_table(name, _rows(0).schema, properties=properties)
    started = [
        subprocess.Popen(
            _command(mode, uri, warehouse, name, number * threads, threads, times),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        for number in range(processes)
    ]
    for each in started:
        expect(_line(each), "ready", "a writer")
    since = time.time()
    for each in started:
        assert each.stdin is not None
        each.stdin.write("go\n")
        each.stdin.flush()
    told = [json.loads(_line(each)) for each in started]
    for each in started:
        each.communicate()
    wall = max(one["ended"] for one in told) - since
    found = table.refresh().scan().to_arrow()["id"].to_pylist()
    expect(sorted(found), sorted(i for one in told for i in one["done"]), f"rows of {name}")
    failures = Counter(error for one in told for error in one["errors"])
    print_line(
        "contention",
        case=case,
        mode=mode,
        succeeded=len(found),
        of=writers * times,
        seconds=round(wall, 2),
        commits_per_s=round(len(found) / wall, 2),
        cpu_ms=round(sum(one["cpu_s"] for one in told) / max(1, len(found)) * 1000, 1),
        slowest_s=round(max(one["slowest"] for one in told), 2),
        **({"failures": dict(failures)} if failures else {}),
    )


def _command(mode: str, *arguments: object) -> list[str]:
    """What starts a writer."""
    if mode.startswith("iceberg_java"):
        from tests.bench.peer_iceberg_java import hive_writer

        return hive_writer(*arguments)
    own = [sys.executable, "-m", "tests.bench.contention", "--work", "."]
    return [*own, "--writer", mode, *map(str, arguments)]


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def _writer(
    mode: str, uri: str, warehouse: str, name: str, first: str, threads: str, times: str
) -> None:
    """One process: says that it is ready, waits, appends, and says what became of it."""
    catalog = _catalog(mode, uri, warehouse)
    own = f"db.own_{first}_{name.partition('.')[2]}"
    catalog.create_table(own, _rows(0).schema).append(_rows(0))
    tables = [catalog.load_table(name) for _ in range(int(threads))]
    print("ready", flush=True)
    sys.stdin.readline()
    cpu = time.process_time()
    done: list[int] = []
    errors: list[str] = []
    taken = [0.0]
    deadline = time.monotonic() + _PATIENCE_S

    def write(number: int) -> None:
        for turn in range(int(times)):
            if time.monotonic() > deadline:
                errors.append("out of time")
                continue
            row = (int(first) + number) * 1000 + turn
            since = time.monotonic()
            try:
                tables[number].append(_rows(row))
                done.append(row)
            except Exception as error:  # noqa: BLE001 - counted by its name
                errors.append(type(error).__name__)
                with suppress(Exception):
                    tables[number].refresh()
            taken.append(time.monotonic() - since)

    if len(tables) == 1:
        write(0)
    else:
        running = [threading.Thread(target=write, args=(n,)) for n in range(len(tables))]
        for each in running:
            each.start()
        for each in running:
            each.join()
    figures = {"done": done, "errors": errors, "ended": time.time(), "slowest": max(taken)}
    print(json.dumps({**figures, "cpu_s": time.process_time() - cpu}), flush=True)


def _catalog(mode: str, uri: str, warehouse: str) -> Any:
    load: Callable[..., Any]
    if mode == "pyiceberg":
        from pyiceberg.catalog import load_catalog as load

        from icecomb.catalog import metastore

        server = metastore.status(warehouse)
        assert server is not None
        return load("bench", type="hive", uri=uri, warehouse=warehouse, ugi=f"me:{server.secret}")
    from icecomb.catalog import load_catalog as load

    return load("bench", type="hive", uri=uri, warehouse=warehouse)


def _rows(number: int) -> Any:
    import pyarrow as pa

    return pa.table({"id": pa.array([number], pa.int64()), "s": ["x"]})


if __name__ == "__main__":
    main()
