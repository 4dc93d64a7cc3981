"""Deleting 1 % of the rows, spread over all files: merge-on-read against copy-on-write.

    python -m tests.bench.row_delete --work build/bench/row_delete

The table is made once; after a delete it is rolled back.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from tests.bench.measure import clocked, compare, expect, memory_mb, parser, report
from tests.bench.peer_icecomb import append, catalog, create, version
from tests.bench.rows import arrow_rows

FILE_ROWS = 2_000_000
MODES = "merge-on-read,copy-on-write"


def make(folder: Path, rows: int) -> None:
    """The table, in files of two million rows."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    each = min(FILE_ROWS, rows)
    table = create(catalog(str(folder)), "t", arrow_rows(1).schema)
    for start in range(0, rows, each):
        append(table, arrow_rows(each, start=start))


def measure(arguments: argparse.Namespace, mode: str) -> None:
    """One process."""
    table = catalog(arguments.work).load_table("db.t")
    before = table.current_snapshot().snapshot_id
    table.transaction().set_properties({"write.delete.mode": mode}).commit_transaction()
    expect(table.scan().count(), arguments.rows, mode)
    # column i is random below a million
    _, delete_s, delete_cpu_s = clocked(lambda: table.delete("i < 10000"))
    expect(table.scan("i < 10000").count(), 0, mode)
    left = table.scan().count()
    expect(round(1 - left / arguments.rows, 3), 0.01, mode)
    added = {t.file.file_path for t in table.scan().plan_files()} | {
        d.file_path for t in table.scan().plan_files() for d in t.delete_files
    }
    table.manage_snapshots().rollback_to_snapshot(before).commit()
    table.io.delete(added - {t.file.file_path for t in table.scan().plan_files()})
    report(
        rows=arguments.rows,
        deleted=arguments.rows - left,
        delete_s=delete_s,
        delete_cpu_s=delete_cpu_s,
        peak_mb=memory_mb(),
        version=version(),
    )


def main() -> None:
    """Print the line."""
    arguments = parser(__doc__)
    arguments.set_defaults(peers=MODES)
    arguments.add_argument("--work", required=True, help="a scratch folder; emptied")
    arguments.add_argument("--rows", type=int, default=20_000_000)
    given = arguments.parse_args()
    given.work = str(Path(given.work).resolve())
    if given.child:
        measure(given, given.child.split(":")[0])
        return
    make(Path(given.work), given.rows)
    compare("row_delete", given, "one of a hundred rows")
    shutil.rmtree(given.work)


if __name__ == "__main__":
    main()
