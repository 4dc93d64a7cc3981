"""What a session caches of a table is used where it is right.

Before `Table.version()` (Spark 4.1) Spark asks whether the table objects are equal: they are where their state is.
"""

from __future__ import annotations

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog


@pytest.mark.parametrize("minor", ["3.5", "4.3"])
def test_a_cached_table_is_read_from_memory_as_long_as_spark_may(sql_on, catalog, minor):
    sql = sql_on(minor)
    namespace = f"cached_{minor.replace('.', '_')}"
    name = f"lake.{namespace}.t"

    def answer():
        [[plan]] = sql(f"EXPLAIN SELECT sum(id) FROM {name}")
        return sql(
            f"SELECT sum(id) FROM {name}"
        ), "In-memory table" in plan or "InMemoryTableScan" in plan

    sql(f"CREATE NAMESPACE lake.{namespace}")
    sql(f"CREATE TABLE {name} (id BIGINT) USING iceberg")
    sql(f"INSERT INTO {name} VALUES (1)")
    sql(f"CACHE TABLE {name}")
    assert answer() == ([[1]], True)
    catalog.load_table((namespace, "t")).append(pa.table({"id": [10]}))
    # since SPARK-54022 a cached table stays what it was until the session refreshes it
    assert answer()[0] == ([[11]] if minor == "3.5" else [[1]])
    sql(f"REFRESH TABLE {name}")
    assert answer()[0] == [[11]]
    sql(f"INSERT INTO {name} VALUES (100)")
    assert answer()[0] == [[111]]
    sql(f"UNCACHE TABLE {name}")
    sql(f"DROP TABLE {name}")
    sql(f"DROP NAMESPACE lake.{namespace}")


def test_the_past_of_a_cached_table_is_not_what_is_cached(other_spark, catalog):
    sql = other_spark("3.5").sql
    sql("CREATE NAMESPACE lake.cached_past")
    sql("CREATE TABLE lake.cached_past.t (id BIGINT) USING iceberg")
    sql("INSERT INTO lake.cached_past.t VALUES (1)")
    first = catalog.load_table(("cached_past", "t")).current_snapshot().snapshot_id
    sql("INSERT INTO lake.cached_past.t VALUES (2)")
    sql("CACHE TABLE lake.cached_past.t")
    assert sql("SELECT sum(id) FROM lake.cached_past.t") == [[3]]
    assert sql(f"SELECT sum(id) FROM lake.cached_past.t VERSION AS OF {first}") == [[1]]
    sql("UNCACHE TABLE lake.cached_past.t")
    sql("DROP TABLE lake.cached_past.t")


def test_a_table_that_was_dropped_and_made_anew_is_not_the_one_that_is_cached(
    other_spark, tmp_path
):
    """In a folder, its metadata file has the same name as before."""
    sql = other_spark("3.5").sql
    folders = load_catalog("folders", type="hadoop", warehouse=f"file:{tmp_path}")
    folders.create_namespace("db")
    name = f"lake.`file:{tmp_path}/db/t`"
    schema = pa.schema([("id", pa.int64())])
    places = set()
    for number in (1, 10):
        table = folders.create_table("db.t", schema)
        table.append(pa.table({"id": [number]}, schema))
        places.add(table.metadata_location)
        assert sql(f"SELECT sum(id) FROM {name}") == [[number]]
        if number == 1:
            sql(f"CACHE TABLE {name}")
        folders.drop_table("db.t", purge_requested=True)
    assert len(places) == 1
