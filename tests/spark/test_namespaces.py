"""Namespaces and names of tables in Spark SQL."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException, PySparkException


@pytest.fixture
def shop(spark):
    spark.sql("CREATE NAMESPACE lake.shop COMMENT 'what we sell' WITH PROPERTIES (team = 'a')")
    yield "shop"
    for row in spark.sql("SHOW TABLES IN lake.shop").collect():
        spark.sql(f"DROP TABLE lake.shop.{row.tableName}")
    spark.sql("DROP NAMESPACE lake.shop")


def _described(spark, namespace):
    rows = spark.sql(f"DESCRIBE NAMESPACE EXTENDED lake.{namespace}").collect()
    return {row.info_name: row.info_value for row in rows}


def test_a_namespace_tells_its_comment_place_and_properties(spark, metastore, shop):
    found = _described(spark, shop)
    assert found["Comment"] == "what we sell"
    assert found["Location"].endswith(f"{metastore.warehouse}/shop.db")
    assert "team" in found["Properties"]


def test_properties_of_a_namespace_change(spark, catalog, shop):
    spark.sql("ALTER NAMESPACE lake.shop SET PROPERTIES (team = 'b', size = '2')")
    properties = catalog.load_namespace_properties(shop)
    assert (properties["team"], properties["size"]) == ("b", "2")


def test_a_namespace_that_is_there_or_not_there_is_an_error_unless_told_otherwise(spark, shop):
    with pytest.raises(AnalysisException, match=r"SCHEMA_ALREADY_EXISTS|already exists"):
        spark.sql("CREATE NAMESPACE lake.shop")
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.shop")
    with pytest.raises(AnalysisException, match=r"SCHEMA_NOT_FOUND|not found|no namespace"):
        spark.sql("DROP NAMESPACE lake.no_such")
    spark.sql("DROP NAMESPACE IF EXISTS lake.no_such")


def test_a_namespace_with_tables_is_not_dropped_not_even_with_cascade(spark, catalog, shop):
    spark.sql("CREATE TABLE lake.shop.t (a INT) USING iceberg")
    for suffix in ("", " CASCADE"):
        with pytest.raises(PySparkException):
            spark.sql(f"DROP NAMESPACE lake.shop{suffix}")
    assert catalog.table_exists((shop, "t"))


def test_a_renamed_table_keeps_its_rows(spark, catalog, shop):
    spark.sql("CREATE TABLE lake.shop.a (x INT) USING iceberg")
    spark.sql("INSERT INTO lake.shop.a VALUES (7)")
    spark.sql("ALTER TABLE lake.shop.a RENAME TO lake.shop.b")
    assert [row.x for row in spark.table("lake.shop.b").collect()] == [7]
    assert not catalog.table_exists((shop, "a"))
