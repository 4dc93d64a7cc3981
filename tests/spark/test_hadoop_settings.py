"""Spark's Hadoop configuration reaches the planner and Spark's tasks, and is not shown."""

from __future__ import annotations

import contextlib
import sys
import uuid
from pathlib import Path

import pytest

from icecomb.catalog import load_catalog
from icecomb.catalog.configuration.configuration import load_configuration
from icecomb.format.private_path import open_part
from icecomb.spark.conf import CATALOG_CLASS
from icecomb.spark.planner.protocol.catalogs import Environment, Identity, OpenCatalog
from tests.rings import sampled


def nameservice(name, hdfs):
    """A nameservice for the cluster: nobody knows its name but from these settings."""
    provider = "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"
    return {
        "dfs.nameservices": name,
        f"dfs.ha.namenodes.{name}": "nn1",
        f"dfs.namenode.rpc-address.{name}.nn1": f"127.0.0.1:{hdfs.rpc['nn1']}",
        f"dfs.namenode.http-address.{name}.nn1": f"127.0.0.1:{hdfs.http['nn1']}",
        f"dfs.client.failover.proxy.provider.{name}": provider,
        "fs.defaultFS": f"hdfs://{name}",
    }


@contextlib.contextmanager
def _hadoop_configuration(spark, settings):
    """What ``spark.hadoop.*`` sets as Spark starts, and the site files on its class path."""
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    before = {key: conf.getRaw(key) for key in settings}
    for key, value in settings.items():
        conf.set(key, value)
    yield
    for key, value in before.items():
        conf.unset(key) if value is None else conf.set(key, value)


def test_files_on_their_way_to_a_store_are_where_nobody_else_can_exchange_them(spark):
    key = "hadoop.tmp.dir"
    spark.newSession().sql("SHOW NAMESPACES IN lake").collect()
    folder = Path(spark.sparkContext._jsc.hadoopConfiguration().get(key))
    assert folder.is_dir()
    assert open_part(folder) is None
    with _hadoop_configuration(spark, {key: "/mine"}):
        spark.newSession().sql("SHOW NAMESPACES IN lake").collect()
        assert spark.sparkContext._jsc.hadoopConfiguration().get(key) == "/mine"


@pytest.mark.parametrize("way", sampled(["of the application", "of the catalog"], keep=1))
def test_a_name_node_is_known_by_sparks_settings_alone(spark, hdfs, way):
    name = f"ns{uuid.uuid4().hex[:8]}"
    warehouse = f"hdfs://{name}/warehouse/{uuid.uuid4().hex}"
    settings = nameservice(name, hdfs)
    of_application, of_catalog = (settings, {}) if way == "of the application" else ({}, settings)
    session = spark.newSession()
    catalog = f"settings_{name}"
    prefix = f"spark.sql.catalog.{catalog}"
    session.conf.set(prefix, CATALOG_CLASS)
    options = {"type": "hadoop", "warehouse": warehouse, "python": sys.executable}
    options |= {f"hadoop.{key}": value for key, value in of_catalog.items()}
    for key, value in options.items():
        session.conf.set(f"{prefix}.{key}", value)
    with _hadoop_configuration(spark, of_application):
        session.sql(f"CREATE NAMESPACE {catalog}.db")
        session.sql(f"CREATE TABLE {catalog}.db.t (id BIGINT, part STRING) PARTITIONED BY (part)")
        session.sql(f"INSERT INTO {catalog}.db.t SELECT id, 'p' || id % 3 FROM range(10)")
        session.sql(f"DELETE FROM {catalog}.db.t WHERE id = 4")
        rows = session.sql(f"SELECT sum(id), count(*) FROM {catalog}.db.t").collect()
    assert [tuple(row) for row in rows] == [(41, 9)]
    # the same files, by a reader that is told all that by itself
    files = load_catalog("files", type="hadoop", warehouse=warehouse, **settings)
    assert sorted(files.load_table("db.t").scan().to_arrow()["id"].to_pylist()) == [
        *(0, 1, 2, 3, 5, 6, 7, 8, 9)
    ]


def test_a_metastore_is_known_by_a_system_property_as_to_hive(spark, metastore):
    session = spark.newSession()
    catalog = f"property_{uuid.uuid4().hex[:8]}"
    prefix = f"spark.sql.catalog.{catalog}"
    session.conf.set(prefix, CATALOG_CLASS)
    options = {"type": "hive", "python": sys.executable}
    options |= {f"hadoop.{key}": value for key, value in metastore.client_settings.items()}
    for key, value in options.items():
        session.conf.set(f"{prefix}.{key}", value)
    system = spark.sparkContext._jvm.java.lang.System
    before = system.setProperty("hive.metastore.uris", metastore.uri)
    try:
        with _hadoop_configuration(spark, {"hive.metastore.uris": ""}):
            shown = session.sql(f"SHOW NAMESPACES IN {catalog}").collect()
    finally:
        if before is None:
            system.clearProperty("hive.metastore.uris")
        else:
            system.setProperty("hive.metastore.uris", before)
    assert "default" in {row[0] for row in shown}


def test_sparks_settings_go_before_the_cluster_files_of_the_planners_host(tmp_path):
    (tmp_path / "core-site.xml").write_text(
        "<configuration><property><name>fs.defaultFS</name><value>hdfs://old</value></property>"
        "<property><name>dfs.nameservices</name><value>old</value></property></configuration>"
    )
    (tmp_path / "hive-site.xml").write_text(
        "<configuration><property><name>hive.metastore.uris</name><value>thrift://old:1</value>"
        "</property></configuration>"
    )
    environment = {"HADOOP_CONF_DIR": str(tmp_path), "HIVE_CONF_DIR": str(tmp_path)}
    of_spark = {
        "fs.defaultFS": "hdfs://new",
        "fs.s3a.secret.key": "TOP",
        "hive.metastore.uris": "thrift://new:1",
        "iceberg.hive.lock-timeout-ms": "7",
        "yarn.something": "of others",
    }
    own = {"iceberg.hive.lock-timeout-ms": "8"}
    found = load_configuration("lake", own, environment, hadoop=of_spark)
    assert found.properties == {
        "fs.defaultFS": "hdfs://new",
        "dfs.nameservices": "old",
        "fs.s3a.secret.key": "TOP",
        "hive.metastore.uris": "thrift://new:1",
        "uri": "thrift://new:1",
        "iceberg.hive.lock-timeout-ms": "8",
    }
    assert "TOP" not in str(list(found.sources)) + repr(found.properties)
    files = load_configuration("lake", {"type": "hadoop"}, environment, hadoop=of_spark)
    assert "uri" not in files.properties


def test_neither_settings_nor_tokens_are_shown_with_a_request():
    environment = Environment(None, "a1", "4.3.0", {"fs.s3a.secret.key": "TOP"})
    identity = Identity("me", None, login=True, secured=False, tokens=("TOP",))
    request = OpenCatalog("lake", {"hadoop.fs.s3a.secret.key": "TOP"}, environment, identity)
    assert "TOP" not in repr(request)
    assert "a1" in repr(request)
