"""session() and configure(): what they give, and what they say when Spark cannot be given it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from icecomb.spark.conf import SECRETS

_SMALL = """{
    "spark.master": "local[2]",
    "spark.driver.memory": "512m",
    "spark.ui.enabled": "false",
}"""


def _run(code):
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd="/",
        check=False,
        timeout=500,
    )


@pytest.mark.full("starts a Spark of its own")
@pytest.mark.jvm
def test_a_spark_that_already_runs_without_the_jar_is_told_apart_at_once():
    done = _run(
        f"""
from pyspark.sql import SparkSession
builder = SparkSession.builder
for key, value in {_SMALL}.items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
import icecomb.spark
from icecomb.format.errors import ConfigurationError
for stopped in (False, True):
    try:
        icecomb.spark.session(uri="thrift://127.0.0.1:1")
    except ConfigurationError as error:
        print(error.message)
    if not stopped:
        spark.stop()
"""
    )
    message = "Spark is already running without icecomb's jar on its class path\n"
    assert done.stdout == 2 * message, done.stderr[-3000:]


def test_a_running_session_takes_a_second_catalog_but_not_another_one_of_the_same_name(
    spark, metastore
):
    import icecomb.spark
    from icecomb.format.errors import ConfigurationError

    second = icecomb.spark.session("second", uri=metastore.uri, warehouse=str(metastore.warehouse))
    assert second.sparkContext.applicationId == spark.sparkContext.applicationId
    names = {row.namespace for row in second.sql("SHOW NAMESPACES IN second").collect()}
    assert "default" in names
    with pytest.raises(ConfigurationError, match="another catalog 'lake'"):
        icecomb.spark.session("lake", uri="thrift://127.0.0.1:1")


def test_a_metastore_that_cannot_be_reached_is_one_clear_error(spark):
    from pyspark.errors import PySparkException

    import icecomb.spark

    icecomb.spark.session("nowhere", uri="thrift://127.0.0.1:1")
    with pytest.raises(PySparkException, match=r"127\.0\.0\.1:1") as error:
        spark.sql("SHOW NAMESPACES IN nowhere").collect()
    assert "Traceback" not in str(error.value)


@pytest.mark.jvm  # the bridge is compiled
def test_configure_keeps_the_jars_and_settings_of_the_builder():
    done = _run(
        """
from pyspark.sql import SparkSession
import icecomb.spark
builder = SparkSession.builder.config("spark.jars", "/a.jar").config("spark.x", "1")
builder = builder.config("spark.sql.extensions", "a.Extensions")
icecomb.spark.configure(builder, "ice", uri="thrift://h:1")
icecomb.spark.configure(builder, "two", uri="thrift://h:2")
options = builder._options
jars = options["spark.jars"].split(",")
print(jars[0], len(jars), options["spark.x"], options["spark.sql.catalog.ice.uri"])
print(options["spark.sql.extensions"])
"""
    )
    assert done.stdout == (
        "/a.jar 2 1 thrift://h:1\na.Extensions,org.icecomb.spark.IcecombSessionExtensions\n"
    ), done.stderr


@pytest.mark.full("starts two Sparks of its own")
@pytest.mark.jvm
@pytest.mark.parametrize("is_set", [False, True])
def test_a_driver_without_a_cluster_serves_nobody_else(is_set, tmp_path):
    given = {"spark.authenticate": "false", "spark.ui.enabled": "true"} if is_set else {}
    if is_set:
        given["spark.driver.extraJavaOptions"] = f"-Djava.io.tmpdir={tmp_path}"
    done = _run(
        f"""
import os, stat
os.environ["SPARK_SUBMIT_OPTS"] = "-Dx.given=yes"
import icecomb.spark
settings = {_SMALL}
del settings["spark.ui.enabled"]
spark = icecomb.spark.session("ice", uri="thrift://127.0.0.1:1", **settings, **{given})
conf = spark.sparkContext.getConf()
for key in ("authenticate", "driver.host", "driver.bindAddress", "ui.enabled"):
    print(conf.get(f"spark.{{key}}"))
folder = conf.get("spark.local.dir")
print(stat.S_IMODE(os.stat(folder).st_mode) == 0o700, len(os.listdir(folder)) > 0)
print(spark.range(100).repartition(3).count())
java = spark._jvm.java.lang.System
print(java.getProperty("java.io.tmpdir").replace(folder, "private"), java.getProperty("x.given"))
print(any("lz4" in each for each in os.listdir(folder)), os.environ["SPARK_SUBMIT_OPTS"])
spark.stop()
"""
    )
    told = [given.get(f"spark.{key}") for key in ("authenticate", "ui.enabled")]
    expected = [told[0] or "true", "127.0.0.1", "127.0.0.1", told[1] or "false", "True True", "100"]
    expected += [f"{tmp_path if is_set else 'private'} yes", f"{not is_set} -Dx.given=yes"]
    assert done.stdout.splitlines() == expected, done.stderr[-3000:]


@pytest.mark.full("starts a Spark of its own, which has Spark Connect")
@pytest.mark.jvm
def test_a_local_server_of_spark_connect_has_no_other_open_port():
    done = _run(
        f"""
import os
os.environ["SPARK_TESTING"] = "1"  # any free port
import icecomb.spark
settings = {_SMALL}
del settings["spark.ui.enabled"]
settings["spark.remote"] = settings.pop("spark.master")
spark = icecomb.spark.session("ice", uri="thrift://127.0.0.1:1", **settings)
print(spark.range(100).repartition(3).count())
from pyspark import SparkContext
conf = SparkContext._active_spark_context.getConf()
for key in ("authenticate", "driver.host", "driver.bindAddress", "ui.enabled"):
    print(conf.get(f"spark.{{key}}"))
temporary = SparkContext._jvm.java.lang.System.getProperty("java.io.tmpdir")
print(conf.get("spark.local.dir") == temporary, oct(os.stat(temporary).st_mode))
spark.stop()
"""
    )
    expected = ["100", "true", "127.0.0.1", "127.0.0.1", "false", "True 0o40700"]
    assert done.stdout.splitlines() == expected, done.stderr[-3000:]


@pytest.mark.full("starts two Sparks of its own")
@pytest.mark.jvm
@pytest.mark.parametrize("regex", [None, "mine"])
def test_secrets_are_on_no_command_line_and_spark_hides_them(regex):
    done = _run(
        f"""
import os, subprocess
from pyspark.sql import SparkSession
import icecomb.spark
builder = SparkSession.builder
for key, value in {_SMALL}.items():
    builder = builder.config(key, value)
if {regex!r}:
    builder = builder.config("spark.redaction.regex", {regex!r})
secret = {{"adls.account-key": "c2Vj" + "cmV0LW1hcmtlcg=="}}
icecomb.spark.configure(builder, "ice", uri="thrift://127.0.0.1:1", **secret)
builder = builder.config("spark.hadoop.fs.s3a.secret.key", "hadoop-secret")
builder = builder.config("spark.sql.catalog.ice.s3.proxy-uri", "http://me:in-address@proxy:1")
builder = builder.config("spark.executorEnv.AWS_SECRET_ACCESS_KEY", "hadoop-secret")
spark = builder.config("spark.sql.catalog.ice.s3.session-token", "secret-marker").getOrCreate()
ours = subprocess.check_output(["ps", "-ww", "-o", "args", "--ppid", str(os.getpid())], text=True)
(command,) = [each for each in ours.splitlines() if "spark.sql.catalog.ice.uri=" in each]
markers = ("c2VjcmV0LW1hcmtlcg", "secret-marker", "hadoop-secret", "in-address")
print(*(each in command for each in markers))
print(spark.conf.get("spark.sql.catalog.ice.s3.proxy-uri"))
print(spark.sparkContext._jsc.hadoopConfiguration().get("fs.s3a.secret.key"))
for session in (spark, spark.newSession()):
    print(session.conf.get("spark.sql.catalog.ice.adls.account-key"),
          session.conf.get("spark.sql.catalog.ice.s3.session-token"))
conf = spark.sparkContext.getConf()
print(conf.get("spark.redaction.regex"), conf.get("spark.driver.memory"))
spark.stop()
"""
    )
    told = "c2VjcmV0LW1hcmtlcg== secret-marker\n"
    expected = f"False False False False\nhttp://me:in-address@proxy:1\nhadoop-secret\n{2 * told}{regex or SECRETS} 512m\n"
    assert done.stdout == expected, done.stderr[-3000:]


def test_without_pyspark_the_error_says_how_to_install_it():
    done = _run(
        """
import sys
sys.modules["pyspark"] = sys.modules["pyspark.sql"] = None
import icecomb.spark
from icecomb.format.errors import MissingDependencyError
try:
    icecomb.spark.session()
except MissingDependencyError as error:
    print(error)
"""
    )
    assert "pip install 'icecomb[spark]'" in done.stdout, done.stderr


@pytest.mark.jvm  # the bridge is compiled
def test_what_takes_long_is_said_where_a_session_is_asked_for_and_nowhere_else(
    tmp_path, monkeypatch, capfd
):
    from pyspark.sql import SparkSession

    from icecomb.catalog.java import compile_jar
    from icecomb.spark import application

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    source = tmp_path / "Small.java"
    source.write_text("class Small {}")
    conf = dict.fromkeys(("spark.jars",), "/none.jar")

    def compiling(key):
        compile_jar([source], "", "small", key)
        return conf

    monkeypatch.setattr(application, "spark_conf", lambda *_, **__: compiling("1"))
    monkeypatch.setattr(application, "_check_running", lambda *_: None)
    application.configure(SparkSession.Builder(), "lake")
    assert capfd.readouterr().err.startswith("icecomb: compiling small.jar, once")
    application.configure(SparkSession.Builder(), "lake")
    compiling("2")
    assert not capfd.readouterr().err
