"""Hive tables as Spark's own Hive support makes them, taken over and read by Spark through icecomb."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from icecomb.catalog import migrate
from icecomb.catalog.migrate.applying.migration import MigrationBlockedError
from tests.rings import sampled

COLUMNS = "id, Name, price, ts, tags, m, st, dt, k"


@pytest.fixture(scope="module")
def hive(spark: Any) -> Any:
    """A database with two tables: Hive's Parquet with all kinds of columns, and a Spark datasource table."""
    spark.sql("CREATE DATABASE IF NOT EXISTS spark_catalog.real")
    spark.sql("SET hive.exec.dynamic.partition.mode=nonstrict")
    spark.sql(
        "CREATE TABLE spark_catalog.real.kinds (id BIGINT, Name STRING, price DECIMAL(10,2), ts TIMESTAMP, "
        "tags ARRAY<STRING>, m MAP<STRING,INT>, st STRUCT<A:INT,b:STRING>) "
        "PARTITIONED BY (dt STRING, k INT) STORED AS PARQUET TBLPROPERTIES ('owner.team'='x')"
    )
    spark.sql(
        "INSERT INTO spark_catalog.real.kinds SELECT id, concat('n', id), cast(id * 1.5 AS decimal(10,2)), "
        "timestamp'2024-01-02 03:04:05.123456', array('a', cast(id AS string)), map('k', cast(id AS int)), "
        "named_struct('A', cast(id AS int), 'b', 'z'), if(id % 2 = 0, 'a b/c%=ü', null), cast(id % 3 AS int) "
        "FROM range(12)"
    )
    spark.sql(
        "CREATE TABLE spark_catalog.real.ds (Id INT, d DATE) USING parquet PARTITIONED BY (d)"
    )
    spark.sql("INSERT INTO spark_catalog.real.ds VALUES (1, date'2024-05-06'), (2, null)")
    yield spark
    spark.sql("DROP DATABASE spark_catalog.real CASCADE")


@pytest.mark.parametrize(
    ("table", "columns"), sampled([("real.kinds", COLUMNS), ("real.ds", "Id, d")], keep=1)
)
def test_spark_reads_after_migration_what_hive_read_before_and_again_after_revert(
    hive: Any, catalog: Any, table: str, columns: str
) -> None:
    query = f"SELECT {columns} FROM {{}}.{table} ORDER BY id"
    before = hive.sql(query.format("spark_catalog")).collect()
    partitions = hive.sql(f"SHOW PARTITIONS spark_catalog.{table}").collect()
    state = catalog.client.table(*table.split("."))
    migrate.apply(catalog, table)
    assert hive.sql(query.format("lake")).collect() == before
    assert migrate.verify(catalog, table).difference_count == 0
    schema = catalog.load_table(table).schema()
    assert [column.name for column in schema.columns] == columns.split(", ")
    migrate.revert(catalog, table, dry_run=False)
    assert catalog.client.table(*table.split(".")) == state
    hive.catalog.refreshTable(f"spark_catalog.{table}")
    assert hive.sql(f"SHOW PARTITIONS spark_catalog.{table}").collect() == partitions
    assert hive.sql(query.format("spark_catalog")).collect() == before


def test_files_of_one_partition_are_the_only_ones_read_for_it(hive: Any, catalog: Any) -> None:
    migrate.apply(catalog, "real.kinds")
    found = hive.sql(
        "SELECT count(*), min(id) FROM lake.real.kinds WHERE dt IS NULL AND k = 1"
    ).collect()
    assert [tuple(row) for row in found] == [(2, 1)]
    tasks = list(
        catalog.load_table("real.kinds").scan(row_filter="k = 1 and dt is null").plan_files()
    )
    assert {task.file.partition for task in tasks} == {(None, 1)}
    migrate.revert(catalog, "real.kinds", dry_run=False)


def test_partitions_that_spark_finds_in_folders_only_are_registered_first(
    hive: Any, catalog: Any
) -> None:
    manages = "spark.sql.hive.manageFilesourcePartitions"
    hive.sql(f"SET {manages}=false")
    hive.sql(
        "CREATE TABLE spark_catalog.real.found (id INT, k STRING) USING parquet PARTITIONED BY (k)"
    )
    hive.sql("INSERT INTO spark_catalog.real.found VALUES (1, 'a'), (2, 'b c')")
    hive.sql(f"RESET {manages}")
    before = hive.sql("SELECT * FROM spark_catalog.real.found ORDER BY id").collect()
    assert len(before) == 2
    with pytest.raises(MigrationBlockedError, match="among the folders"):
        migrate.apply(catalog, "real.found")
    hive.sql("MSCK REPAIR TABLE spark_catalog.real.found")  # the remedy
    migrate.apply(catalog, "real.found")
    assert hive.sql("SELECT * FROM lake.real.found ORDER BY id").collect() == before
    migrate.revert(catalog, "real.found", dry_run=False)


def test_a_folder_that_hive_gave_a_table_is_not_taken_for_that_of_spark(
    hive: Any, catalog: Any, tmp_path: Any
) -> None:
    hive.sql("CREATE TABLE spark_catalog.real.went USING parquet AS SELECT 1 AS id")
    entry = catalog.client.table("real", "went")
    other = replace(entry.storage, location=tmp_path.as_uri())
    catalog.client.alter_table("real", "went", replace(entry, storage=other))
    hive.catalog.refreshTable("spark_catalog.real.went")
    assert hive.sql("SELECT * FROM spark_catalog.real.went").count() == 1, "by its own parameter"
    with pytest.raises(MigrationBlockedError, match="Spark reads"):
        migrate.apply(catalog, "real.went")
    for_spark = f"ALTER TABLE spark_catalog.real.went SET LOCATION '{tmp_path.as_uri()}'"
    hive.sql(for_spark)  # the remedy
    assert hive.sql("SELECT * FROM spark_catalog.real.went").count() == 0
    migrate.apply(catalog, "real.went")
    assert catalog.load_table("real.went").scan().count() == 0
    migrate.revert(catalog, "real.went", dry_run=False)
