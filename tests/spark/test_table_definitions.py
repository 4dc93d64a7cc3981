"""CREATE and DROP TABLE: what they say, that Iceberg Java understands it so, and that it can be said again."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pytest
from pyspark.errors import (
    AnalysisException,
    IllegalArgumentException,
    UnsupportedOperationException,
)

pytestmark = pytest.mark.usefixtures("own_namespace")

NAMESPACE = "definition_tests"


def load(catalog, table):
    return catalog.load_table(f"{NAMESPACE}.{table}")


def test_older_names_of_transforms_and_file_formats_mean_what_they_mean_to_iceberg_java(
    spark, catalog, iceberg_java
):
    for kind in ("parquet", "orc", "avro"):
        columns = (
            f"(id BIGINT, a TIMESTAMP, b TIMESTAMP) USING {kind} "
            "PARTITIONED BY (date(a), date_hour(b))"
        )
        spark.sql(f"CREATE TABLE lake.{NAMESPACE}.ours_{kind} {columns}")
        iceberg_java.sql(f"CREATE TABLE ice.{NAMESPACE}.theirs_{kind} {columns}")
        ours, theirs = (load(catalog, f"{whose}_{kind}").metadata for whose in ("ours", "theirs"))
        assert ours.spec() == theirs.spec()
        key = "write.format.default"
        assert ours.properties[key] == theirs.properties[key] == kind


@pytest.mark.parametrize(
    "clauses",
    [
        "STORED AS ORC",
        "STORED AS INPUTFORMAT 'a' OUTPUTFORMAT 'b'",
        "ROW FORMAT DELIMITED FIELDS TERMINATED BY ',' STORED AS TEXTFILE",
        "ROW FORMAT SERDE 'org.apache.hadoop.hive.serde2.OpenCSVSerde'",
        "PARTITIONED BY (k) CLUSTERED BY (id) INTO 4 BUCKETS",
        "USING iceberg OPTIONS (a 'b', 'write.target-file-size-bytes' = '1048576')",
        "USING iceberg OPTIONS (a 'b') TBLPROPERTIES (c 'd', 'option.c' 'd', 'option.e' 'f')",
    ],
)
def test_clauses_of_hive_and_options_mean_what_they_mean_to_iceberg_java(
    spark, catalog, iceberg_java, clauses
):
    for run, name in ((spark.sql, "lake"), (iceberg_java.sql, "ice")):
        run(f"CREATE TABLE {name}.{NAMESPACE}.of_hive_{name} (id INT, k STRING) {clauses}")
    ours, theirs = (load(catalog, f"of_hive_{name}").metadata for name in ("lake", "ice"))
    for name in ("lake", "ice"):
        spark.sql(f"DROP TABLE lake.{NAMESPACE}.of_hive_{name}")
    assert ours.spec() == theirs.spec()
    assert dict(ours.properties) == dict(theirs.properties)
    assert ("option.a" in ours.properties) == ("OPTIONS" in clauses)


def test_buckets_that_are_sorted_are_refused_as_by_iceberg_java(spark, iceberg_java):
    text = "(id INT, k STRING) CLUSTERED BY (id) SORTED BY (k) INTO 4 BUCKETS"
    with pytest.raises(UnsupportedOperationException, match=r"sorted_bucket(?s:.*)hint: "):
        spark.sql(f"CREATE TABLE lake.{NAMESPACE}.sorted {text}")
    with pytest.raises(AssertionError, match="sorted_bucket"):
        iceberg_java.sql(f"CREATE TABLE ice.{NAMESPACE}.sorted {text}")


def test_what_show_create_table_prints_makes_the_same_table_again(spark, catalog):
    name = f"lake.{NAMESPACE}.shown"
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT NOT NULL COMMENT 'the ''key''', `a.b` STRING, ts TIMESTAMP, "
        "n TIMESTAMP_NTZ, s STRUCT<x: INT NOT NULL COMMENT 'in', y: ARRAY<MAP<STRING, DATE>>>) "
        "USING iceberg OPTIONS (o 'p') PARTITIONED BY (s.x, days(ts), bucket(4, id), truncate(3, `a.b`), bucket(2, n)) "
        "COMMENT 'it''s shown' TBLPROPERTIES ('write.delete.mode'='merge-on-read', 'quote'='it''s')"
    )
    spark.sql(f"INSERT INTO {name} VALUES (1, 'x', NULL, NULL, NULL)")
    before = load(catalog, "shown").metadata
    [(text,)] = spark.sql(f"SHOW CREATE TABLE {name}").collect()
    spark.sql(f"DROP TABLE {name} PURGE")
    spark.sql(text)
    after = load(catalog, "shown").metadata
    assert after.schema().as_struct() == before.schema().as_struct()
    assert after.spec() == before.spec()
    assert after.properties == before.properties
    assert after.location == before.location


def files(location):
    return [f for f in Path(urlsplit(location).path).rglob("*") if f.is_file()]


def test_purging_deletes_the_files_and_is_refused_where_others_may_need_them(spark, catalog):
    name = f"lake.{NAMESPACE}.purged"
    spark.sql(f"CREATE TABLE {name} (id INT) TBLPROPERTIES ('gc.enabled'='false')")
    spark.sql(f"INSERT INTO {name} VALUES (1)")
    location = load(catalog, "purged").metadata.location
    before = files(location)
    with pytest.raises(IllegalArgumentException, match=r"gc\.enabled is false"):
        spark.sql(f"DROP TABLE {name} PURGE")
    assert (files(location), spark.table(name).count()) == (before, 1)
    spark.sql(f"ALTER TABLE {name} UNSET TBLPROPERTIES ('gc.enabled')")
    spark.sql(f"DROP TABLE {name} PURGE")
    assert not catalog.table_exists(f"{NAMESPACE}.purged")
    assert [f for f in files(location) if not f.name.startswith(".")] == []
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.sql(f"DROP TABLE {name} PURGE")


@pytest.mark.parametrize("key", ["sort-order", "identifier-fields"])
def test_reserved_properties_are_refused_as_by_iceberg_java(spark, iceberg_java, key):
    for side, run in (("lake", spark.sql), ("ice", iceberg_java.sql)):
        run(f"CREATE TABLE IF NOT EXISTS {side}.{NAMESPACE}.{side}_reserved (id INT) USING iceberg")
        with pytest.raises((UnsupportedOperationException, AssertionError), match="reserved"):
            run(f"ALTER TABLE {side}.{NAMESPACE}.{side}_reserved SET TBLPROPERTIES ('{key}'='id')")
