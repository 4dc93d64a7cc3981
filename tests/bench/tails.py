"""Taking files over where they are: `add_files` and migration of 2,000 files, in ORC and Parquet.

    python -m tests.bench.tails --work build/bench/tails

Starts a metastore 2.3.10 and Iceberg Java in a Spark of its own (`--java 0` leaves it out). Files
have ten columns and a hundred rows, in twenty folders, which are the partitions of the Hive tables.
Each turn has fresh tables over the same files; peers take turns, and medians are printed.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc

from icecomb.catalog import load_catalog, metastore, migrate
from icecomb.catalog.hive.thrift.entity import (
    FieldSchema,
    HiveDatabase,
    HivePartition,
    HiveTable,
    StorageDescriptor,
)
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.transform import IdentityTransform
from tests.bench.measure import clocked, expect, print_line

FOLDERS, ROWS, COLUMNS = 20, 100, 10
_HIVE = "org.apache.hadoop.hive.ql.io."
STORAGE = {
    "parquet": StorageDescriptor(
        input_format=f"{_HIVE}parquet.MapredParquetInputFormat",
        output_format=f"{_HIVE}parquet.MapredParquetOutputFormat",
        serde=f"{_HIVE}parquet.serde.ParquetHiveSerDe",
    ),
    "orc": StorageDescriptor(
        input_format=f"{_HIVE}orc.OrcInputFormat",
        output_format=f"{_HIVE}orc.OrcOutputFormat",
        serde=f"{_HIVE}orc.OrcSerde",
    ),
}


def main() -> None:
    """Print a line a format and way."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=Path, required=True, help="a folder for tables")
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--java", type=int, default=1)
    arguments = parser.parse_args()
    work = arguments.work.absolute()
    shutil.rmtree(work, ignore_errors=True)
    server = metastore.start(work)
    try:
        with _java(server, work) if arguments.java else nullcontext() as java:
            for kind in STORAGE:
                _Bench(server, java, work, kind, arguments.files).run(arguments.repeat)
    finally:
        metastore.stop(work)


@contextmanager
def _java(server: Any, work: Path) -> Iterator[Any]:
    from tests.peers.iceberg_java import IcebergJava

    with closing(IcebergJava(server, work / "java.log")) as java:
        yield java


class _Bench:
    def __init__(self, server: Any, java: Any, work: Path, kind: str, files: int) -> None:
        from pyiceberg.catalog import load_catalog as load_peer

        self.java, self.work, self.kind, self.files = java, work, kind, files
        place = {"uri": server.uri, "warehouse": str(server.warehouse)}
        self.catalog = load_catalog("bench", **place)
        self.peer = load_peer("peer", type="hive", **place, ugi=f"bench:{server.secret}")
        self.folder = work / kind
        self.seconds: dict[str, list[float]] = defaultdict(list)
        if "bench" not in self.catalog.client.databases():
            database = HiveDatabase("bench", location=(work / "bench.db").as_uri())
            self.catalog.client.create_database(database)

    def run(self, repeat: int) -> None:
        paths = self._write()
        for turn in range(repeat + 1):  # the first turn warms up
            for name, (prepare, work) in self._ways(paths).items():
                table = f"{self.kind}_{name}_{turn}"
                prepare(table)
                _, wall, _ = clocked(lambda work=work, table=table: work(table))
                count = self.catalog.load_table(f"bench.{table}").inspect.files().num_rows
                expect(count, self.files, f"files of {table}")
                if turn:
                    self.seconds[name].append(wall)
        medians = {name: round(statistics.median(s), 2) for name, s in self.seconds.items()}
        print_line("tails", format=self.kind, files=self.files, seconds=medians)

    def _ways(
        self, paths: list[str]
    ) -> dict[str, tuple[Callable[[str], Any], Callable[[str], Any]]]:
        load = self.catalog.load_table
        ways: dict[str, tuple[Callable[[str], Any], Callable[[str], Any]]] = {
            "add": (self._iceberg, lambda t: load(f"bench.{t}").add_files(paths)),
            "apply": (self._hive, lambda t: migrate.apply(self.catalog, f"bench.{t}")),
        }
        if self.kind == "parquet":
            ways["add_pyiceberg"] = (
                lambda t: self._iceberg(t, parted=False),
                lambda t: self.peer.load_table(f"bench.{t}").add_files(paths),
            )
            ways["add_unparted"] = (
                lambda t: self._iceberg(t, parted=False),
                lambda t: load(f"bench.{t}").add_files(paths),
            )
        if self.java is not None:
            ways["add_java"] = (
                self._iceberg,
                lambda t: self.java.sql(
                    f"CALL ice.system.add_files(table => 'bench.{t}', "
                    f"source_table => '`{self.kind}`.`file:{self.folder}`')"
                ),
            )
            ways["apply_java"] = (
                self._hive,
                lambda t: self.java.sql(f"CALL spark_catalog.system.migrate('bench.{t}')"),
            )
        return ways

    def _write(self) -> list[str]:
        """Files in folders `k=<n>`."""
        paths = []
        for number in range(self.files):
            folder = self.folder / f"k={number % FOLDERS}"
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / f"part-{number}.{self.kind}"
            numbers = list(range(number * ROWS, (number + 1) * ROWS))
            data = {f"c{at}": numbers for at in range(COLUMNS // 2)}
            texts = {f"s{at}": [f"text {n}" for n in numbers] for at in range(COLUMNS // 2)}
            (orc if self.kind == "orc" else pq).write_table(pa.table({**data, **texts}), path)
            paths.append(str(path))
        return paths

    def _iceberg(self, table: str, *, parted: bool = True) -> None:
        fields = [*(f"c{at}" for at in range(COLUMNS // 2))]
        schema = pa.schema(
            [
                *((name, pa.int64()) for name in fields),
                *((f"s{at}", pa.string()) for at in range(COLUMNS // 2)),
                *([("k", pa.int32())] if parted else []),
            ]
        )
        spec = PartitionSpec(
            0, (PartitionField(COLUMNS + 1, 1000, IdentityTransform(), "k"),) if parted else ()
        )
        self.catalog.create_table(f"bench.{table}", schema, partition_spec=spec)

    def _hive(self, table: str) -> None:
        columns = (
            *(FieldSchema(f"c{at}", "bigint") for at in range(COLUMNS // 2)),
            *(FieldSchema(f"s{at}", "string") for at in range(COLUMNS // 2)),
        )
        # Hive's own copy of the files' names: a migration leaves its journal and metadata there
        folder = self.work / f"{table}_files"
        shutil.copytree(self.folder, folder, copy_function=_link)
        storage = STORAGE[self.kind]
        place: dict[str, Any] = {
            "columns": columns,
            "input_format": storage.input_format,
            "output_format": storage.output_format,
            "serde": storage.serde,
        }
        client = self.catalog.client
        client.create_table(
            HiveTable(
                "bench",
                table,
                owner="bench",
                storage=StorageDescriptor(location=f"file:{folder}", **place),
                partition_keys=(FieldSchema("k", "int"),),
            )
        )
        client.partitions.add(
            [
                HivePartition(
                    "bench",
                    table,
                    (str(n),),
                    storage=StorageDescriptor(location=f"file:{folder}/k={n}", **place),
                )
                for n in range(FOLDERS)
            ]
        )


def _link(source: str, target: str) -> None:
    Path(target).hardlink_to(source)


if __name__ == "__main__":
    main()
