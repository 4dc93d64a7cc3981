"""The configuration that puts the catalog into a Spark application."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from icecomb.catalog.configuration import catalog_property
from icecomb.catalog.configuration.configuration import load_configuration
from icecomb.catalog.loading import catalog_of
from icecomb.format.errors import ConfigurationError
from icecomb.format.property.property import Property
from icecomb.format.secret import is_secret
from icecomb.format.storage import storage_property
from icecomb.spark.conf import (
    CATALOG_CLASS,
    SECRETS,
    SESSION_CATALOG_CLASS,
    command_lines,
    is_secret as is_secret_setting,
    spark_conf,
)
from icecomb.spark.planner.protocol.catalogs import Environment, Identity, OpenCatalog
from icecomb.spark.planner.table.catalogs import Catalogs, catalog_properties, strange_names

JAR = Path("/jars/b.jar")


def test_a_catalog_needs_its_class_the_jar_and_a_python():
    assert spark_conf(jar=JAR) == {
        "spark.jars": "/jars/b.jar",
        "spark.sql.extensions": "org.icecomb.spark.IcecombSessionExtensions",
        "spark.sql.catalog.lake": CATALOG_CLASS,
        "spark.sql.catalog.lake.python": sys.executable,
    }


def test_a_driver_on_another_host_is_told_no_path_of_this_one():
    conf = spark_conf(jar=JAR, deploy_mode="cluster")
    assert conf["spark.sql.catalog.lake"] == CATALOG_CLASS
    assert sys.executable not in conf.values()
    assert "spark.sql.catalog.lake.python" not in conf
    packed = spark_conf(jar=JAR, deploy_mode="cluster", python="env/bin/python")
    assert packed["spark.sql.catalog.lake.python"] == "env/bin/python"
    with pytest.raises(ConfigurationError, match="no deploy mode 'clutser'"):
        spark_conf(jar=JAR, deploy_mode="clutser")


def test_options_go_to_the_catalog_under_its_name():
    conf = spark_conf("ice", uri="thrift://h:1", warehouse="/w", options={"x": "1"}, jar=JAR)
    prefix = "spark.sql.catalog.ice."
    found = {key[len(prefix) :]: value for key, value in conf.items() if key.startswith(prefix)}
    assert found == {"python": sys.executable, "uri": "thrift://h:1", "warehouse": "/w", "x": "1"}


def test_spark_hides_every_secret_that_there_is():
    known = [
        key
        for module in (storage_property, catalog_property)
        for each in vars(module).values()
        if isinstance(each, Property)
        for key in (each.key, *each.also)
    ]
    assert len(known) > 50
    secret = {*filter(is_secret, known), "ugi"}
    assert {"s3.secret-access-key", "adls.account-key", "adls.connection-string"} <= secret
    assert [each for each in secret if not re.search(SECRETS, f"spark.sql.catalog.x.{each}")] == []
    # Spark's own default, which this replaces
    for each in ("secret", "password", "token", "access.key", "accesskey"):
        assert re.search(SECRETS, f"spark.hadoop.{each.upper()}")
    plain = {"uri", "warehouse", "python", "type", "s3.endpoint", "debugi"}
    assert not [each for each in plain if re.search(SECRETS, f"spark.sql.catalog.lake.{each}")]
    assert spark_conf(jar=JAR, options={"ugi": "me:x"})["spark.redaction.regex"] == SECRETS
    assert "spark.redaction.regex" not in spark_conf(jar=JAR, options={"clients": "1"})
    # Spark looks at values, too
    login = {"s3.proxy-uri": "http://me:pass@proxy:3128"}
    assert spark_conf(jar=JAR, options=login)["spark.redaction.regex"] == SECRETS
    assert re.search(SECRETS, login["s3.proxy-uri"])
    for each in ("abfss://box@account.dfs.core.windows.net:443/w", "thrift://a:1,thrift://b@c:2"):
        assert not re.search(SECRETS, each)


def test_a_login_in_an_address_is_a_secret_but_where_spark_needs_it_to_start():
    address = "https://me:pass@host/x.jar"
    assert is_secret_setting("spark.sql.catalog.lake.s3.proxy-uri", address)
    assert is_secret_setting("spark.hadoop.fs.x.proxy", address)
    assert not is_secret_setting("spark.jars", address)
    assert not is_secret_setting("spark.sql.catalog.lake.s3.proxy-uri", "http://proxy:3128")


def test_no_setting_of_icecombs_own_is_taken_for_a_secret(metastore):
    conf = spark_conf(uri=metastore.uri, hive=True, jar=JAR)
    assert "spark.hadoop.hadoop.token.files" in conf
    assert "spark.redaction.regex" not in conf


def test_hive_support_gets_the_same_metastore():
    conf = spark_conf(uri="thrift://h:1", warehouse="/w", hive=True, jar=JAR)
    assert conf["spark.hadoop.hive.metastore.uris"] == "thrift://h:1"
    assert conf["spark.sql.catalogImplementation"] == "hive"
    assert conf["spark.sql.warehouse.dir"] == "/w"


def test_hive_support_finds_the_metastore_that_the_environment_names(monkeypatch):
    monkeypatch.setenv("ICECOMB_CATALOG__LAKE__URI", "thrift://elsewhere:9083")
    conf = spark_conf(hive=True, jar=JAR)
    assert conf["spark.hadoop.hive.metastore.uris"] == "thrift://elsewhere:9083"
    assert conf["spark.sql.catalog.lake.uri"] == "thrift://elsewhere:9083"


def test_a_relative_warehouse_means_the_folder_it_meant_here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert spark_conf(warehouse="w", jar=JAR)["spark.sql.catalog.lake.warehouse"] == f"{tmp_path}/w"
    kept = spark_conf(warehouse="hdfs://ns1/w", jar=JAR)
    assert kept["spark.sql.catalog.lake.warehouse"] == "hdfs://ns1/w"


@pytest.mark.parametrize("name", ["", "my lake", "a.b", "a-b"])
def test_a_name_sql_cannot_say_is_refused(name):
    with pytest.raises(ConfigurationError, match="name of a Spark catalog"):
        spark_conf(name, jar=JAR)


def test_the_lines_survive_a_shell():
    conf = {"spark.jars": "/a b/it's.jar", "k": "v"}
    lines = command_lines(conf)
    assert shlex.split(" ".join(lines)) == ["--conf", "spark.jars=/a b/it's.jar", "--conf", "k=v"]
    assert not any(line.endswith("\\") for line in lines)


@pytest.mark.parametrize(
    ("name", "options", "metastore", "found"),
    [
        ("lake", {}, None, {"type": "local"}),
        ("lake", {"warehouse": "/w"}, None, {"warehouse": "/w", "type": "local"}),
        ("lake", {"uri": "thrift://h:1"}, None, {"uri": "thrift://h:1"}),
        ("lake", {"type": "hadoop"}, "thrift://s:1", {"type": "hadoop"}),
        ("lake", {}, "thrift://s:1", {"uri": "thrift://s:1"}),
        ("lake", {"type": "hive"}, "thrift://s:1", {"type": "hive", "uri": "thrift://s:1"}),
        ("lake", {"type": "hive"}, None, {"type": "hive"}),
        ("lake", {"orc-enabled": "true", "default-namespace": "d"}, None, {"type": "local"}),
    ],
)
def test_a_catalog_of_spark_that_says_nothing_is_on_sparks_metastore_or_ones_own(
    name, options, metastore, found, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ICECOMB_HOME", str(tmp_path))
    environment = Environment(metastore, application_id="a1", spark_version="4.3.0", hadoop={})
    assert catalog_properties(name, {"python": "p", **options}, environment) == found


def test_an_option_of_a_catalog_of_spark_that_is_misspelt_is_refused():
    with pytest.raises(ConfigurationError, match="there is no setting 'url'"):
        catalog_properties("lake", {"url": "thrift://h:1"}, Environment(None, "a1", "4.3.0", {}))


def test_a_catalog_says_which_of_its_namespaces_a_session_begins_in(tmp_path):
    place = {"type": "hadoop", "warehouse": str(tmp_path)}
    catalogs = Catalogs()
    opened = [
        catalogs.open_catalog(
            OpenCatalog(
                "lake",
                {**place, **more},
                Environment(None, "a", "4.3.0", {}),
                Identity("me", None, login=True, secured=False, tokens=()),
            )
        )
        for more in ({}, {"default-namespace": "sales"})
    ]
    assert [each.default_namespace for each in opened] == [("default",), ("sales",)]
    assert opened[0].catalog == opened[1].catalog


OURS = Environment("thrift://h:1", "a1", "4.3.0", {})


def test_the_session_catalog_comes_with_sparks_hive_support_on_the_same_metastore():
    conf = spark_conf(uri="thrift://h:1", session_catalog=True, options={"clients": "4"}, jar=JAR)
    own = {key: value for key, value in conf.items() if "catalog.spark_catalog" in key}
    assert own == {
        "spark.sql.catalog.spark_catalog": SESSION_CATALOG_CLASS,
        "spark.sql.catalog.spark_catalog.python": sys.executable,
        "spark.sql.catalog.spark_catalog.clients": "4",
    }
    assert conf["spark.sql.catalog.lake"] == CATALOG_CLASS
    assert conf["spark.sql.catalogImplementation"] == "hive"
    assert conf["spark.hadoop.hive.metastore.uris"] == "thrift://h:1"
    alone = spark_conf("spark_catalog", uri="thrift://h:1", jar=JAR)
    assert alone["spark.sql.catalog.spark_catalog"] == SESSION_CATALOG_CLASS
    assert CATALOG_CLASS not in alone.values()


@pytest.mark.parametrize(
    "options",
    [
        {"cache-enabled": "false", "cache.expiration-interval-ms": "0"},
        {"use-nullable-query-schema": "false", "rest-catalog-purge": "true"},
        {"io-impl": "org.apache.iceberg.hadoop.HadoopFileIO", "client-pool-cache-keys": "ugi"},
        {"io-impl": "org.apache.iceberg.aws.s3.S3FileIO"},
        {"metrics-reporter-impl": "org.apache.iceberg.metrics.LoggingMetricsReporter"},
        {"parquet-enabled": "false", "hadoop.fs.x.y": "1"},
    ],
)
def test_options_of_iceberg_without_an_effect_on_answers_are_passed_over(options):
    found = catalog_properties("spark_catalog", options, OURS)
    assert found.pop("uri") == "thrift://h:1"
    assert found == {key: value for key, value in options.items() if key.startswith("hadoop.")}
    assert strange_names(found) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"io-impl": "com.example.OurFileIO"}, "io-impl=.*OurFileIO names a Java class"),
        ({"metrics-reporter-impl": "com.example.R"}, "metrics-reporter-impl=.* names a Java class"),
        (
            {"catalog-impl": "org.apache.iceberg.rest.RESTCatalog"},
            "catalog-impl=.* names a Java class",
        ),
        ({"encryption.kms-impl": "com.example.Kms"}, "encryption.kms-impl=.* names a Java class"),
        ({"parquet-enabled": "true"}, "parquet-enabled=true has no effect: Spark makes tables"),
        ({"uri": "thrift://other:1"}, "on the metastore thrift://other:1, Spark's own .*://h:1"),
        ({"hadoop.hive.metastore.uris": "thrift://o:1"}, "would be another metastore than that"),
        ({"type": "local"}, "nothing says where the metastore of Spark's own"),
        ({"type": "rest"}, "there is no catalog type 'rest'"),
    ],
)
def test_an_option_that_cannot_be_honoured_is_refused_with_its_reason(options, message):
    with pytest.raises(ConfigurationError, match=message) as error:
        catalog_of(load_configuration("x", catalog_properties("spark_catalog", options, OURS)))
    assert error.value.hint


def test_a_session_catalog_without_a_metastore_starts_none_of_its_own():
    with pytest.raises(ConfigurationError, match="nothing says where the metastore"):
        catalog_properties("spark_catalog", {}, Environment(None, "a1", "4.3.0", {}))


@pytest.mark.parametrize("uri", ["thrift://H:1", "thrift://g:1, thrift://h:1/"])
def test_one_address_in_common_is_the_same_metastore(uri):
    assert catalog_properties("spark_catalog", {"uri": uri}, OURS)["uri"] == uri


def test_options_that_nothing_has_a_meaning_for_are_named(tmp_path, caplog):
    options = {"type": "hadoop", "warehouse": str(tmp_path), "acme.mode": "1", "s3.endpoint": "x"}
    identity = Identity("me", None, login=True, secured=False, tokens=())
    catalogs = Catalogs()
    for _ in range(2):
        catalogs.open_catalog(OpenCatalog("strange", options, OURS, identity))
    [record] = caplog.records
    assert record.getMessage() == "catalog strange: nothing here has a meaning for acme.mode"
