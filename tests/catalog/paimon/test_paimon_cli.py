"""`icecomb paimon` on tables of the metastore, which Paimon's Hive catalog describes by parameters, and on folders."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import pyarrow as pa
import pytest

from icecomb.catalog.cli import main
from icecomb.catalog.hive.thrift.entity import (
    FieldSchema,
    HiveDatabase,
    HiveTable,
    StorageDescriptor,
)

HANDLER = "org.apache.paimon.hive.PaimonStorageHandler"
CHANGES = ("--rename", "note", "remark", "--add", "spot.y", "INT", "--move", "remark", "first")
INPUT_FORMAT = "org.apache.paimon.hive.mapred.PaimonInputFormat"


@pytest.fixture
def run(metastore, capsys):
    def run(*arguments, code=0):
        got = main(
            [
                "--uri",
                metastore.uri,
                "--warehouse",
                str(metastore.warehouse),
                "--output",
                "json",
                *arguments,
            ]
        )
        said = capsys.readouterr()
        assert got == code, said.err
        return json.loads(said.out) if said.out else said.err

    return run


def register(catalog, name, location, columns, keys=(), parameters=None):
    storage = StorageDescriptor(
        tuple(FieldSchema(*column) for column in columns), location, INPUT_FORMAT, "o", "s"
    )
    given = (
        {"EXTERNAL": "TRUE", "table_type": "PAIMON", "storage_handler": HANDLER}
        if parameters is None
        else parameters
    )
    catalog.client.create_table(
        HiveTable(
            "paimons",
            name,
            storage=storage,
            partition_keys=tuple(FieldSchema(*key) for key in keys),
            parameters=given,
            table_type="EXTERNAL_TABLE",
        )
    )


@pytest.fixture(scope="module")
def orders(pypaimon, metastore):
    from icecomb.catalog.hive.catalog import HiveCatalog

    fields = [
        ("id", pa.int64()),
        ("day", pa.date32()),
        ("note", pa.string()),
        ("spot", pa.struct([("x", pa.int32())])),
    ]
    first = pa.table(
        {"id": [1, 2], "day": [0, 1], "note": ["a", None], "spot": [{"x": 1}, None]},
        schema=pa.schema(fields),
    )
    source = pypaimon.make("orders", first, partition=["day"])
    with_types = [("id", "bigint", None), ("note", "string", None), ("spot", "struct<x:int>", None)]
    catalog = HiveCatalog("lake", {"uri": metastore.uri, "warehouse": str(metastore.warehouse)})
    catalog.client.create_database(
        HiveDatabase("paimons", location=str(Path(metastore.warehouse) / "paimons.db"))
    )
    register(catalog, "orders", source.location, with_types, [("day", "date", None)])
    catalog.close()
    return source


def test_the_life_of_a_paimon_table(orders, run, pyiceberg):
    assert run("paimon", "drift", "paimons.orders") == []
    dry = run("paimon", "evolve", "paimons.orders", *CHANGES)
    assert orders.schemas.ids() == [0]
    done = run("paimon", "evolve", "paimons.orders", *CHANGES, "--yes")
    assert [(row["change"], row["path"], row["before"], row["after"]) for row in done] == [
        ("renamed", "remark", "note", "remark"),
        ("moved", "remark", "after day", "first"),
        ("added", "spot.y", None, "INT"),
    ]
    assert dry == done == run("paimon", "diff", "paimons.orders", "0", "1", code=3)
    history = run("paimon", "history", orders.location)
    assert [row["changes"] for row in history] == [
        "created",
        "renamed remark; moved remark; added spot.y",
    ]
    drift = run("paimon", "drift", "paimons.orders", code=3)
    assert [
        (row["column"], row["drift"], row["schema file"], row["metastore"]) for row in drift
    ] == [
        ("remark", "missing", "string", None),
        ("spot", "type", "struct<x:int,y:int>", "struct<x:int>"),
        ("note", "extra", None, "string"),
    ]
    assert [row["unused"] for row in run("paimon", "prune", "paimons.orders")] == [False, False]

    plan = run("paimon", "import", "paimons.orders", "--to", "paimons.iced")
    assert (plan["imported"], plan["files"], plan["rows"], plan["blockers"]) == (False, 2, 2, [])
    run("describe", "paimons.iced", code=1)
    for wrong, message in (("paimons.orders", "exists already"), ("nope.iced", "namespace nope")):
        assert message in run("paimon", "import", "paimons.orders", "--to", wrong, code=1)
    assert run("paimon", "import", "paimons.orders", "--to", "paimons.iced", "--yes")["imported"]
    for taken in ("paimons.iced", "paimons.orders"):
        again = ["paimon", "import", "paimons.orders", "--to", taken, "--yes"]
        assert f"{taken} exists already" in run(*again, code=1)
    theirs = pyiceberg.load_table("paimons.iced").scan().to_arrow().sort_by("id")
    assert theirs.column_names == ["remark", "id", "day", "spot"]
    first, second = dt.date(1970, 1, 1), dt.date(1970, 1, 2)
    assert [list(row.values()) for row in theirs.to_pylist()] == [
        ["a", 1, first, {"x": 1, "y": None}],
        [None, 2, second, None],
    ]
    chosen = pyiceberg.load_table("paimons.iced").scan(row_filter="day = '1970-01-02'")
    assert chosen.to_arrow()["id"].to_pylist() == [2]


@pytest.mark.full("needs Iceberg Java in Spark")
def test_iceberg_java_reads_what_the_command_brought_over(orders, run, iceberg_java):
    if orders.schemas.ids() == [0]:
        run("paimon", "evolve", orders.location, *CHANGES, "--yes")
    run("paimon", "import", orders.location, "--to", "paimons.twice", "--yes")
    sql = "SELECT remark, id, day, spot.x, spot.y FROM ice.paimons.twice ORDER BY id"
    expected = [["a", 1, "1970-01-01", 1, None], [None, 2, "1970-01-02", None, None]]
    assert iceberg_java.sql(sql) == expected
    sql = "SELECT id FROM ice.paimons.twice WHERE day = DATE '1970-01-02'"
    assert iceberg_java.sql(sql) == [[2]]


def test_paimon_tables_are_found_by_what_the_metastore_says_of_them(orders, run, catalog):
    register(
        catalog,
        "by_handler",
        "/nowhere",
        [("id", "int", None)],
        parameters={"EXTERNAL": "TRUE", "storage_handler": HANDLER},
    )
    listed = [row["table"] for row in run("paimon", "tables", "paimons")]
    assert "paimons.orders" in listed
    assert "paimons.by_handler" in listed
    assert "no schema file" in run("paimon", "history", "paimons.by_handler", code=1)


def test_a_namespace_that_is_not_there_has_no_tables_to_list(orders, run):
    for wrong in ("nope", "paimons.*"):
        assert "There is no namespace" in run("paimon", "tables", wrong, code=1)


def test_wrong_commands_change_nothing(orders, run):
    before = list(orders.schemas.ids())
    assert "it is a partition key" in run(
        "paimon", "evolve", orders.location, "--drop", "day", "--yes", code=1
    )
    assert "is not a position" in run(
        "paimon", "evolve", orders.location, "--move", "id", "up", "--yes", code=1
    )
    assert "unknown type 'INTT'" in run(
        "paimon", "evolve", orders.location, "--add", "n", "INTT", "--yes", code=1
    )
    assert "no change is given" in run("paimon", "evolve", orders.location, "--yes", code=2)
    assert "drift compares a table of the metastore" in run(
        "paimon", "drift", orders.location, code=1
    )
    assert list(orders.schemas.ids()) == before


def test_a_hive_table_is_no_paimon_table(run, catalog, metastore):
    if not any(name == ("hives",) for name in catalog.list_namespaces()):
        catalog.client.create_database(
            HiveDatabase("hives", location=str(Path(metastore.warehouse) / "hives.db"))
        )
    storage = StorageDescriptor(
        (FieldSchema("id", "int"),),
        str(Path(metastore.warehouse) / "hives.db" / "t"),
        "i",
        "o",
        "s",
    )
    catalog.client.create_table(
        HiveTable(
            "hives",
            "t",
            storage=storage,
            parameters={"EXTERNAL": "TRUE"},
            table_type="EXTERNAL_TABLE",
        )
    )
    assert "hives.t is a Hive table, not a Paimon table" in run(
        "paimon", "history", "hives.t", code=1
    )
