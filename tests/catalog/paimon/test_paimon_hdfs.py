"""Paimon tables on a real HDFS, by their folder and by the name that the metastore has for them."""

from __future__ import annotations

import getpass
import uuid
from pathlib import Path

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog
from icecomb.catalog.cli import main
from icecomb.catalog.hive.catalog import HiveCatalog
from icecomb.catalog.hive.thrift.entity import (
    FieldSchema,
    HiveDatabase,
    HiveTable,
    StorageDescriptor,
)
from icecomb.catalog.paimon.schema_change import AddColumn, RenameColumn
from icecomb.catalog.paimon.source import PaimonSource, find_table
from icecomb.catalog.paimon.table_import import plan_import, run_import
from icecomb.catalog.paimon.type_parser import parse_type
from icecomb.format.errors import FileAlreadyExistsError
from icecomb.format.storage.file_io import FileIO

pytestmark = pytest.mark.full("needs PyPaimon, and Iceberg Java in Spark")
ROWS = [{"id": 1, "k": "a/b c"}, {"id": 2, "k": "ü"}, {"id": 3, "k": None}]


@pytest.fixture
def uploaded(hdfs, pypaimon):
    """A table of PyPaimon, partitioned by names that need escapes, on HDFS."""
    name = f"t{uuid.uuid4().hex}"
    schema = pa.schema([("id", pa.int64()), ("k", pa.string())])
    made = pypaimon.make(name, pa.Table.from_pylist(ROWS, schema=schema), partition=["k"])
    # The metastore's clients, Spark too, come as who they are.
    io = FileIO({**hdfs.client_settings, "hdfs.user": getpass.getuser()})
    location = f"{hdfs.uri}/warehouse/paimon/{name}"
    for path in Path(made.location).rglob("*"):
        if path.is_file():
            io.create(f"{location}/{path.relative_to(made.location)}", path.read_bytes())
    return PaimonSource(name, io, location)


def rows_of(table, **scan):
    return sorted(table.scan(**scan).to_arrow().to_pylist(), key=lambda row: row["id"])


def test_a_table_of_the_metastore_with_its_data_on_hdfs_is_brought_over(
    uploaded, hdfs, metastore, iceberg_java
):
    settings = {**hdfs.client_settings, "hdfs.user": getpass.getuser()}
    warehouse = f"{hdfs.uri}/warehouse/{uuid.uuid4().hex}"
    catalog = HiveCatalog("lake", {"uri": metastore.uri, "warehouse": warehouse, **settings})
    database = f"hdfs{uuid.uuid4().hex[:8]}"
    catalog.client.create_database(HiveDatabase(database, location=f"{warehouse}/{database}.db"))
    columns = (FieldSchema("id", "bigint"),)
    catalog.client.create_table(
        HiveTable(
            database,
            "clicks",
            storage=StorageDescriptor(columns, uploaded.location, "i", "o", "s"),
            partition_keys=(FieldSchema("k", "string"),),
            parameters={"EXTERNAL": "TRUE", "table_type": "PAIMON"},
            table_type="EXTERNAL_TABLE",
        )
    )
    source = find_table(catalog, f"{database}.clicks")
    source.schemas.evolve([AddColumn(("more",), parse_type("INT"))])
    before = {status.location for status in source.io.list(uploaded.location)}
    table = run_import(plan_import(source), catalog, f"{database}.iced")
    assert {status.location for status in source.io.list(uploaded.location)} == before
    assert table.metadata_location.startswith(warehouse)
    assert {task.file.file_path for task in table.scan().plan_files()} <= before
    expected = [{**row, "more": None} for row in ROWS]
    assert rows_of(table) == expected
    assert rows_of(table, row_filter="k = 'a/b c'") == expected[:1]
    theirs = iceberg_java.sql(f"SELECT id, k, more FROM ice.{database}.iced ORDER BY id")
    assert theirs == [list(row.values()) for row in expected]
    table.append(pa.table({"id": [4], "k": ["a/b c"], "more": pa.array([5], pa.int32())}))
    assert [row["id"] for row in rows_of(table.refresh())] == [1, 2, 3, 4]
    assert plan_import(source).rows == 3
    catalog.close()


def test_a_table_on_hdfs_is_evolved_and_comes_into_a_catalog_of_folders(uploaded, hdfs):
    new = uploaded.schemas.evolve([RenameColumn(("id",), "number")])
    assert uploaded.schemas.read(1).to_json() == new.to_json()
    with pytest.raises(FileAlreadyExistsError):
        uploaded.io.create(uploaded.schemas.path(1), b"other")
    warehouse = f"{hdfs.uri}/warehouse/{uuid.uuid4().hex}"
    settings = {**hdfs.client_settings, "hdfs.user": getpass.getuser()}
    lake = load_catalog("lake", type="hadoop", warehouse=warehouse, **settings)
    lake.create_namespace("db")
    table = run_import(plan_import(uploaded), lake, "db.t")
    rows = sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["number"])
    assert rows == [{"number": row["id"], "k": row["k"]} for row in ROWS]
    lake.close()


def test_who_may_not_write_is_told_so_and_nothing_changes(uploaded, hdfs, monkeypatch, capsys):
    schemas = f"{uploaded.location.removeprefix(hdfs.uri)}/schema"
    hdfs.request("PUT", f"{schemas}?op=SETPERMISSION&permission=755")
    monkeypatch.setenv("HADOOP_CONF_DIR", str(hdfs.conf))
    monkeypatch.setenv("HADOOP_USER_NAME", "stranger")
    evolve = ["paimon", "evolve", uploaded.location, "--add", "n", "INT"]
    assert main(evolve) == 0
    capsys.readouterr()
    assert main([*evolve, "--yes"]) == 1
    said = capsys.readouterr().err.splitlines()
    assert "schema-1" in said[0]
    assert "ermission denied" in said[0]
    assert all(line.startswith("  hint: ") for line in said[1:])
    assert uploaded.schemas.ids() == [0]
