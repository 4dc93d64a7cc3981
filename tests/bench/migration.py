"""Migrating Hive tables of many partitions: how long it takes, and how long others wait for it.

    python -m tests.bench.migration --work build/bench/migration

Starts a metastore 2.3.10 of its own. Each partition has one file of one row. `--tables 1000` makes
that many tables of ten partitions and plans all of them, without footers and with all. `longest_lock_s` is
how long the table's lock is held at a stretch, `locked_s` all of these together.
"""

from __future__ import annotations

import argparse
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from icecomb.catalog import load_catalog, metastore, migrate
from icecomb.catalog.hive.lock import TableLock
from icecomb.catalog.hive.thrift.entity import (
    FieldSchema,
    HiveDatabase,
    HivePartition,
    HiveTable,
    StorageDescriptor,
)
from tests.bench.measure import Figures, clocked, expect, print_line

_PAGE = 500


def main() -> None:
    """Print a line a size."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=Path, required=True, help="a folder for tables")
    parser.add_argument("--partitions", default="1000", help="sizes of tables, with commas")
    parser.add_argument("--tables", type=int, default=0, help="plan so many tables as well")
    arguments = parser.parse_args()
    work = arguments.work.absolute()
    shutil.rmtree(work, ignore_errors=True)
    server = metastore.start(work)
    try:
        catalog = load_catalog("bench", uri=server.uri, warehouse=str(server.warehouse))
        for partitions in map(int, filter(None, arguments.partitions.split(","))):
            name = f"t{partitions}"
            _make(catalog.client, work, name, partitions)
            table = f"bench.{name}"
            applied = _figures(lambda table=table: migrate.apply(catalog, table))
            rows = len(catalog.load_table(table).scan().to_arrow())
            expect(rows, partitions, "rows")
            reverted = _figures(lambda table=table: migrate.revert(catalog, table, dry_run=False))
            expect(len(catalog.client.partitions.names("bench", name)), partitions, "partitions")
            print_line("migration", partitions=partitions, apply=applied, revert=reverted)
        if arguments.tables:
            for number in range(arguments.tables):
                _make(catalog.client, work, f"many{number}", 10)
            quick, whole = (_planned(catalog, arguments.tables, footers=f) for f in (False, True))
            print_line("plan --all", tables=arguments.tables, quick=quick, footers=whole)
    finally:
        metastore.stop(work)


def _figures(work: Callable[[], Any]) -> Figures:
    with _watched_locks() as held:
        _, wall, cpu = clocked(work)
    figures = {
        "wall_s": wall,
        "cpu_s": cpu,
        "locks": len(held),
        "locked_s": sum(held),
        "longest_lock_s": max(held),
    }
    return {name: round(value, 2) for name, value in figures.items()}


def _planned(catalog: Any, tables: int, *, footers: bool) -> Figures:
    def plan() -> tuple[int, int]:
        plans = migrate.plan_many(catalog, ["bench.many*"], footers=footers)
        found = [(one.verdict, len(one.files)) for one in plans]
        return found.count(("ready", 10)), len(found)

    ready, wall, cpu = clocked(plan)
    expect(ready, (tables, tables), "tables that are ready")
    return {"wall_s": round(wall, 2), "cpu_s": round(cpu, 2)}


@contextmanager
def _watched_locks() -> Iterator[list[float]]:
    """How long each lock was held that was acquired meanwhile."""
    acquire, release = TableLock.acquire, TableLock.release
    since: dict[int, float] = {}
    held: list[float] = []

    def watched_acquire(lock: TableLock) -> None:
        acquire(lock)
        since[id(lock)] = time.monotonic()

    def watched_release(lock: TableLock) -> None:
        release(lock)
        if (started := since.pop(id(lock), None)) is not None:
            held.append(time.monotonic() - started)

    TableLock.acquire, TableLock.release = watched_acquire, watched_release  # type: ignore[method-assign]
    try:
        yield held
    finally:
        TableLock.acquire, TableLock.release = acquire, release  # type: ignore[method-assign]


def _make(client: Any, work: Path, name: str, partitions: int) -> None:
    if "bench" not in client.databases():
        client.create_database(HiveDatabase("bench", location=(work / "bench.db").as_uri()))
    folder = work / name
    storage = StorageDescriptor(
        columns=(FieldSchema("id", "bigint"), FieldSchema("text", "string")),
        location=f"file:{folder}",
        input_format="org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
        output_format="org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
        serde="org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
    )
    keys = (FieldSchema("k", "int"),)
    client.create_table(
        HiveTable("bench", name, owner="bench", storage=storage, partition_keys=keys)
    )
    made: list[HivePartition] = []
    for number in range(partitions):
        place = folder / f"k={number}"
        place.mkdir(parents=True)
        rows = pa.table({"id": pa.array([number], pa.int64()), "text": ["x"]})
        pq.write_table(rows, place / "part-0.parquet")
        here = StorageDescriptor(
            columns=storage.columns,
            location=f"file:{place}",
            input_format=storage.input_format,
            output_format=storage.output_format,
            serde=storage.serde,
        )
        made.append(HivePartition("bench", name, (str(number),), storage=here))
        if len(made) == _PAGE or number == partitions - 1:
            client.partitions.add(made)
            made = []


if __name__ == "__main__":
    main()
