"""The ways to start Spark, each with the lines of `icecomb spark-conf` and nothing else."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import tarfile
from contextlib import ExitStack

import pytest

from icecomb.catalog.java import find_java
from icecomb.spark.conf import command_lines, spark_conf
from icecomb.spark.jar import spark_home
from tests.environments import ROOT, VENV
from tests.peers import spark_programs
from tests.peers.ports import free_ports
from tests.peers.standalone_spark import StandaloneSpark

pytestmark = [
    pytest.mark.jvm,
    pytest.mark.full("starts Spark in each way that users have, with clusters and servers"),
]

ARCHIVED_PYTHON = "env/bin/python"
JOB = """
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.sql("CREATE TABLE lake.{namespace}.t (id BIGINT, part STRING) PARTITIONED BY (part)")
spark.sql("INSERT INTO lake.{namespace}.t SELECT id, 'p' || id % 2 FROM range(0, 100, 1, 2)")
spark.sql("DELETE FROM lake.{namespace}.t WHERE id % 10 = 3")
print("ANSWER", spark.sql("SELECT count(*), sum(id) FROM lake.{namespace}.t").first())
"""


@pytest.fixture(scope="module")
def place(metastore):
    return {"uri": metastore.uri, "warehouse": str(metastore.warehouse)}


@pytest.fixture
def namespace(catalog, request):
    """A namespace of the test's own; what is left in it goes, too."""
    name = request.node.name.split("[")[0][-40:].strip("_")
    catalog.create_namespace(name)
    yield name
    for table in catalog.list_tables(name):
        catalog.drop_table(table)
    catalog.drop_namespace(name)


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """A packed environment with icecomb in it.

    The libraries that icecomb needs are a few hundred megabytes: they stay where they are, and the
    archive says where.
    """
    folder = tmp_path_factory.mktemp("packed")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "env"], check=True)
    [packages] = (folder / "env" / "lib").glob("python*/site-packages")
    for floor in ("format", "catalog", "spark"):
        left_out = shutil.ignore_patterns("__pycache__", "jars", "bridge")
        shutil.copytree(ROOT / floor, packages / "icecomb" / floor, ignore=left_out)
    [others] = (VENV / "lib").glob("python*/site-packages")
    # the path is appended to, and the checkout's editable install is a line that is not read there
    (packages / "others.pth").write_text(f"{others}\n")
    with tarfile.open(folder / "env.tar.gz", "w:gz", compresslevel=1) as packed:
        for part in (folder / "env").iterdir():
            packed.add(part, part.name)
    shutil.rmtree(folder / "env")
    return folder / "env.tar.gz"


@pytest.fixture(scope="module")
def without_python(tmp_path_factory):
    """An environment in which no program is found that runs Python."""
    path = spark_programs.tools_without_python(tmp_path_factory.mktemp("tools") / "bin")
    assert shutil.which("python3", path=path) is None
    found = spark_programs.environment(PATH=path, JAVA_HOME=str(find_java().resolve().parents[1]))
    return {key: value for key, value in found.items() if key != "VIRTUAL_ENV"}


def lines(*arguments, **settings):
    """The arguments that `icecomb spark-conf` prints."""
    return shlex.split(" ".join(command_lines(spark_conf("lake", *arguments, **settings))))


def test_spark_submit_runs_on_executors_without_python_by_a_packed_environment(
    place, namespace, archive, without_python, tmp_path, catalog
):
    (tmp_path / "job.py").write_text(JOB.format(namespace=namespace))
    # others may write to the folder that Spark is started in
    planted = tmp_path / ARCHIVED_PYTHON
    planted.parent.mkdir(parents=True)
    planted.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\nexit 1\n")
    planted.chmod(0o755)
    answer = spark_programs.run(
        "spark-submit",
        *("--master", "local-cluster[1,1,512]", "--conf", "spark.executor.memory=512m"),
        *spark_programs.SMALL,
        *(
            "--archives",
            f"{archive}#env",
            "--conf",
            f"spark.pyspark.driver.python={sys.executable}",
        ),
        *lines(**place, python=ARCHIVED_PYTHON),
        "job.py",
        cwd=tmp_path,
        env=without_python,
    )
    assert "ANSWER Row(count(1)=90, sum(id)=4470)" in answer
    assert not (tmp_path / "ran").exists()
    rows = catalog.load_table((namespace, "t")).scan().to_arrow()
    assert (rows.num_rows, sum(rows["id"].to_pylist())) == (90, 4470)


def test_spark_submit_in_cluster_mode_runs_where_the_cluster_puts_the_driver(
    place, namespace, archive, without_python, tmp_path, catalog
):
    conf = lines(**place, python=ARCHIVED_PYTHON, deploy_mode="cluster")
    assert not any(sys.prefix in each for each in conf if "spark.jars" not in each)
    with StandaloneSpark(tmp_path, without_python) as master:
        spark_programs.run(
            "spark-submit",
            *("--master", master, "--deploy-mode", "cluster", "--executor-memory", "512m"),
            *("--conf", "spark.standalone.submit.waitAppCompletion=true"),
            *("--conf", "spark.executor.cores=1", "--class", "SqlApplication"),
            *spark_programs.SMALL,
            *("--archives", f"{archive}#env", *conf),
            str(spark_programs.application()),
            f"CREATE TABLE lake.{namespace}.t (id BIGINT)",
            f"INSERT INTO lake.{namespace}.t SELECT id FROM range(100)",
            cwd=tmp_path,
            env=without_python,
        )
    rows = catalog.load_table((namespace, "t")).scan().to_arrow()
    assert sorted(rows["id"].to_pylist()) == list(range(100))


def test_the_thrift_server_and_spark_connect_serve_the_catalog(place, namespace, tmp_path, catalog):
    thrift, connect = free_ports(2)
    server = [
        str(spark_home().path / "bin" / "spark-submit"),
        *("--class", "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"),
        *("--master", "local[2]", *spark_programs.SMALL, *lines(**place)),
        *("--conf", "spark.plugins=org.apache.spark.sql.connect.SparkConnectPlugin"),
        *("--conf", f"spark.connect.grpc.binding.port={connect}", "spark-internal"),
        *("--hiveconf", f"hive.server2.thrift.port={thrift}"),
        *("--hiveconf", "hive.server2.thrift.bind.host=127.0.0.1"),
    ]
    with ExitStack() as stack:
        stack.enter_context(
            spark_programs.serving(
                server, thrift, tmp_path / "log", spark_programs.environment(), tmp_path
            )
        )
        made = f"CREATE TABLE lake.{namespace}.t (id BIGINT); INSERT INTO lake.{namespace}.t VALUES (7), (8);"
        seen = spark_programs.run(
            "beeline",
            *("-u", f"jdbc:hive2://127.0.0.1:{thrift}/default", "-n", "alice", "--silent=true"),
            *("--outputformat=tsv2", "-e", f"{made} SELECT sum(id) FROM lake.{namespace}.t;"),
            cwd=tmp_path,
        )
        assert seen.split()[-1] == "15"
        assert catalog.client.table(namespace, "t").owner == "alice"
        client = (
            "from pyspark.sql import SparkSession\n"
            f"spark = SparkSession.builder.remote('sc://127.0.0.1:{connect}').getOrCreate()\n"
            f"spark.sql('INSERT INTO lake.{namespace}.t VALUES (9)')\n"
            f"print(spark.table('lake.{namespace}.t').orderBy('id').collect())\n"
            "spark.stop()\n"
        )
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", client],
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
            cwd=tmp_path,
        )
    assert "[Row(id=7), Row(id=8), Row(id=9)]" in done.stdout, done.stderr[-4000:]


def test_the_spark_shell_reads_what_it_wrote(place, namespace, tmp_path):
    typed = (
        f'spark.sql("CREATE TABLE lake.{namespace}.t AS SELECT 41 AS id")\n'
        f'println("ANSWER " + (spark.table("lake.{namespace}.t").first().getInt(0) + 1))\n'
        ":quit\n"
    )
    seen = spark_programs.run(
        "spark-shell",
        *("--master", "local[1]", *spark_programs.SMALL, *lines(**place)),
        cwd=tmp_path,
        given=typed,
    )
    assert "ANSWER 42" in seen
