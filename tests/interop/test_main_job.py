"""The main job with three implementations on one metastore: what one writes, the others read.

A Hive table made by Spark's own Hive support is taken over in place; icecomb (Python and Spark), Iceberg Java and
PyIceberg then read and write it in turn.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from icecomb.catalog import migrate
from icecomb.spark.demo.demonstration import flights

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from icecomb.catalog.catalog import Catalog

TABLE = "flightdb.flights"
WHOLE = ("flight", "dep_time", "dep_delay", "distance")
PER_MONTH = (
    "SELECT month, count(*), count(tailnum), count(dep_delay), sum(distance), sum(dep_delay), sum(flight * day), "
    "max(time_hour), min(tailnum) FROM {table} GROUP BY month ORDER BY month"
)


@pytest.fixture(scope="module")
def hive_flights(spark: SparkSession) -> list[list[Any]]:
    """The flights as a Hive table partitioned by month, and what Hive's own reader says of each month."""
    data = flights()
    columns = {
        name: data[name].cast(pa.int64()) if pa.types.is_integer(data[name].type) else data[name]
        for name in data.column_names
    }
    hours = columns["time_hour"].cast(pa.timestamp("s", "UTC"))
    columns["time_hour"] = pc.strftime(hours, "%Y-%m-%dT%H:%M:%SZ")
    spark.createDataFrame(pa.table(columns)).createOrReplaceTempView("flights_source")
    names = [name for name in columns if name != "month"]
    spark.sql("CREATE DATABASE IF NOT EXISTS spark_catalog.flightdb")
    spark.sql("SET hive.exec.dynamic.partition.mode=nonstrict")
    spark.sql(
        f"CREATE TABLE spark_catalog.{TABLE} ({', '.join(f'{n} {_hive_type(columns[n].type)}' for n in names)}) "
        "PARTITIONED BY (month BIGINT) STORED AS PARQUET"
    )
    spark.sql(
        f"INSERT INTO spark_catalog.{TABLE} SELECT {', '.join(names)}, month FROM flights_source"
    )
    return _rows(spark, f"spark_catalog.{TABLE}")


@pytest.fixture(scope="module")
def migrated(
    hive_flights: list[list[Any]], catalog: Catalog
) -> Iterator[dict[Path, tuple[int, int]]]:
    """The files of the Hive table (inode and size) as they were when the migration started."""
    files = _files(catalog)
    migrate.apply(catalog, TABLE)
    yield files
    catalog.drop_table(TABLE)


@pytest.mark.slow("has the first statements of Spark and of Iceberg Java")
def test_every_reader_sees_after_migration_what_hive_saw_before(
    hive_flights: list[list[Any]],
    migrated: dict[Path, tuple[int, int]],
    spark: SparkSession,
    catalog: Catalog,
    pyiceberg: Any,
) -> None:
    assert len(hive_flights) == 12
    assert _rows(spark, f"lake.{TABLE}") == hive_flights
    assert _summary(catalog.load_table(TABLE).scan().to_arrow()) == _summary_of(hive_flights)
    assert _summary(pyiceberg.load_table(TABLE).scan().to_arrow()) == _summary_of(hive_flights)


@pytest.mark.full("Iceberg Java in a second Spark")
def test_iceberg_java_sees_after_migration_what_hive_saw_before(
    hive_flights: list[list[Any]], migrated: dict[Path, tuple[int, int]], iceberg_java: Any
) -> None:
    assert iceberg_java.sql(PER_MONTH.format(table=f"ice.{TABLE}")) == hive_flights


def test_iceberg_java_plans_after_migration_the_files_that_were_hive_s(
    migrated: dict[Path, tuple[int, int]], catalog: Catalog, iceberg_library: Any
) -> None:
    planned = iceberg_library.plan(TABLE)
    assert planned == {
        task.file.file_path: [] for task in catalog.load_table(TABLE).scan().plan_files()
    }
    assert {Path(path.removeprefix("file:")).resolve() for path in planned} == {
        path.resolve() for path in migrated if path.suffix == ".parquet"
    }
    columns = ["flight", "tailnum", "distance", "month"]
    rows = iceberg_library.scan(TABLE, "month = 7 and distance > 2000", columns=columns)
    ours = catalog.load_table(TABLE).scan("month = 7 and distance > 2000", tuple(columns))
    assert len(rows) > 3000
    assert sorted(rows, key=repr) == sorted(
        map(list, zip(*ours.to_arrow().to_pydict().values(), strict=True)), key=repr
    )


def test_migration_moves_and_changes_no_data_file(
    migrated: dict[Path, tuple[int, int]], catalog: Catalog
) -> None:
    assert migrated
    assert {path: entry for path, entry in _files(catalog).items() if path in migrated} == migrated


@pytest.mark.full("Iceberg Java in a second Spark")
def test_four_writers_take_turns_and_all_see_every_row(
    migrated: dict[Path, tuple[int, int]],
    spark: SparkSession,
    catalog: Catalog,
    iceberg_java: Any,
    pyiceberg: Any,
) -> None:
    table = catalog.load_table(TABLE)
    before = table.scan().count()
    first = table.current_snapshot().snapshot_id
    batch = table.scan(row_filter="month = 3", limit=100).to_arrow()
    columns = ", ".join(batch.column_names)

    def counts() -> set[int]:
        return {
            catalog.load_table(TABLE).scan().to_arrow().num_rows,
            spark.sql(f"SELECT * FROM lake.{TABLE}").count(),
            iceberg_java.sql(f"SELECT count(*) FROM ice.{TABLE}")[0][0],
            pyiceberg.load_table(TABLE).scan().to_arrow().num_rows,
        }

    table.append(batch)
    assert counts() == {before + 100}
    iceberg_java.sql(
        f"INSERT INTO ice.{TABLE} SELECT {columns} FROM ice.{TABLE} WHERE month = 7 LIMIT 50"
    )
    assert counts() == {before + 150}
    spark.sql(
        f"INSERT INTO lake.{TABLE} SELECT {columns} FROM lake.{TABLE} WHERE month = 7 LIMIT 25"
    )
    assert counts() == {before + 175}
    pyiceberg.load_table(TABLE).append(batch)
    assert counts() == {before + 275}
    table.refresh()
    table.append(batch.slice(0, 10))
    assert counts() == {before + 285}

    july = f"SELECT count(*), sum(distance) FROM {{}}.{TABLE} WHERE month = 7"
    assert [list(r) for r in spark.sql(july.format("lake")).collect()] == iceberg_java.sql(
        july.format("ice")
    )
    old = f"SELECT count(*) FROM {{}}.{TABLE} VERSION AS OF {first}"
    assert spark.sql(old.format("lake")).first()[0] == before
    assert iceberg_java.sql(old.format("ice")) == [[before]]
    assert catalog.load_table(TABLE).scan(snapshot_id=first).to_arrow().num_rows == before


def _rows(spark: SparkSession, table: str) -> list[list[Any]]:
    return [list(row) for row in spark.sql(PER_MONTH.format(table=table)).collect()]


def _hive_type(kind: pa.DataType) -> str:
    return "BIGINT" if pa.types.is_integer(kind) else "STRING"


def _files(catalog: Catalog) -> dict[Path, tuple[int, int]]:
    location = catalog.load_namespace_properties("flightdb")["location"].removeprefix("file:")
    root = Path("/" + location.lstrip("/")) / "flights"
    return {
        path: (path.stat().st_ino, path.stat().st_size)
        for path in root.rglob("*")
        if path.is_file() and not os.fspath(path).startswith(os.fspath(root / "metadata"))
    }


def _summary(rows: pa.Table) -> list[list[Any]]:
    """Per month what Arrow computes over the whole columns."""
    product = pc.multiply(rows["flight"], rows["day"])
    grouped = (
        rows.append_column("product", product)
        .group_by("month")
        .aggregate(
            [
                ([], "count_all"),
                ("tailnum", "count"),
                ("dep_delay", "count"),
                ("distance", "sum"),
                ("dep_delay", "sum"),
                ("product", "sum"),
                ("time_hour", "max"),
                ("tailnum", "min"),
            ]
        )
        .sort_by("month")
    )
    order = [
        "month",
        "count_all",
        "tailnum_count",
        "dep_delay_count",
        "distance_sum",
        "dep_delay_sum",
    ]
    order += ["product_sum", "time_hour_max", "tailnum_min"]
    return [list(row.values()) for row in grouped.select(order).to_pylist()]


def _summary_of(rows: list[list[Any]]) -> list[list[Any]]:
    return rows
