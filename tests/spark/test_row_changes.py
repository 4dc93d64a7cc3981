"""DELETE, TRUNCATE, INSERT OVERWRITE, UPDATE and MERGE in Spark SQL."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from tests.spark.lake_table import found, load, summary
from tests.spark.second_reader import READERS, reader

pytestmark = pytest.mark.usefixtures("own_namespace")

NAMESPACE = "row_change_tests"
NUMBERS = itertools.count(1)


@pytest.fixture
def name(spark):
    """A name that is free."""
    table = f"lake.{NAMESPACE}.t{next(NUMBERS)}"
    yield table
    spark.sql(f"DROP TABLE IF EXISTS {table}")


@pytest.fixture
def orders(spark, catalog, name):
    """Ten rows in two partitions, two files each."""
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT, k STRING, x DOUBLE) USING iceberg PARTITIONED BY (k)"
    )
    with load(catalog, name).transaction() as change:
        for first in (0, 5):
            ids = range(first, first + 5)
            kinds = ["odd" if i % 2 else "even" for i in ids]
            change.append(pa.table({"id": [*ids], "k": kinds, "x": [i / 2 for i in ids]}))
    return name


@pytest.fixture(params=READERS)
def other(request):
    """Answers a query as another implementation does."""
    return reader(request)


def java(name):
    return f"ice.{name.removeprefix('lake.')}"


def ids(spark, name):
    return [row[0] for row in found(spark, name, "id")]


# DELETE


def test_whole_files_are_deleted_without_reading_any(spark, catalog, other, orders):
    spark.sql(f"DELETE FROM {orders} WHERE k = 'odd'")
    assert ids(spark, orders) == [0, 2, 4, 6, 8]
    made = summary(catalog, orders)
    assert (made["operation"], made["deleted-data-files"]) == ("delete", "2")
    assert "added-data-files" not in made
    assert made["engine-name"] == "spark"
    assert other(f"SELECT sum(id) FROM {java(orders)}") == [[20]]


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_single_rows_are_deleted_as_the_table_says(spark, catalog, other, orders, mode):
    spark.sql(f"ALTER TABLE {orders} SET TBLPROPERTIES ('write.delete.mode'='{mode}')")
    spark.sql(f"DELETE FROM {orders} WHERE id IN (1, 2) OR x > 4")
    assert ids(spark, orders) == [0, 3, 4, 5, 6, 7, 8]
    made = summary(catalog, orders)
    assert ("added-delete-files" in made) == (mode == "merge-on-read")
    assert ("added-data-files" in made) == (mode == "copy-on-write")
    assert other(f"SELECT sum(id), count(*) FROM {java(orders)}") == [[33, 7]]


@pytest.mark.parametrize("statement", ["DELETE FROM {}", "TRUNCATE TABLE {}"])
def test_all_rows_are_deleted(spark, catalog, orders, statement):
    spark.sql(statement.format(orders))
    assert ids(spark, orders) == []
    assert len(load(catalog, orders).snapshots()) == 3


def test_nothing_is_committed_where_nothing_matches(spark, catalog, orders):
    before = load(catalog, orders).metadata_location
    spark.sql(f"DELETE FROM {orders} WHERE id > 100")
    spark.sql(f"DELETE FROM {orders} WHERE id % 100 = 77")
    spark.sql(f"UPDATE {orders} SET x = 1 WHERE id = 100")
    assert load(catalog, orders).metadata_location == before


def test_a_condition_of_any_form_deletes_by_writing_only_the_touched_files(
    spark, catalog, other, orders
):
    spark.sql(f"DELETE FROM {orders} WHERE id % 5 = 4 AND substr(k, 1, 1) = 'e'")
    assert ids(spark, orders) == [0, 1, 2, 3, 5, 6, 7, 8, 9]
    made = summary(catalog, orders)
    assert (made["deleted-data-files"], made["added-data-files"]) == ("1", "1")
    spark.sql(f"DELETE FROM {orders} WHERE id IN (SELECT id + 1 FROM {orders} WHERE k = 'odd')")
    assert ids(spark, orders) == [0, 1, 3, 5, 7, 9]
    assert other(f"SELECT sum(id) FROM {java(orders)}") == [[25]]


CONDITIONS = [
    "d > 1", "d >= 'NaN'", "d < 1", "d <> 1", "NOT (d > 1)", "d = double('NaN')", "d <=> NULL",
    "d IN (1, double('NaN'))", "d NOT IN (1, 2)", "NOT (d <=> 1)", "d IS NULL OR d = 0",
    "s = 'b'", "s <> 'b'", "s LIKE 'b%'", "s NOT LIKE 'b%'", "s IN ('a', 'b')", "s IN ('a', NULL)",
    "s NOT IN ('a')", "NOT (s = 'a' AND d > 1)", "NOT (s = 'a' OR d > 1)", "s > 'a'", "s <=> 'a'",
    "m > 1.5", "m = 1.50", "t >= '1969-12-31'", "ts < '1970-01-01 00:00:00'", "b", "NOT b",
    "in.n = 1", "in.n IS NULL", "upper(s) = 'A'", "d + 1 > 2", "true", "false", "s IN ('', 'bé')",
]  # fmt: skip
ROWS = """
    (1, 1.0D, 'a', 1.50, DATE '1969-12-31', TIMESTAMP '1969-12-31 23:59:59.5', true, named_struct('n', 1)),
    (2, double('NaN'), 'b', -1.00, DATE '1970-01-01', TIMESTAMP '1970-01-01 00:00:00', false, named_struct('n', 2)),
    (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (4, -0.0D, '', 0.00, DATE '2026-01-01', TIMESTAMP '2026-01-01 00:00:00', true, named_struct('n', NULL)),
    (5, double('-Infinity'), 'bé', 99.99, DATE '0001-01-01', NULL, NULL, named_struct('n', 1)),
    (6, 2.0D, 'B', 1.51, NULL, TIMESTAMP '1970-01-01 00:00:00.000001', false, NULL)
"""


@pytest.mark.parametrize(
    "conditions",
    [
        pytest.param(CONDITIONS[::5], id="some"),
        pytest.param(
            [each for at, each in enumerate(CONDITIONS) if at % 5],
            id="all others",
            marks=pytest.mark.full("every fifth condition is in the gate"),
        ),
    ],
)
def test_a_delete_takes_exactly_the_rows_that_a_select_finds(spark, catalog, name, conditions):
    spark.sql(
        f"CREATE TABLE {name} (id INT, d DOUBLE, s STRING, m DECIMAL(9,2), t DATE, ts TIMESTAMP, "
        "b BOOLEAN, in STRUCT<n: INT>) USING iceberg"
    )
    spark.sql(f"INSERT INTO {name} VALUES {ROWS}")
    table = load(catalog, name)
    full = table.current_snapshot().snapshot_id
    for condition in conditions:
        gone = {row.id for row in spark.sql(f"SELECT id FROM {name} WHERE {condition}").collect()}
        spark.sql(f"DELETE FROM {name} WHERE {condition}")
        left = set(table.refresh().scan(selected_fields=("id",)).to_arrow()["id"].to_pylist())
        assert left == {1, 2, 3, 4, 5, 6} - gone, condition
        with table.manage_snapshots() as manage:
            manage.rollback_to_snapshot(full)


# INSERT OVERWRITE


def test_insert_overwrite_replaces_all_rows_a_partition_or_those_that_get_new_ones(
    spark, catalog, other, orders
):
    spark.sql(f"INSERT OVERWRITE {orders} PARTITION (k = 'odd') VALUES (11, 1.5)")
    assert ids(spark, orders) == [0, 2, 4, 6, 8, 11]
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        spark.sql(f"INSERT OVERWRITE {orders} VALUES (20, 'even', 1), (30, 'new', 1)")
        assert ids(spark, orders) == [11, 20, 30]
        spark.sql(f"INSERT OVERWRITE {orders} SELECT * FROM {orders} WHERE id > 100")
        assert ids(spark, orders) == [11, 20, 30]
    finally:
        spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    assert other(f"SELECT count(*), sum(id) FROM {java(orders)}") == [[3, 61]]
    spark.sql(f"INSERT OVERWRITE {orders} SELECT id + 1, k, x FROM {orders} WHERE id > 11")
    assert ids(spark, orders) == [21, 31]
    assert summary(catalog, orders)["operation"] == "overwrite"
    spark.sql(f"INSERT OVERWRITE {orders} SELECT * FROM {orders} WHERE id > 100")
    assert ids(spark, orders) == []


def test_replace_where_replaces_whole_files_only(spark, catalog, orders):
    spark.sql(f"INSERT INTO {orders} REPLACE WHERE k = 'odd' VALUES (13, 'odd', 1)")
    assert ids(spark, orders) == [0, 2, 4, 6, 8, 13]
    before = load(catalog, orders).metadata_location
    with pytest.raises(PySparkException, match="match"):
        spark.sql(f"INSERT INTO {orders} REPLACE WHERE id < 3 VALUES (1, 'odd', 1)")
    assert load(catalog, orders).metadata_location == before
    assert ids(spark, orders) == [0, 2, 4, 6, 8, 13]


# UPDATE and MERGE


def test_update_changes_rows_and_moves_them_between_partitions(spark, catalog, other, orders):
    spark.sql(f"UPDATE {orders} SET x = x + 100, k = 'moved' WHERE id BETWEEN 1 AND 2")
    expected = [[i, "moved" if i in (1, 2) else ("odd" if i % 2 else "even"),
                 i / 2 + (100 if i in (1, 2) else 0)] for i in range(10)]  # fmt: skip
    assert found(spark, orders) == expected
    assert other(f"SELECT * FROM {java(orders)} ORDER BY id") == expected
    made = summary(catalog, orders)
    assert made["operation"] == "overwrite"
    assert made["deleted-data-files"] == "2"
    assert made["total-records"] == "10"
    spark.sql(f"UPDATE {orders} SET x = 0")
    assert found(spark, orders, "sum(x), count(*)", "1") == [[0.0, 10]]


def test_update_and_delete_read_position_deletes_and_do_not_bring_rows_back(
    spark, catalog, other, orders
):
    spark.sql(f"ALTER TABLE {orders} SET TBLPROPERTIES ('write.delete.mode'='merge-on-read')")
    spark.sql(f"DELETE FROM {orders} WHERE id IN (1, 6)")
    spark.sql(f"UPDATE {orders} SET x = -1 WHERE id % 3 = 0")
    expected = [[0, -1], [2, 1], [3, -1], [4, 2], [5, 2.5], [7, 3.5], [8, 4], [9, -1]]
    assert found(spark, orders, "id, x") == expected
    assert other(f"SELECT id, x FROM {java(orders)} ORDER BY id") == expected


def test_update_with_a_subquery_and_in_a_struct(spark, name):
    spark.sql(f"CREATE TABLE {name} (id INT, p STRUCT<x: INT, y: INT>) USING iceberg")
    spark.sql(f"INSERT INTO {name} SELECT id, named_struct('x', id, 'y', 0) FROM range(4)")
    spark.sql(f"UPDATE {name} SET p.y = 5 WHERE id IN (SELECT max(id) FROM {name})")
    assert found(spark, name, "id, p.x, p.y") == [[0, 0, 0], [1, 1, 0], [2, 2, 0], [3, 3, 5]]


def test_merge_updates_deletes_and_inserts_in_one_commit(spark, catalog, other, orders):
    before = load(catalog, orders)
    spark.sql(
        f"""MERGE INTO {orders} t USING (
            SELECT col1 AS id, col2 AS what FROM VALUES (1, 'u'), (2, 'd'), (50, 'i')
        ) s ON t.id = s.id
        WHEN MATCHED AND s.what = 'd' THEN DELETE
        WHEN MATCHED THEN UPDATE SET t.x = -5
        WHEN NOT MATCHED THEN INSERT (id, k, x) VALUES (s.id, 'odd', 0)"""
    )
    expected = [[0, 0], [1, -5], [3, 1.5], [4, 2], [5, 2.5], [6, 3], [7, 3.5], [8, 4], [9, 4.5],
                [50, 0]]  # fmt: skip
    assert found(spark, orders, "id, x") == expected
    assert other(f"SELECT id, x FROM {java(orders)} ORDER BY id") == expected
    after = load(catalog, orders)
    assert len(after.snapshots()) == len(before.snapshots()) + 1
    assert summary(catalog, orders)["deleted-data-files"] == "2"


def test_merge_into_and_from_empty_tables(spark, name):
    spark.sql(f"CREATE TABLE {name} (id BIGINT, x DOUBLE) USING iceberg")
    for source in ("range(3)", "range(0)", "range(2, 4)"):
        spark.sql(
            f"""MERGE INTO {name} t USING (SELECT id FROM {source}) s ON t.id = s.id
            WHEN MATCHED THEN UPDATE SET t.x = 1 WHEN NOT MATCHED THEN INSERT (id, x) VALUES (s.id, 0)"""
        )
    assert found(spark, name) == [[0, 0.0], [1, 0.0], [2, 1.0], [3, 0.0]]


def test_a_frame_writer_cannot_name_the_operation_of_its_snapshot(spark, catalog, orders):
    rows = spark.sql("SELECT 77L AS id, 'even' AS k, 1.0D AS x")
    writer = rows.writeTo(orders)
    with pytest.raises(PySparkException, match="Cannot set snapshot properties: operation"):
        writer.option("snapshot-property.operation", "INSERT").append()
    assert 77 not in ids(spark, orders)
    rows.writeTo(orders).option("snapshot-property.by", "me").append()
    snapshot = load(catalog, orders).current_snapshot()
    assert (snapshot.operation, snapshot.summary["by"]) == ("append", "me")
