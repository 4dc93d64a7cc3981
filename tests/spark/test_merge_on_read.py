"""DELETE, UPDATE and MERGE of Spark on tables that are merged on read."""

from __future__ import annotations

import itertools
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException

from tests.rings import sampled
from tests.spark.lake_table import found, load, summary
from tests.spark.second_reader import READERS, reader
from tests.spark.xxh64_collision import colliding

pytestmark = pytest.mark.usefixtures("own_namespace")

NAMESPACE = "merge_on_read_tests"
NUMBERS = itertools.count(1)
MODES = ", ".join(f"'write.{c}.mode'='merge-on-read'" for c in ("delete", "update", "merge"))


@pytest.fixture(params=READERS)
def ask(request):
    """Answers a query about tables of `{c}` by another implementation."""
    answer = reader(request)
    return lambda query: answer(query.format(c="ice"))


@pytest.fixture
def name(spark):
    """A name that is free."""
    table = f"lake.{NAMESPACE}.t{next(NUMBERS)}"
    yield table
    spark.sql(f"DROP TABLE IF EXISTS {table}")


@pytest.fixture
def orders(spark, name):
    """Ten rows in two partitions, two files each."""
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT, k STRING, x DOUBLE) USING iceberg PARTITIONED BY (k) "
        f"TBLPROPERTIES ({MODES})"
    )
    for first in (0, 5):
        spark.sql(
            f"INSERT INTO {name} SELECT id, IF(id % 2 = 0, 'even', 'odd'), id / 2 "
            f"FROM range({first}, {first + 5})"
        )
    return name


def of_any(name):
    """The name of a table for `ask`."""
    return f"{{c}}.{name.removeprefix('lake.')}"


def deletes(catalog, name):
    """The live files of position deletes."""
    return load(catalog, name).inspect.delete_files().to_pylist()


def data_files(catalog, name):
    return {f["file_path"]: f for f in load(catalog, name).inspect.data_files().to_pylist()}


def test_rows_say_their_file_by_the_hash_of_its_path(spark, orders):
    columns = "count(*), count(DISTINCT _icecomb_file), count_if(_icecomb_file = xxhash64(_file))"
    assert found(spark, orders, columns, "1") == [[10, 4, 10]]


@pytest.mark.full("writes files until two names have one hash")
def test_files_of_one_hash_lose_no_rows_of_each_other(spark, catalog, name):
    spark.sql(f"CREATE TABLE {name} (id BIGINT) USING iceberg TBLPROPERTIES ({MODES})")
    table = load(catalog, name)
    paths = colliding(f"{table.location()}/data/", ".parquet", seed=42)
    for first, path in zip((0, 5), paths, strict=True):
        file = Path(path.removeprefix("file:"))
        file.parent.mkdir(exist_ok=True)
        pq.write_table(pa.table({"id": range(first, first + 5)}), file)
    table.add_files(paths)
    assert found(spark, name, "count(DISTINCT _file), count(DISTINCT xxhash64(_file))", "1") == [
        [2, 1]
    ]
    odd = f"DELETE FROM {name} WHERE id % 3 = 1"
    with pytest.raises(PySparkException, match="have the same hash") as refused:
        spark.sql(odd)
    assert "write.delete.mode" in str(refused.value)
    assert found(spark, name, "count(*)", "1") == [[10]]
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('write.delete.mode'='copy-on-write')")
    spark.sql(odd)
    assert found(spark, name, "id") == [[i] for i in range(10) if i % 3 != 1]


def test_a_delete_with_a_subquery_writes_deletes_and_no_data(spark, catalog, ask, orders):
    before = data_files(catalog, orders)
    spark.sql(f"DELETE FROM {orders} WHERE id IN (SELECT id + 1 FROM {orders} WHERE id % 4 = 1)")
    expected = [[0], [1], [3], [4], [5], [7], [8], [9]]
    assert found(spark, orders, "id") == expected
    made = summary(catalog, orders)
    assert made["operation"] == "delete"
    assert (made["added-position-deletes"], made["added-delete-files"]) == ("2", "2")
    assert "added-data-files" not in made
    assert "deleted-data-files" not in made
    assert data_files(catalog, orders) == before
    assert ask(f"SELECT id FROM {of_any(orders)} ORDER BY id") == expected
    for each in deletes(catalog, orders):
        of = before[each["referenced_data_file"]]
        assert (each["partition"], each["spec_id"]) == (of["partition"], of["spec_id"])
        assert each["file_path"].startswith(of["file_path"].rpartition("/")[0] + "/")
        bounds = each["readable_metrics"] or {}
        assert each["file_path"].endswith("-deletes.parquet"), bounds


def test_an_update_deletes_and_adds_the_rows_it_changes(spark, catalog, ask, orders):
    spark.sql(f"UPDATE {orders} SET x = x + 100, k = 'moved' WHERE id BETWEEN 1 AND 2")
    expected = [[i, "moved" if i in (1, 2) else ("odd" if i % 2 else "even"),
                 i / 2 + (100 if i in (1, 2) else 0)] for i in range(10)]  # fmt: skip
    assert found(spark, orders) == expected
    made = summary(catalog, orders)
    assert made["operation"] == "overwrite"
    assert (made["added-records"], made["added-position-deletes"]) == ("2", "2")
    assert "deleted-data-files" not in made
    assert ask(f"SELECT * FROM {of_any(orders)} ORDER BY id") == expected


def test_a_merge_with_every_clause_is_one_commit(spark, catalog, ask, orders):
    before = load(catalog, orders)
    spark.sql(
        f"""MERGE INTO {orders} t USING (
            SELECT col1 AS id, col2 AS what FROM VALUES (1, 'u'), (2, 'd'), (50, 'i'), (4, 'n')
        ) s ON t.id = s.id
        WHEN MATCHED AND s.what = 'd' THEN DELETE
        WHEN MATCHED AND s.what = 'u' THEN UPDATE SET t.x = -5
        WHEN NOT MATCHED AND s.what = 'i' THEN INSERT (id, k, x) VALUES (s.id, 'odd', 0)
        WHEN NOT MATCHED BY SOURCE AND t.k = 'odd' AND t.id > 5 THEN DELETE
        WHEN NOT MATCHED BY SOURCE AND t.id = 0 THEN UPDATE SET t.x = 77"""
    )
    expected = [[0, 77], [1, -5], [3, 1.5], [4, 2], [5, 2.5], [6, 3], [8, 4], [50, 0]]
    assert found(spark, orders, "id, x") == expected
    assert ask(f"SELECT id, x FROM {of_any(orders)} ORDER BY id") == expected
    after = load(catalog, orders)
    assert len(after.snapshots()) == len(before.snapshots()) + 1
    made = summary(catalog, orders)
    assert (made["added-records"], made["added-position-deletes"]) == ("3", "5")
    with pytest.raises(Exception, match="MERGE_CARDINALITY_VIOLATION"):
        spark.sql(
            f"""MERGE INTO {orders} t USING (
                SELECT col1 AS id, col2 AS x FROM VALUES (3, 1.0), (3, 2.0)
            ) s ON t.id = s.id
            WHEN MATCHED THEN UPDATE SET t.x = s.x"""
        )
    assert load(catalog, orders).metadata_location == after.metadata_location


def test_new_deletes_of_a_file_stand_for_its_older_ones(spark, catalog, ask, orders):
    for remainder in (0, 1, 2):
        spark.sql(f"DELETE FROM {orders} WHERE id % 5 = {remainder} AND abs(id) < 5")
    left = [[i] for i in (3, 4, 5, 6, 7, 8, 9)]
    assert found(spark, orders, "id") == left
    files = deletes(catalog, orders)
    assert len({f["referenced_data_file"] for f in files}) == len(files) == 2
    assert sorted(f["record_count"] for f in files) == [1, 2]
    made = summary(catalog, orders)
    assert made["removed-delete-files"] == "1"
    assert made["total-position-deletes"] == "3"
    assert ask(f"SELECT id FROM {of_any(orders)} ORDER BY id") == left


def test_deletes_of_a_partition_go_into_one_file(spark, catalog, ask, orders):
    spark.sql(f"ALTER TABLE {orders} SET TBLPROPERTIES ('write.delete.granularity'='partition')")
    spark.sql(f"DELETE FROM {orders} WHERE id % 5 < 2 AND abs(id) < 100")
    left = [[i] for i in range(10) if i % 5 >= 2]
    assert found(spark, orders, "id") == left
    assert [f["record_count"] for f in deletes(catalog, orders)] == [2, 2]
    assert [f["referenced_data_file"] for f in deletes(catalog, orders)] == [None, None]
    assert ask(f"SELECT id FROM {of_any(orders)} ORDER BY id") == left


def test_nothing_is_committed_where_nothing_changes(spark, catalog, orders):
    before = load(catalog, orders).metadata_location
    spark.sql(f"DELETE FROM {orders} WHERE id % 100 = 77")
    spark.sql(f"UPDATE {orders} SET x = 1 WHERE id = 100")
    spark.sql(f"UPDATE {orders} SET x = 1 WHERE false")
    spark.sql(f"UPDATE {orders} SET x = 1 WHERE id IN (SELECT id FROM {orders} WHERE id > 100)")
    assert load(catalog, orders).metadata_location == before
    with pytest.raises(PySparkException, match="cannot name _deleted"):
        spark.sql(f"DELETE FROM {orders} WHERE _deleted AND id % 2 = 0")


def other_commit_during(spark, statement, folder, commit):
    """Runs a statement that asks `passes(id)`; others commit while it reads."""
    started, go = folder / "started", folder / "go"

    def passes(_):
        import time

        started.touch()
        for _each in range(3000):
            if go.exists():
                return True
            time.sleep(0.1)
        raise TimeoutError("nobody opened the gate")

    spark.udf.register("passes", passes, "boolean")
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(spark.sql, statement)
        try:
            while not started.exists() and not running.done():
                time.sleep(0.05)
            commit()
        finally:
            go.touch()
            spark.sql("DROP TEMPORARY FUNCTION IF EXISTS passes")
        running.result()


def test_a_delete_goes_through_beside_a_delete_of_the_same_file(
    spark, catalog, ask, orders, tmp_path
):
    spark.sql(f"DELETE FROM {orders} WHERE id % 10 = 2")
    other_commit_during(
        spark,
        f"DELETE FROM {orders} WHERE passes(id) AND id = 0",
        tmp_path,
        lambda: spark.sql(f"DELETE FROM {orders} WHERE id % 10 = 4"),
    )
    left = [[1], [3], [5], [6], [7], [8], [9]]
    assert found(spark, orders, "id") == left
    assert ask(f"SELECT id FROM {of_any(orders)} ORDER BY id") == left


@pytest.mark.parametrize(
    ("other", "error"),
    [
        (lambda table: table.delete("id = 4"), "conflicting delete file"),
        (lambda table: table.delete("k = 'even'"), "missing data files"),
    ],
)
def test_an_update_is_refused_where_others_deleted_rows_it_may_have_read(
    spark, catalog, orders, tmp_path, other, error
):
    files = set(load(catalog, orders).inspect.files()["file_path"].to_pylist())
    with pytest.raises(PySparkException, match=error):
        other_commit_during(
            spark,
            f"UPDATE {orders} SET x = -1 WHERE passes(id) AND id = 0",
            tmp_path,
            lambda: other(load(catalog, orders)),
        )
    table = load(catalog, orders)
    assert -1 not in table.scan().to_arrow()["x"].to_pylist()
    # what the refused statement wrote is gone
    known = {row["file_path"] for row in table.inspect.all_files().to_pylist()} | files
    assert written(table) == {path.rpartition("/")[2] for path in known}


def written(table):
    """The names of the files in a table's data folder."""
    return {
        path.name
        for path in Path(table.location().removeprefix("file:"), "data").rglob("*.parquet")
    }


@pytest.mark.parametrize("fields", sampled(["truncate(1, k)", "k"], keep=1))
def test_rows_whose_partition_is_null_are_changed_too(spark, name, ask, fields):
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT, k STRING, x DOUBLE) USING iceberg "
        f"PARTITIONED BY ({fields}) TBLPROPERTIES ({MODES})"
    )
    spark.sql(f"INSERT INTO {name} VALUES (1, 'a', 1), (2, NULL, 2), (3, NULL, 3), (4, 'b', 4)")
    spark.sql(f"UPDATE {name} SET x = x + 10 WHERE id > 2")
    assert found(spark, name, "id, x") == [[1, 1], [2, 2], [3, 13], [4, 14]]
    spark.sql(
        f"""MERGE INTO {name} t USING (SELECT col1 AS id FROM VALUES (2), (5)) s ON t.id = s.id
        WHEN MATCHED THEN UPDATE SET x = 20
        WHEN NOT MATCHED THEN INSERT (id, k, x) VALUES (s.id, NULL, 50)"""
    )
    spark.sql(f"DELETE FROM {name} WHERE id > 2 AND coalesce(k, 'none') <> 'b'")
    expected = [[1, 1], [2, 20], [4, 14]]
    assert found(spark, name, "id, x") == expected
    assert ask(f"SELECT id, x FROM {of_any(name)} ORDER BY id") == expected


@pytest.mark.full("one of many settings of a session")
def test_the_sessions_snapshot_properties_are_in_every_summary_also_on_a_branch(
    spark, catalog, orders
):
    spark.sql(f"ALTER TABLE {orders} CREATE BRANCH side")
    key = "spark.sql.iceberg.snapshot-property.team"
    side = f"{orders}.branch_side"
    statements = (
        f"INSERT INTO {side} VALUES (20, 'even', 1)",
        f"DELETE FROM {side} WHERE id = 0",
        f"DELETE FROM {side} WHERE id % 5 = 1",
        f"UPDATE {side} SET x = 9 WHERE id = 2",
        f"MERGE INTO {side} t USING (SELECT 3L AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE",
    )
    for number, statement in enumerate(statements):
        spark.conf.set(key, str(number))
        try:
            spark.sql(statement)
        finally:
            spark.conf.unset(key)
        table = load(catalog, orders)
        head = table.metadata.snapshot_by_id(table.metadata.refs["side"].snapshot_id)
        assert head.summary["team"] == str(number), statement
    assert found(spark, side, "id") == [[i] for i in (2, 4, 5, 7, 8, 9, 20)]
    assert len(found(spark, orders)) == 10
