"""DuckDB's iceberg extension reads what we write."""

from __future__ import annotations

from importlib.resources import files

import duckdb
import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.transform import parse_transform
from icecomb.format.spec.types import DoubleType, LongType, StringType

SCHEMA = pa.schema(
    [
        ("id", pa.int32()),
        ("s", pa.string()),
        ("d", pa.date32()),
        ("t", pa.timestamp("us", "UTC")),
        ("p", pa.struct([("x", pa.int32()), ("y", pa.list_(pa.string()))])),
    ]
)
BY_S = PartitionSpec(0, (PartitionField(2, 1000, parse_transform("identity"), "s"),))


@pytest.fixture(scope="module")
def connection():
    """DuckDB with its extensions for Avro and Iceberg, which come as wheels of its version."""
    made = duckdb.connect(
        config={"autoinstall_known_extensions": False, "autoload_known_extensions": False}
    )
    [(version,)] = made.sql("select version()").fetchall()
    for name in ("avro", "iceberg"):
        folder = files(f"duckdb_extension_{name}") / "extensions" / version
        made.load_extension(str(folder / f"{name}.duckdb_extension"))
    yield made
    made.close()


@pytest.fixture(scope="module", params=["1", "2", "3"])
def table(request, tmp_path_factory):
    """Partitions, types that changed, a column renamed, added and dropped; rows deleted."""
    lake = load_catalog("lake", type="hadoop", warehouse=str(tmp_path_factory.mktemp("lake")))
    lake.create_namespace("db")
    properties = {
        "format-version": request.param,
        "write.delete.mode": "copy-on-write" if request.param == "1" else "merge-on-read",
    }
    table = lake.create_table("db.t", SCHEMA, partition_spec=BY_S, properties=properties)
    table.append(rows(0, 50))
    table.delete("id >= 10 and id < 20 and s = 'a'")
    with table.update_schema() as update:
        update.update_column("id", LongType())
        update.rename_column("s", "name")
        update.delete_column("d")
        update.add_column("x", DoubleType())
        update.add_column(("p", "z"), StringType())
    table.append(pa.table({"id": pa.array([1 << 40]), "name": ["new"], "x": [float("nan")]}))
    table.delete("id in (3, 33)")
    yield table
    lake.close()


def rows(first, last):
    numbers = range(first, last)
    return pa.table(
        [
            pa.array(numbers, pa.int32()),
            ["a" if i % 3 else None for i in numbers],
            pa.array([i - 5 for i in numbers], pa.int32()).cast(pa.date32()),
            pa.array([i * 1_000_001 for i in numbers], pa.timestamp("us", "UTC")),
            [{"x": i, "y": ["é", None]} if i % 4 else None for i in numbers],
        ],
        schema=SCHEMA,
    )


def ask(connection, table, what, more=""):
    text = f"select {what} from iceberg_scan('{table.metadata_location}'{more}) order by id"
    return connection.sql(text).to_arrow_table().to_pylist()


def test_duckdb_reads_the_rows_that_we_read(connection, table):
    found = ask(connection, table, "id, name, epoch_us(t) as t, p, x::varchar as x")
    ours = table.scan().to_arrow().sort_by("id")
    assert len(found) == 50 - 7 - 2 + 1
    for name in ("id", "name", "p"):
        assert [row[name] for row in found] == ours[name].to_pylist()
    assert [row["t"] for row in found] == ours["t"].cast(pa.int64()).to_pylist()
    assert [row["x"] for row in found] == [None] * 41 + ["nan"]


def test_duckdb_filters_and_goes_back_in_time(connection, table):
    assert ask(connection, table, "id") != ask(connection, table, "p.x as id")
    first = table.snapshots()[0].snapshot_id
    found = ask(connection, table, "id, s", f", snapshot_from_id={first}")
    then = table.scan(snapshot_id=first).to_arrow().sort_by("id")
    assert [row["id"] for row in found] == then["id"].to_pylist() == list(range(50))
    text = f"select id from iceberg_scan('{table.metadata_location}') where name is null and id < 9"
    assert sorted(connection.sql(text).fetchall()) == [(0,), (6,)]


@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_duckdb_reads_a_table_that_was_replaced_by_columns_of_other_types(
    connection, tmp_path, version
):
    lake = load_catalog("lake", type="hadoop", warehouse=str(tmp_path))
    lake.create_namespace("db")
    old = pa.table({"id": [1, 2], "x": [10, 20], "s": [{"y": 1}, None]})
    by_x = PartitionSpec(PartitionField(2, 1000, parse_transform("identity"), "x"))
    properties = {"format-version": version}
    table = lake.create_table("db.t", old.schema, partition_spec=by_x, properties=properties)
    table.append(old)
    # a table that stays of version 1 keeps a void field of the old column, by which DuckDB reads nothing
    properties = {"format-version": max(version, "2")}
    first = table.current_snapshot().snapshot_id
    new = pa.table({"id": [3, 4], "x": ["a", "b"], "s": [{"y": "c"}, {"y": None}]})
    with lake.replace_table_transaction(
        "db.t", new.schema, partition_spec=by_x, properties=properties
    ) as replaced:
        replaced.append(new)
    table.refresh()
    assert ask(connection, table, "*") == new.to_pylist()
    if version != "1":
        # of version 1 in a table of version 2 it reads no lists of manifests, which have no numbers
        assert ask(connection, table, "*", f", snapshot_from_id={first}") == old.to_pylist()
    text = f"select id from iceberg_scan('{table.metadata_location}') where x = 'b'"
    assert connection.sql(text).fetchall() == [(4,)]
    lake.close()


ODD = ["größe", "größe-1", "名前", "m²", "1st", "a b"]


@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_duckdb_reads_manifests_whose_partitions_have_names_that_avro_does_not_allow(
    connection, tmp_path, version
):
    lake = load_catalog("lake", type="hadoop", warehouse=str(tmp_path))
    lake.create_namespace("db")
    rows = pa.table(
        {"id": range(4), **{name: [f"{name}{i % 2}" for i in range(4)] for name in ODD}}
    )
    table = lake.create_table("db.t", rows.schema, properties={"format-version": version})
    with table.update_spec() as update:
        for name in ODD:
            update.add_identity(name)
    table.append(rows)
    table.delete("id = 3")
    assert ask(connection, table, "*") == rows.slice(0, 3).to_pylist()
    text = f"select id from iceberg_scan('{table.metadata_location}') where \"m²\" = 'm²1'"
    assert connection.sql(text).fetchall() == [(1,)]
    lake.close()
