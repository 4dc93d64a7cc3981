"""Hive tables made straight through the metastore's interface, with files written by pyarrow: cheap and hostile."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icecomb.catalog.hive.thrift.entity import (
    FieldSchema,
    HiveDatabase,
    HivePartition,
    HiveTable,
    StorageDescriptor,
)
from icecomb.format.errors import IcecombError
from icecomb.format.property.table_property import MIGRATION_DIGEST
from tests.peers.hive import hive_exec
from tests.peers.hive_metastore import HiveMetastore

_NUMBERS = itertools.count()
Writer = Callable[[pa.Table, Path], Any]
PARQUET = StorageDescriptor(
    input_format="org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
    output_format="org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
    serde="org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
)
ORC = StorageDescriptor(
    input_format="org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
    output_format="org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat",
    serde="org.apache.hadoop.hive.ql.io.orc.OrcSerde",
)
AVRO = StorageDescriptor(
    input_format="org.apache.hadoop.hive.ql.io.avro.AvroContainerInputFormat",
    output_format="org.apache.hadoop.hive.ql.io.avro.AvroContainerOutputFormat",
    serde="org.apache.hadoop.hive.serde2.avro.AvroSerDe",
)


@dataclass
class MadeTable:
    """A Hive table and what is needed to look at it from outside."""

    catalog: Any
    name: str
    folder: Path

    @property
    def entry(self) -> HiveTable:
        return self.catalog.client.table(*self.name.split("."))

    @property
    def partitions(self) -> list[HivePartition]:
        pages = self.catalog.client.partitions.pages(*self.name.split("."))
        return [partition for page in pages for partition in page]

    @property
    def state(self) -> tuple[HiveTable, list[HivePartition]]:
        """Everything the metastore knows, partitions only while it is a Hive table."""
        return self.entry, self.partitions

    def files(self) -> dict[str, tuple[int, int]]:
        """Every visible file with inode and size, without what icecomb keeps."""
        return {
            str(path): (path.stat().st_ino, path.stat().st_size)
            for path in self.folder.rglob("*.parquet")
            if not any(part.startswith("_icecomb") for part in path.parts)
        }

    def rows(self) -> list[dict[str, Any]]:
        """What the Iceberg table holds."""
        return self.catalog.load_table(self.name).scan().to_arrow().to_pylist()

    def forget_journal(self) -> None:
        """As older versions left it, whose entries confirm no journal."""
        entry = self.entry
        kept = {k: v for k, v in entry.parameters.items() if k != MIGRATION_DIGEST}
        assert kept != entry.parameters
        self.catalog.client.alter_table(
            *self.name.split("."), replace(entry, parameters=kept, wire=None)
        )
        for folder in (self.folder, self.folder.parent / "_icecomb_journals"):
            for file in folder.rglob("digests.json"):
                file.unlink()

    def break_locks(self) -> None:
        """What `icecomb locks break` does after a holder was killed."""
        for row in self.catalog.client.locks(*self.name.split(".")):
            self.catalog.client.unlock(row.lock_id)


@pytest.fixture
def run(icecomb: Any) -> Any:
    """Runs `icecomb migrate ...`: exit code, stdout, stderr."""
    return partial(icecomb, "migrate")


HiveTableMaker = Callable[..., MadeTable]


@pytest.fixture(scope="module")
def hive_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HiveMetastore]:
    """A metastore of Hive 3.1 for Hive itself, which finds partitions by expressions."""
    folder = tmp_path_factory.mktemp("hive-3.1")
    proxy = "org.apache.hadoop.hive.ql.optimizer.ppr.PartitionExpressionForMetastore"
    settings = {"metastore.expression.proxy": proxy}
    server = HiveMetastore("3.1.3", folder / "hms", settings=settings, jars=[hive_exec()])
    (folder / "hms").mkdir()
    server.start().wait()
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
def make_hive_table(
    catalog: Any, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[HiveTableMaker]:
    """Makes a Hive table: columns and keys as ``name type`` pairs, one Arrow table a partition.

    In the database ``made``, which is empty after each test: a plan reads all entries of a database.
    A module that makes many tables and plans none by itself keeps them in a database of its own,
    ``MADE``.
    """
    client = catalog.client
    database = getattr(request.module, "MADE", "made")
    if database not in client.databases():
        place = (tmp_path / f"{database}.db").as_uri()
        client.create_database(HiveDatabase(database, location=place))

    def make(
        columns: Mapping[str, str],
        keys: Mapping[str, str] | None = None,
        partitions: Mapping[tuple[str, ...], pa.Table | None] | None = None,
        *,
        rows: pa.Table | None = None,
        parameters: Mapping[str, str] | None = None,
        storage: StorageDescriptor = PARQUET,
        table_type: str = "MANAGED_TABLE",
        folders: Sequence[str] | None = None,
        write: Writer = pq.write_table,
        prefix: str = "t",
    ) -> MadeTable:
        name = f"{prefix}{next(_NUMBERS)}"
        folder = tmp_path / name
        folder.mkdir()
        whole = replace(
            storage,
            columns=tuple(FieldSchema(n, t) for n, t in columns.items()),
            location=f"file:{folder}",
        )
        client.create_table(
            HiveTable(
                database,
                name,
                owner="tester",
                storage=whole,
                partition_keys=tuple(FieldSchema(n, t) for n, t in (keys or {}).items()),
                parameters=dict(parameters or {"team": "x"}),
                table_type=table_type,
            )
        )
        if rows is not None:
            write(rows, folder / "part-0.parquet")
        made = []
        for at, (values, data) in enumerate((partitions or {}).items()):
            place = Path(folders[at]) if folders else folder / f"p{at}"
            if data is not None:
                place.mkdir(parents=True, exist_ok=True)
                write(data, place / "part-0.parquet")
            location = f"file:{place}"
            made.append(
                HivePartition(database, name, values, storage=replace(whole, location=location))
            )
        if made:
            client.partitions.add(made)
        for partition, data in zip(made, (partitions or {}).values(), strict=True):
            if data is None:  # the metastore made the folder
                Path((partition.storage.location or "").removeprefix("file:")).rmdir()
        return MadeTable(catalog, f"{database}.{name}", folder)

    yield make
    for name in client.table_names("made") if database == "made" else ():
        # one whose folder is on storage that is not there stays
        with suppress(IcecombError):
            client.drop_table("made", name)
