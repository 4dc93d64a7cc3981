"""Appending one Arrow table, plain or to 16 identity partitions.

    python -m tests.bench.append --work build/bench/append

The floor is `pyarrow.parquet.write_table` of the same rows (zstd), without partitions and metadata:
`--peers icecomb,pyarrow` compares with that.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tests.bench.measure import clocked, compare, expect, load_peer, memory_mb, parser, report
from tests.bench.rows import arrow_rows


def measure(arguments: argparse.Namespace, name: str, case: str) -> None:
    """One process."""
    folder = Path(arguments.work).resolve() / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    rows = arrow_rows(arguments.rows)
    column = None
    if case == "partitioned":
        column = "p"
        rows = rows.append_column("p", pc.cast(pc.bit_wise_and(rows["i"], 15), pa.int32()))
    if name == "pyarrow":
        target = folder / "rows.parquet"
        _, append_s, append_cpu_s = clocked(
            lambda: pq.write_table(rows, target, compression="zstd", row_group_size=1 << 20)
        )
        version, written = pa.__version__, pq.read_metadata(target).num_rows
    else:
        peer = load_peer(name)
        catalog = peer.catalog(str(folder))
        peer.append(peer.create(catalog, "first", rows.schema, column), rows.slice(0, 10))
        table = peer.create(catalog, "t", rows.schema, column)
        _, append_s, append_cpu_s = clocked(lambda: peer.append(table, rows))
        version = peer.version()
        written = int(table.metadata.current_snapshot().summary["total-records"])
    expect(written, arguments.rows, name)
    shutil.rmtree(folder)
    report(
        rows=arguments.rows,
        append_s=append_s,
        append_cpu_s=append_cpu_s,
        peak_mb=memory_mb(),
        version=version,
    )


def main() -> None:
    """Print a line a case."""
    arguments = parser(__doc__)
    arguments.add_argument("--work", required=True, help="a scratch folder; emptied")
    arguments.add_argument("--rows", type=int, default=10_000_000)
    arguments.add_argument("--cases", default="plain,partitioned")
    given = arguments.parse_args()
    if given.child:
        measure(given, *given.child.split(":"))
        return
    for case in given.cases.split(","):
        compare("append", given, case)


if __name__ == "__main__":
    main()
