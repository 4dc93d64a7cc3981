"""The printed --conf lines, used as a person would: with the spark-sql shell, no Python around it."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from icecomb.spark.jar import spark_home

ICECOMB = Path(sys.executable).with_name("icecomb")
SMALL = ["--conf", "spark.ui.enabled=false", "--conf", "spark.sql.shuffle.partitions=2"]


def _icecomb(*arguments, **environment):
    return subprocess.run(
        [ICECOMB, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        env={**os.environ, **environment},
    )


def _spark_sql(conf_lines, statement, tmp_path):
    """The rows that the shell prints; it runs where no icecomb is importable by accident."""
    program = str(spark_home().path / "bin" / "spark-sql")
    shell = [program, "--master", "local[2]", "--driver-memory", "1g", *SMALL]
    done = subprocess.run(
        [*shell, *shlex.split(conf_lines), "-e", statement],
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
        cwd=tmp_path,
        env={**os.environ, "SPARK_HOME": str(spark_home().path)},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return [line.split("\t") for line in done.stdout.splitlines()]


@pytest.mark.full("starts Spark's own shell; the lines that it is given are compared in the gate")
def test_the_spark_sql_shell_creates_fills_reads_and_drops_a_table(metastore, tmp_path):
    done = _icecomb("--uri", metastore.uri, "--warehouse", str(metastore.warehouse), "spark-conf")
    assert done.returncode == 0, done.stderr
    # whatever lies in the folder where somebody starts Spark is none of the planner's business
    (tmp_path / "fastavro.py").write_text("raise SystemExit('imported from the working directory')")
    rows = _spark_sql(
        done.stdout,
        """CREATE NAMESPACE lake.shell_tests;
        CREATE TABLE lake.shell_tests.t (id BIGINT, ts TIMESTAMP) USING iceberg PARTITIONED BY (days(ts), bucket(16, id));
        INSERT INTO lake.shell_tests.t VALUES (1, timestamp '2026-01-01'), (2, timestamp '2026-01-02');
        SELECT id FROM lake.shell_tests.t WHERE ts >= '2026-01-02';
        SHOW TABLES IN lake.shell_tests;
        DROP TABLE lake.shell_tests.t;
        DROP NAMESPACE lake.shell_tests;""",
        tmp_path,
    )
    assert ["2"] in rows
    assert any("t" in row for row in rows)


def test_the_lines_are_also_json_for_programs(metastore):
    asked = ("--uri", metastore.uri, "spark-conf", "ice", "--session-catalog")
    done = _icecomb("--output", "json", *asked)
    assert "icecomb.partition-overwrite-mode" in done.stderr
    conf = json.loads(done.stdout)
    done = _icecomb("--output", "csv", *asked)
    header, *lines = csv.reader(io.StringIO(done.stdout))
    assert header == ["key", "value"]
    # a spreadsheet would take -D… for a formula
    assert {key: re.sub(r"^\\x2d", "-", value) for key, value in lines} == conf
    assert conf["spark.sql.catalog.ice.uri"] == metastore.uri
    assert conf["spark.hadoop.hive.metastore.uris"] == metastore.uri
    assert Path(conf["spark.jars"]).is_file()


def test_a_folder_s_name_gives_spark_no_arguments():
    place = ("--uri", "thrift://h:1", "--warehouse", "/team/w --conf spark.jars=/team/evil.jar")
    done = _icecomb(*place, "spark-conf")
    assert (done.returncode, done.stdout) == (1, "")
    assert "spark.sql.catalog.lake.warehouse" in done.stderr
    done = _icecomb("--output", "json", *place, "spark-conf")
    assert json.loads(done.stdout)["spark.sql.catalog.lake.warehouse"] == place[-1]


def test_a_bad_name_is_one_line_and_an_exit_code():
    done = _icecomb("spark-conf", "my lake")
    assert (done.returncode, done.stdout) == (1, "")
    assert "name of a Spark catalog" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_host_without_a_compiler_and_without_a_ready_jar_is_told_so(tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").touch()
    done = _icecomb("spark-conf", JAVA_HOME=str(tmp_path), XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert done.returncode == 1
    assert "no javac" in done.stderr
    assert "hint: Install a JDK" in done.stderr
