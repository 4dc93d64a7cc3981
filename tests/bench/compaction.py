"""Files put together: row groups copied, rows decoded or sorted; polars, and DuckDB, which sorts.

    python -m tests.bench.compaction --work build/bench/compaction --files 60
    python -m tests.bench.compaction --work build/bench/compaction --files 10000 --rows 1000 \\
        --peers decoded,polars
    python -m tests.bench.compaction --work build/bench/compaction --files 125 --repeat 1 \\
        --peers sorted,duckdb

The table is made once; after a rewrite it is rolled back. Row groups of 400,000 rows have some 11 MB.
"""

from __future__ import annotations

import argparse
import os
import shutil
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from icecomb.format.manifests.manifest import DataFile
from icecomb.format.operation.append import FastAppend
from icecomb.format.rows.write.data_writer import write_data
from tests.bench.measure import (
    clocked,
    expect,
    in_turn,
    memory_mb,
    parser,
    print_runs,
    report,
    run_child,
)
from tests.bench.peer_icecomb import catalog, create, version
from tests.bench.rows import arrow_rows

if TYPE_CHECKING:
    import pyarrow as pa

PEERS = "copied,decoded,polars"
_TARGET = str(128 << 20)
_DISTINCT = 30
_ORDER = "l, id DESC"
_OPTIONS = {
    "copied": {"copy": "require"},
    "decoded": {"copy": "never"},
    "sorted": {},
}


def make(folder: Path, files: int, rows: int) -> None:
    """The table, of one commit."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    table = create(catalog(str(folder)), "t", arrow_rows(1).schema)
    frames = (arrow_rows(rows, start=at * rows) for at in range(min(files, _DISTINCT)))
    add_files(table, frames, files)
    os.sync()  # what the system still has to store costs whoever writes next


def add_files(table: Any, frames: Iterable[pa.Table], count: int) -> None:
    """So many files in one commit; these rows go round, and their files are linked."""
    append, made = FastAppend(table.io), list[DataFile]()
    for frame in frames:
        made += write_data(table.io, table.metadata, frame)
    for number in range(count):
        file = made[number % len(made)]
        if number >= len(made):
            path = Path(file.file_path.removeprefix("file:"))
            linked = path.with_name(f"{number}-{path.name}")
            linked.hardlink_to(path)
            file = replace(file, file_path=str(linked))
        append.append_data_file(file)
    table.commit(append)


def measure(arguments: argparse.Namespace, peer: str) -> None:
    """One process."""
    table = catalog(arguments.work).load_table("db.t")
    tasks = list(table.scan().plan_files())
    rows = arguments.files * arguments.rows
    others = {"polars": _polars, "duckdb": _duckdb}
    if peer in others:
        paths = [task.file_path.removeprefix("file:") for task in tasks]
        out = Path(arguments.work) / f"{peer}.parquet"
        _, seconds, cpu_seconds = clocked(lambda: others[peer](paths, out))
        expect(pq.read_metadata(out).num_rows, rows, "rows")
        out.unlink()
        files = 1
    else:
        before = table.current_snapshot().snapshot_id
        options = _OPTIONS[peer] | {"rewrite-all": "true", "target-file-size-bytes": _TARGET}
        order = _ORDER if peer == "sorted" else None
        rewrite = partial(table.maintenance.rewrite_data_files, sort_order=order, options=options)
        rewrite(dry_run=True)  # imports
        result, seconds, cpu_seconds = clocked(rewrite)
        files = result.added_data_files_count
        expect(result.rewritten_data_files_count, arguments.files, "files")
        expect(table.refresh().scan().count(), rows, "rows")
        added = [task.file_path for task in table.scan().plan_files()]
        table.manage_snapshots().rollback_to_snapshot(before).commit()
        table.io.delete(added)
    report(
        files=files,
        megabytes=sum(task.file_size_in_bytes for task in tasks) / 1e6,
        rewrite_s=seconds,
        rewrite_cpu_s=cpu_seconds,
        peak_mb=memory_mb(),
        version=version(),
    )


def _polars(paths: list[str], out: Path) -> None:
    import polars as pl

    pl.scan_parquet(paths).sink_parquet(out, compression="zstd")


def _duckdb(paths: list[str], out: Path) -> None:
    import duckdb

    with duckdb.connect(config={"memory_limit": "1GB", "threads": "2"}) as connection:
        connection.execute(f"SET temp_directory = '{out}.tmp'")
        connection.execute(
            f"COPY (FROM read_parquet({paths}) ORDER BY {_ORDER}) TO '{out}' (COMPRESSION zstd)"
        )


def main() -> None:
    """Print the line."""
    arguments = parser(__doc__)
    arguments.set_defaults(peers=PEERS)
    arguments.add_argument("--work", required=True, help="a scratch folder; emptied")
    arguments.add_argument("--files", type=int, default=60)
    arguments.add_argument("--rows", type=int, default=400_000, help="of a file")
    given = arguments.parse_args()
    given.work = str(Path(given.work).resolve())
    if given.child:
        measure(given, given.child)
        return
    make(Path(given.work), given.files, given.rows)
    names = given.peers.split(",")
    runs = in_turn(names, lambda name, _: run_child(name), given.repeat)
    against = [("copied", "decoded"), ("copied", "polars"), ("decoded", "polars")]
    against += [("sorted", "duckdb")]
    print_runs("compaction", runs, against, files=given.files, rows=given.rows)
    shutil.rmtree(given.work)


if __name__ == "__main__":
    main()
