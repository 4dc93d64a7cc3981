"""Upserting rows on one key: nine of ten replace rows all over the table, one of ten is new.

python -m tests.bench.upsert --work build/bench/upsert
python -m tests.bench.upsert --work build/bench/upsert --peers icecomb --rows 5000000 --new 100000
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from tests.bench.measure import clocked, compare, expect, load_peer, memory_mb, parser, report
from tests.bench.rows import arrow_rows

FILES = 5


def changed_rows(table_rows: int, count: int) -> pa.Table:
    """Rows of which nine of ten have the id of a row of the table, evenly spread, and new values."""
    old = count * 9 // 10
    rows = arrow_rows(count, start=table_rows + count)
    step = table_rows // old
    known = pc.multiply(pa.array(range(old), pa.int64()), step)
    fresh = pa.array(range(table_rows, table_rows + count - old), pa.int64())
    return rows.set_column(0, "id", pa.concat_arrays([known, fresh]))


def measure(arguments: argparse.Namespace, name: str, case: str) -> None:
    """One process."""
    folder = Path(arguments.work).resolve() / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    peer = load_peer(name)
    each = arguments.rows // FILES
    first = arrow_rows(each)
    table = peer.create(peer.catalog(str(folder)), "t", first.schema)
    for number in range(FILES):
        peer.append(table, arrow_rows(each, start=number * each))
    new = changed_rows(arguments.rows, arguments.new)
    if case == "merge-on-read":
        table.transaction().set_properties({"write.merge.mode": case}).commit_transaction()
    result, upsert_s, upsert_cpu_s = clocked(lambda: table.upsert(new, ["id"]))
    expect(result.rows_updated, arguments.new * 9 // 10, name)
    expect(result.rows_inserted, arguments.new - arguments.new * 9 // 10, name)
    shutil.rmtree(folder)
    report(
        rows=arguments.rows,
        new=arguments.new,
        upsert_s=upsert_s,
        upsert_cpu_s=upsert_cpu_s,
        peak_mb=memory_mb(),
        version=peer.version(),
    )


def main() -> None:
    """Print a line a case."""
    arguments = parser(__doc__)
    arguments.add_argument("--work", required=True, help="a scratch folder; emptied")
    arguments.add_argument("--rows", type=int, default=1_000_000)
    arguments.add_argument("--new", type=int, default=20_000)
    arguments.add_argument("--cases", default="copy-on-write", help="also merge-on-read: icecomb")
    given = arguments.parse_args()
    if given.child:
        measure(given, *given.child.split(":"))
        return
    for case in given.cases.split(","):
        compare("upsert", given, case)


if __name__ == "__main__":
    main()
