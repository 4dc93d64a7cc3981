"""Files put together: row groups copied, rows decoded, and polars, which scans and writes them.

    python -m tests.bench.compaction --work build/bench/compaction --files 60

The table is made once; after a rewrite it is rolled back. Row groups have some 11 MB.
"""

from __future__ import annotations

import argparse
import os
import shutil
from pathlib import Path

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
from tests.bench.peer_icecomb import append, catalog, create, version
from tests.bench.rows import arrow_rows

FILE_ROWS = 400_000
PEERS = "copied,decoded,polars"
_MODES = {"copied": "require", "decoded": "never"}


def make(folder: Path, files: int) -> None:
    """The table."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    table = create(catalog(str(folder)), "t", arrow_rows(1).schema)
    for number in range(files):
        append(table, arrow_rows(FILE_ROWS, start=number * FILE_ROWS))
    os.sync()  # what the system still has to store costs whoever writes next


def measure(arguments: argparse.Namespace, peer: str) -> None:
    """One process."""
    table = catalog(arguments.work).load_table("db.t")
    tasks = list(table.scan().plan_files())
    rows = arguments.files * FILE_ROWS
    if peer == "polars":
        seconds, cpu_seconds, files = _polars(arguments, [t.file_path for t in tasks], rows)
    else:
        before = table.current_snapshot().snapshot_id
        options = {"copy": _MODES[peer], "rewrite-all": "true"}
        table.maintenance.rewrite_data_files(options=options, dry_run=True)  # imports
        result, seconds, cpu_seconds = clocked(
            lambda: table.maintenance.rewrite_data_files(options=options)
        )
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


def _polars(arguments: argparse.Namespace, paths: list[str], rows: int) -> tuple[float, float, int]:
    import polars as pl

    out = Path(arguments.work) / "polars.parquet"
    frame = pl.scan_parquet([path.removeprefix("file:") for path in paths])
    _, seconds, cpu_seconds = clocked(lambda: frame.sink_parquet(out, compression="zstd"))
    expect(pl.scan_parquet(out).select(pl.len()).collect().item(), rows, "rows")
    out.unlink()
    return seconds, cpu_seconds, 1


def main() -> None:
    """Print the line."""
    arguments = parser(__doc__)
    arguments.set_defaults(peers=PEERS)
    arguments.add_argument("--work", required=True, help="a scratch folder; emptied")
    arguments.add_argument("--files", type=int, default=60)
    given = arguments.parse_args()
    given.work = str(Path(given.work).resolve())
    if given.child:
        measure(given, given.child)
        return
    make(Path(given.work), given.files)
    names = given.peers.split(",")
    runs = in_turn(names, lambda name, _: run_child(name), given.repeat)
    against = [("copied", "decoded"), ("copied", "polars"), ("decoded", "polars")]
    print_runs("compaction", runs, against, files=given.files)
    shutil.rmtree(given.work)


if __name__ == "__main__":
    main()
