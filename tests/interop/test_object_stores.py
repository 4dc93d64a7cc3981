"""Tables on S3, on one metastore, by several engines: each names the bucket's scheme as it is used to."""

from __future__ import annotations

import uuid

import pyarrow as pa
import pytest

from icecomb.catalog.hive.catalog import HiveCatalog

pytestmark = pytest.mark.full("Iceberg Java in a second Spark")

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "k": ["a", "b", "a"]})


@pytest.fixture(scope="module")
def bucket(s3):
    return s3.bucket()


@pytest.fixture(scope="module")
def lake(metastore, s3, bucket):
    place = {"uri": metastore.uri, "warehouse": f"s3a://{bucket}/wh"}
    with HiveCatalog("lake", {**place, **s3.settings}) as catalog:
        yield catalog


@pytest.fixture(scope="module")
def java(iceberg_java, metastore, s3, bucket):
    """Iceberg Java's Hive catalog ``ice_s3`` with its own client of S3; runs statements."""
    catalog = "spark.sql.catalog.ice_s3"
    settings = {
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.type": "hive",
        f"{catalog}.uri": metastore.uri,
        f"{catalog}.warehouse": f"s3://{bucket}/wh",
        f"{catalog}.io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        f"{catalog}.cache-enabled": "false",
        f"{catalog}.s3.path-style-access": "true",
        f"{catalog}.client.region": s3.settings["s3.region"],
        **{f"{catalog}.{key}": value for key, value in s3.settings.items()},
    }
    for key, value in settings.items():
        iceberg_java.sql(f"SET `{key}`=`{value}`")
    return iceberg_java.sql


@pytest.fixture(scope="module")
def python(metastore, s3, bucket):
    """PyIceberg, with Arrow's client of S3."""
    from pyiceberg.catalog import load_catalog

    place = {"uri": metastore.uri, "warehouse": f"s3://{bucket}/wh"}
    return load_catalog(
        "peer", type="hive", **place, ugi=f"tests:{metastore.secret}", **s3.settings
    )


@pytest.fixture
def name(lake):
    namespace = f"n{uuid.uuid4().hex[:10]}"
    lake.create_namespace(namespace)
    return f"{namespace}.t"


def _ids(table):
    return sorted(table.scan().to_arrow()["id"].to_pylist())


def test_what_we_write_on_s3_others_read_and_change(lake, java, python, name):
    ours = lake.create_table(name, ROWS.schema, properties={"format-version": "2"})
    assert ours.location().startswith("s3a://")
    ours.append(ROWS)
    ours.delete("id = 2")
    assert java(f"SELECT id FROM ice_s3.{name} ORDER BY id") == [[1], [3]]
    assert _ids(python.load_table(name)) == [1, 3]

    java(f"INSERT INTO ice_s3.{name} VALUES (10, 'java')")
    python.load_table(name).append(ROWS.slice(1, 1))
    java(f"ALTER TABLE ice_s3.{name} SET TBLPROPERTIES ('write.delete.mode'='merge-on-read')")
    java(f"DELETE FROM ice_s3.{name} WHERE id = 3")
    assert _ids(ours.refresh()) == [1, 2, 10]


def test_what_others_make_on_s3_we_read_change_and_tidy(lake, java, python, name):
    java(f"CREATE TABLE ice_s3.{name} (id BIGINT, k STRING) USING iceberg PARTITIONED BY (k)")
    java(f"INSERT INTO ice_s3.{name} VALUES (1, 'a'), (2, 'b')")
    ours = lake.load_table(name)
    # the namespace is ours, and so is the name of its bucket
    assert ours.location().startswith("s3a://")
    ours.append(ROWS)
    ours.delete("id = 2")
    second = f"{name.partition('.')[0]}.u"
    theirs = python.create_table(second, ROWS.schema)
    theirs.append(ROWS)
    lake.load_table(second).overwrite(ROWS.slice(0, 1))
    assert _ids(theirs.refresh()) == [1]
    for _ in range(2):
        found = java(f"SELECT id, k FROM ice_s3.{name} ORDER BY id, k")
        assert found == [[1, "a"], [1, "a"], [3, "a"]]
        ours.refresh().maintenance.rewrite_data_files(options={"rewrite-all": "true"})


def test_one_table_that_several_schemes_name_loses_no_file(lake, java, s3, bucket, name):
    """Java's catalog says s3:, the table's location s3a:; orphans are nobody's files by any name."""
    ours = lake.create_table(name, ROWS.schema)
    ours.append(ROWS)
    location = ours.location()
    java(f"ALTER TABLE ice_s3.{name} SET LOCATION '{location.replace('s3a://', 's3://')}'")
    java(f"INSERT INTO ice_s3.{name} VALUES (10, 'java')")
    ours.refresh().append(ROWS)
    files = {task.file.file_path.partition(":")[0] for task in ours.scan().plan_files()}
    assert files == {"s3", "s3a"}
    found = ours.maintenance.remove_orphan_files(dry_run=True)
    assert list(found.orphan_file_location) == []
    lake.purge_table(name)
    client = s3.client()
    key = location.removeprefix(f"s3a://{bucket}/")
    left = client.list_objects_v2(Bucket=bucket, Prefix=f"{key}/").get("Contents", [])
    assert [each["Key"] for each in left if not each["Key"].endswith("/")] == []
