"""A Paimon table on S3 is looked at, evolved and brought over, files where they are."""

from __future__ import annotations

import csv
import uuid
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from icecomb.catalog.hive.catalog import HiveCatalog
from icecomb.catalog.paimon.data_type import DataField
from icecomb.catalog.paimon.schema_change import AddColumn
from icecomb.catalog.paimon.snapshot import Snapshots
from icecomb.catalog.paimon.source import PaimonSource, SchemaFiles
from icecomb.catalog.paimon.table_import import plan_import, run_import
from icecomb.catalog.paimon.table_schema import TableSchema
from icecomb.catalog.paimon.type_parser import parse_type
from icecomb.format.errors import FileAlreadyExistsError, UnsupportedError, ValidationError
from icecomb.format.storage.file_io import FileIO
from tests.peers.s3_proxy import S3Proxy

ROWS = [{"id": 1, "k": "a/b c"}, {"id": 2, "k": "ü"}, {"id": 3, "k": None}]


@pytest.fixture(scope="module")
def lake(metastore, s3):
    place = {"uri": metastore.uri, "warehouse": f"s3://{s3.bucket()}/wh"}
    with HiveCatalog("lake", {**place, **s3.settings}) as catalog:
        yield catalog


@pytest.fixture(scope="module")
def made(pypaimon):
    """A table of PyPaimon, partitioned by names that need escapes."""
    schema = pa.schema([("id", pa.int64()), ("k", pa.string())])
    rows = pa.Table.from_pylist(ROWS, schema=schema)
    return pypaimon.make("clicks_on_s3", rows, partition=["k"])


@pytest.fixture
def clicks(lake, made):
    """The table on S3 as Hadoop names it."""
    name = f"t{uuid.uuid4().hex}"
    location = f"{lake.properties['warehouse'].replace('s3://', 's3a://')}/paimon/{name}"
    for path in Path(made.location).rglob("*"):
        if path.is_file():
            lake.io.create(f"{location}/{path.relative_to(made.location)}", path.read_bytes())
    return PaimonSource(name, lake.io, location)


def test_a_file_of_this_machine_that_a_table_on_s3_names_is_not_looked_at(
    clicks, tmp_path, monkeypatch
):
    files = Snapshots.files
    elsewhere = f"file:{tmp_path}/private.parquet"
    monkeypatch.setattr(
        Snapshots,
        "files",
        lambda self, at: [replace(one, external_path=elsewhere) for one in files(self, at)],
    )
    with pytest.raises(ValidationError, match=f"names a file of this machine: {elsewhere}"):
        plan_import(clicks)


def test_a_table_on_s3_is_brought_over(lake, clicks):
    database = f"p{uuid.uuid4().hex[:10]}"
    lake.create_namespace(database)
    clicks.schemas.evolve([AddColumn(("more",), parse_type("INT"))])
    before = {status.location for status in clicks.io.list(clicks.location)}
    table = run_import(plan_import(clicks), lake, f"{database}.iced")
    assert {status.location for status in clicks.io.list(clicks.location)} == before
    assert {task.file.file_path for task in table.scan().plan_files()} <= before
    found = sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"])
    assert found == [{**row, "more": None} for row in ROWS]


def test_a_schema_on_s3_is_written_over_no_other(clicks):
    clicks.schemas.evolve([AddColumn(("more",), parse_type("INT"))])
    second = f"{clicks.location}/schema/schema-1"
    before = clicks.io.read(second)
    with pytest.raises(FileAlreadyExistsError):
        clicks.io.create(second, b"{}")
    assert clicks.io.read(second) == before


def test_a_store_that_replaces_objects_gets_no_new_schema(s3):
    proxy = S3Proxy(s3.endpoint)
    with closing(FileIO(proxy.settings(s3.settings))) as io:
        folder = f"s3://{s3.bucket()}/clicks"
        first = TableSchema(0, (DataField(0, "id", parse_type("INT")),), 0)
        io.create(f"{folder}/schema/schema-0", first.to_text().encode())
        proxy.choose = lambda asked: "replace" if asked.conditional else ""
        with pytest.raises(UnsupportedError, match="replaces objects"):
            SchemaFiles(io, folder).evolve([AddColumn(("more",), parse_type("INT"))])
        assert [s.location for s in io.list(folder)] == [f"{folder}/schema/schema-0"]
    proxy.close()


def test_the_command_shows_a_table_on_s3(clicks, icecomb, s3, monkeypatch):
    for key, value in s3.settings.items():
        variable = key.upper().replace(".", "__").replace("-", "_")
        monkeypatch.setenv(f"ICECOMB_CATALOG__PATH__{variable}", value)
    code, out, err = icecomb("paimon", "history", clicks.location, form="csv")
    assert code == 0, err
    (row,) = csv.DictReader(out.splitlines())
    assert (row["schema"], row["columns"], row["changes"]) == ("0", "2", "created")
