"""Tables of version 3 that DuckDB itself changes, by vectors, in turns with icecomb; PyIceberg reads them, too."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable

from icecomb.catalog import load_catalog
from tests.peers.rest_catalog import RestCatalog

pytestmark = pytest.mark.full("needs DuckDB's extension for HTTP")


@pytest.fixture
def table(tmp_path):
    lake = load_catalog("lake", type="hadoop", warehouse=str(tmp_path))
    lake.create_namespace("db")
    modes = {f"write.{what}.mode": "merge-on-read" for what in ("delete", "update", "merge")}
    schema = pa.schema([("id", pa.int64()), ("s", pa.string())])
    table = lake.create_table("db.t", schema, properties={"format-version": "3", **modes})
    table.append(pa.table({"id": range(100), "s": [f"s{n}" for n in range(100)]}, schema))
    yield table
    lake.close()


@pytest.fixture
def sql(table):
    """DuckDB with the table as `lake.db.t`."""
    catalog = RestCatalog(Path(table.location().removeprefix("file:")))
    made = duckdb.connect(
        config={"autoinstall_known_extensions": False, "autoload_known_extensions": False}
    )
    [(version,)] = made.sql("select version()").fetchall()
    for name in ("httpfs", "avro", "iceberg"):
        folder = files(f"duckdb_extension_{name}") / "extensions" / version
        made.load_extension(str(folder / f"{name}.duckdb_extension"))
    made.execute(
        f"ATTACH 'x' AS lake (TYPE iceberg, ENDPOINT '{catalog.uri}', AUTHORIZATION_TYPE 'none')"
    )
    yield made.execute
    made.close()
    catalog.close()


def rows_of(table):
    found = table.refresh().scan(selected_fields=("*", "_row_id")).to_arrow().to_pylist()
    return {row["id"]: (row["s"], row["_row_id"]) for row in found}


def vectors(table):
    return {file.referenced_data_file: file for task in table.refresh().scan().plan_files()
            for file in task.delete_files}  # fmt: skip


def assert_alike(table, sql):
    mine = sorted((key, text) for key, (text, _) in rows_of(table).items())
    assert sorted(sql("SELECT id, s FROM lake.db.t").fetchall()) == mine
    peer = StaticTable.from_metadata(table.metadata_location).scan().to_arrow()
    assert sorted(zip(*(peer[name].to_pylist() for name in ("id", "s")), strict=True)) == mine


def test_duckdb_and_icecomb_change_a_table_by_turns(table, sql):
    expected = {n: (f"s{n}", n) for n in range(100)}
    assert rows_of(table) == expected
    sql("INSERT INTO lake.db.t SELECT i, 'd' || i FROM range(100, 110) r(i)")
    expected |= {n: (f"d{n}", n) for n in range(100, 110)}
    assert rows_of(table) == expected
    sql("DELETE FROM lake.db.t WHERE id IN (3, 4, 105)")
    for gone in (3, 4, 105):
        del expected[gone]
    assert rows_of(table) == expected
    assert sorted(file.record_count for file in vectors(table).values()) == [1, 2]
    assert_alike(table, sql)

    for gone in (5, 106):
        # when DuckDB replaces a vector, it drops all others of the same Puffin file (1.5.5)
        table.delete(f"id = {gone}")
        del expected[gone]
        assert rows_of(table) == expected
        assert_alike(table, sql)
    assert sorted(file.record_count for file in vectors(table).values()) == [2, 3]

    sql("UPDATE lake.db.t SET s = 'new' WHERE id = 7")
    expected[7] = ("new", rows_of(table)[7][1])
    assert rows_of(table) == expected
    sql("DELETE FROM lake.db.t WHERE id = 8")
    del expected[8]
    assert rows_of(table) == expected
    table.upsert(pa.table({"id": [9, 200], "s": ["up", "more"]}), join_cols=["id"])
    expected[9] = ("up", 9)
    expected[200] = ("more", rows_of(table)[200][1])
    assert rows_of(table) == expected
    assert len({row_id for _, row_id in expected.values()}) == len(expected)
    assert_alike(table, sql)

    table.maintenance.rewrite_data_files(options={"rewrite-all": "true"})
    assert rows_of(table) == expected
    assert vectors(table) == {}
    sql("DELETE FROM lake.db.t WHERE id = 10")
    del expected[10]
    assert rows_of(table) == expected
    assert_alike(table, sql)
