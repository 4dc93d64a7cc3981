"""Rows that Iceberg Java deleted merge-on-read are not seen by Spark here; what is refused stays so."""

from __future__ import annotations

import pytest
from pyspark.sql import Row


@pytest.fixture(scope="module")
def deleted(spark, iceberg_java):
    """5,000 rows in two files; every tenth row and one whole stretch deleted by Iceberg Java."""
    iceberg_java.sql("CREATE NAMESPACE IF NOT EXISTS ice.delete_tests")
    iceberg_java.sql(
        "CREATE TABLE ice.delete_tests.t (id BIGINT, s STRING) USING iceberg TBLPROPERTIES "
        "('format-version'='2', 'write.delete.mode'='merge-on-read')"
    )
    insert = "INSERT INTO ice.delete_tests.t SELECT id, concat('v', id) FROM range({}, {}, 1, 1)"
    iceberg_java.sql(insert.format(0, 4000))
    iceberg_java.sql(insert.format(4000, 5000))
    iceberg_java.sql("DELETE FROM ice.delete_tests.t WHERE id % 10 = 3")
    iceberg_java.sql("DELETE FROM ice.delete_tests.t WHERE id BETWEEN 1500 AND 1699")
    yield "lake.delete_tests.t"
    spark.sql("DROP TABLE lake.delete_tests.t")


LEFT = [i for i in range(5000) if i % 10 != 3 and not 1500 <= i <= 1699]


def test_deleted_rows_are_gone(spark, deleted):
    found = spark.sql(f"SELECT count(*) AS n, sum(id) AS s, count(DISTINCT s) AS d FROM {deleted}")
    assert found.collect() == [Row(n=len(LEFT), s=sum(LEFT), d=len(LEFT))]


@pytest.mark.parametrize(
    "condition", ["id > 1490 AND id < 1710", "s LIKE 'v14%'", "id % 100 = 3", "id >= 3990"]
)
def test_deletes_and_filters_go_together(spark, iceberg_java, deleted, condition):
    query = "SELECT id FROM {} WHERE {} ORDER BY id"
    ours = [[row.id] for row in spark.sql(query.format(deleted, condition)).collect()]
    assert ours == iceberg_java.sql(query.format("ice.delete_tests.t", condition))


def test_the_version_before_the_deletes_still_has_the_rows(spark, catalog, deleted):
    history = catalog.load_table(("delete_tests", "t")).snapshots()
    query = f"SELECT count(*) AS n FROM {deleted} VERSION AS OF {history[1].snapshot_id}"
    assert spark.sql(query).collect() == [Row(n=5000)]


def test_a_file_has_one_file_of_deletes_which_goes_with_its_last_row(sql):
    """Iceberg's testPositionDeletesAreMaintainedDuringDelete and testDeleteWithPartitionedTable."""
    name = "lake.kept_deletes.t"
    sql("CREATE NAMESPACE IF NOT EXISTS lake.kept_deletes")
    sql(
        f"CREATE TABLE {name} (id BIGINT, k STRING) USING iceberg PARTITIONED BY (k) TBLPROPERTIES "
        "('format-version'='2', 'write.delete.mode'='merge-on-read', 'write.delete.granularity'='file')"
    )
    sql(f"INSERT INTO {name} SELECT id, IF(id < 5, 'a', 'b') FROM range(0, 10, 1, 1)")
    deletes = f"SELECT count(*), sum(record_count) FROM {name}.delete_files"
    for gone in (1, 2):
        sql(f"DELETE FROM {name} WHERE id IN (SELECT {gone}L)")
        assert sql(deletes) == [[1, gone]]
    [[text]] = sql(f"EXPLAIN SELECT id FROM {name} WHERE k = 'b'")
    assert "filters=k IS NOT NULL, k = 'b'," in text
    sql(f"DELETE FROM {name} WHERE k = 'a'")
    assert sql(deletes) == [[0, None]]
    assert sql(f"SELECT id FROM {name} ORDER BY id") == [[5], [6], [7], [8], [9]]
    sql(f"DROP TABLE {name}")
