"""Tables on S3: Spark's tasks read and write them by Hadoop's S3A, the planner by icecomb's own client."""

from __future__ import annotations

import sys
import uuid

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from icecomb.catalog import load_catalog
from icecomb.spark.conf import CATALOG_CLASS
from tests.peers.s3 import KEY, SECRET
from tests.peers.s3a import s3a_settings
from tests.rings import sampled


@pytest.fixture(scope="module")
def lake(sql_on, metastore, s3):
    """Makes a catalog of Spark's, and the same one in Python, on a bucket of its own."""
    made = []

    def make(scheme="s3", minor="4.3", **options):
        run = sql_on(minor)
        name = f"store_{uuid.uuid4().hex[:8]}"
        place = {"uri": metastore.uri, "warehouse": f"{scheme}://{s3.bucket()}/wh"}
        prefix = f"spark.sql.catalog.{name}"
        run(f"SET {prefix}={CATALOG_CLASS}")
        for key, value in {**place, "python": sys.executable, **options}.items():
            run(f"SET `{prefix}.{key}`=`{value}`")
        made.append(load_catalog(name, **place, **s3.settings))
        namespace = f"n_{uuid.uuid4().hex[:8]}"
        run(f"CREATE NAMESPACE {name}.{namespace}")
        return f"{name}.{namespace}", made[-1]

    yield make
    for catalog in made:
        catalog.close()


def _rows(spark, statement):
    return [tuple(row) for row in spark.sql(statement).collect()]


CASES = [
    ("4.3", "s3.* of the catalog", "copy-on-write"),
    ("4.3", "fs.s3a.* of Hadoop", "merge-on-read"),
    ("3.5", "s3.* of the catalog", "merge-on-read"),
    ("3.5", "fs.s3a.* of Hadoop", "copy-on-write"),
]


@pytest.mark.slow("has a session of its own for the store")
@pytest.mark.parametrize(("minor", "way", "mode"), sampled(CASES, keep=1))
def test_rows_are_written_changed_and_read_on_s3(sql_on, lake, s3, minor, way, mode):
    run = sql_on(minor)
    if way.startswith("s3."):
        namespace, catalog = lake("s3", minor, **s3.settings)
    else:
        hadoop = {f"hadoop.{key}": value for key, value in s3a_settings(s3.endpoint).items()}
        namespace, catalog = lake("s3a", minor, **hadoop)
    modes = ", ".join(f"'write.{verb}.mode'='{mode}'" for verb in ("delete", "update", "merge"))
    table = f"{namespace}.t"
    run(
        f"CREATE TABLE {table} (id BIGINT, part STRING) PARTITIONED BY (part) "
        f"TBLPROPERTIES ({modes})"
    )
    run(f"INSERT INTO {table} SELECT id, 'p' || id % 2 FROM range(10)")
    run(f"DELETE FROM {table} WHERE id = 4")
    run(f"UPDATE {table} SET part = 'new' WHERE id = 5")
    run(
        f"MERGE INTO {table} t USING (SELECT 6 id UNION SELECT 100) s ON t.id = s.id "
        "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, part) VALUES (s.id, 'merged')"
    )
    expected = [
        *([0, "p0"], [1, "p1"], [2, "p0"], [3, "p1"], [5, "new"]),
        *([7, "p1"], [8, "p0"], [9, "p1"], [100, "merged"]),
    ]
    assert run(f"SELECT * FROM {table} ORDER BY id") == expected
    ours = catalog.load_table(table.partition(".")[2])
    found = ours.scan().to_arrow().sort_by("id").to_pylist()
    assert [[row["id"], row["part"]] for row in found] == expected
    first = ours.history()[0].snapshot_id
    assert run(f"SELECT count(*), sum(id) FROM {table} VERSION AS OF {first}") == [[10, 45]]


@pytest.mark.full("the same procedures on local files are in the gate")
def test_maintenance_runs_on_s3_and_leaves_what_the_table_needs(spark, lake, s3):
    namespace, catalog = lake("s3a", **s3.settings)
    table = f"{namespace}.t"
    name, short = table.partition(".")[0], table.partition(".")[2]
    spark.sql(f"CREATE TABLE {table} (id BIGINT)")
    for number in range(3):
        spark.sql(f"INSERT INTO {table} VALUES ({number})")
    ours = catalog.load_table(short)
    orphan = f"{ours.location()}/data/left.parquet"
    # another engine's name of the same bucket
    ours.io.create(orphan.replace("s3a:", "s3:"), b"nobody's")

    def call(procedure, more):
        return _rows(spark, f"CALL {name}.system.{procedure}(table => '{short}', {more})")

    (rewritten,) = call("rewrite_data_files", "options => map('rewrite-all', 'true')")
    assert rewritten[:2] == (3, 1)
    call("expire_snapshots", "older_than => TIMESTAMP '2100-01-01 00:00:00', retain_last => 1")
    # as if all were written long ago
    listed = [(each.location,) for each in ours.io.list(ours.location())]
    old = spark.createDataFrame(listed, "file_path STRING")
    old.selectExpr("*", "TIMESTAMP '2020-01-01' AS last_modified").createOrReplaceTempView("old")
    assert len(listed) > 3
    assert call("remove_orphan_files", "file_list_view => 'old'") == [(orphan,)]
    assert not ours.io.exists(orphan)
    assert sorted(_rows(spark, f"SELECT * FROM {table}")) == [(0,), (1,), (2,)]
    location = ours.location()
    spark.sql(f"DROP TABLE {table} PURGE")
    assert list(ours.io.list(location)) == []


@pytest.mark.full("the names are made by one function, tested plainly")
def test_a_hash_stands_before_the_names_of_files_that_spark_and_python_write(spark, lake, s3):
    namespace, catalog = lake("s3", **s3.settings)
    table = f"{namespace}.t"
    spark.sql(
        f"CREATE TABLE {table} (id BIGINT) TBLPROPERTIES ('write.object-storage.enabled'='true')"
    )
    spark.sql(f"INSERT INTO {table} VALUES (1)")
    ours = catalog.load_table(table.partition(".")[2])
    ours.append(ours.scan().to_arrow())
    files = [row[0] for row in _rows(spark, f"SELECT file_path FROM {table}.files")]
    assert len(files) == 2
    for file in files:
        inner = file.removeprefix(f"{ours.location()}/data/").split("/")
        assert [len(part) for part in inner[:4]] == [4, 4, 4, 8]
        assert set("".join(inner[:4])) <= {"0", "1"}
    assert _rows(spark, f"SELECT count(*) FROM {table}") == [(2,)]


def test_a_task_that_fails_leaves_no_file_on_s3(spark, lake, s3):
    namespace, catalog = lake("s3", **s3.settings)
    spark.sql(f"CREATE TABLE {namespace}.t (id BIGINT)")
    with pytest.raises(PySparkException, match="in the midst"):
        spark.sql(
            f"INSERT INTO {namespace}.t "
            "SELECT IF(id = 49999, raise_error('in the midst'), id) FROM range(0, 50000, 1, 1)"
        )
    ours = catalog.load_table(f"{namespace}.t".partition(".")[2])
    assert list(ours.io.list(f"{ours.location()}/data")) == []
    uploads = s3.client().list_multipart_uploads(Bucket=ours.location().split("/")[2])
    assert uploads.get("Uploads", []) == []


@pytest.mark.full("the same stream on local files is in the gate")
def test_a_stream_reads_and_writes_tables_on_s3(spark, lake, s3, tmp_path):
    namespace, _ = lake("s3", **s3.settings)
    spark.sql(f"CREATE TABLE {namespace}.source (id BIGINT)")
    spark.sql(f"CREATE TABLE {namespace}.sink (id BIGINT)")
    spark.sql(f"INSERT INTO {namespace}.source SELECT * FROM range(5)")
    stream = spark.readStream.table(f"{namespace}.source").writeStream
    stream = stream.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True)
    stream.toTable(f"{namespace}.sink").awaitTermination()
    assert _rows(spark, f"SELECT count(*), sum(id) FROM {namespace}.sink") == [(5, 10)]


@pytest.mark.full("what hides keys is tested plainly")
def test_keys_are_in_no_plan_and_no_error(spark, lake, s3):
    namespace, _ = lake("s3", **s3.settings)
    spark.sql(f"CREATE TABLE {namespace}.t (id BIGINT)")
    spark.sql(f"INSERT INTO {namespace}.t VALUES (1)")
    said = [str(_rows(spark, f"EXPLAIN EXTENDED SELECT * FROM {namespace}.t WHERE id > 0"))]
    said += [str(_rows(spark, f"DESCRIBE TABLE EXTENDED {namespace}.t"))]
    said += [str(_rows(spark, f"SHOW TBLPROPERTIES {namespace}.t"))]
    (file,) = _rows(spark, f"SELECT file_path FROM {namespace}.t.files")
    bucket, _, key = file[0].removeprefix("s3://").partition("/")
    s3.client().delete_object(Bucket=bucket, Key=key)
    with pytest.raises((PySparkException, Py4JJavaError)) as caught:
        spark.sql(f"SELECT * FROM {namespace}.t").collect()
    said.append(str(caught.value))
    assert key in said[-1]
    for each in said:
        assert SECRET not in each
        assert KEY not in each
