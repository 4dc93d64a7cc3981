"""Parts that do not fit together say so and what to do, and the session goes on."""

from __future__ import annotations

import stat
import sys
import uuid

import pytest

from icecomb.spark import spark_conf
from icecomb.spark.conf import CATALOG_CLASS
from icecomb.spark.jar import bridge_jar
from tests.environments import spark_venv
from tests.peers.spark_process import SparkProcess

ANOTHER_VERSION = """#!/bin/sh
echo '{"port": 1, "protocol": 1, "version": "0.0.1"}'
exec cat
"""
WITHOUT_ICECOMB = """#!/bin/sh
echo "No module named icecomb" >&2
exit 1
"""


@pytest.mark.parametrize(
    ("script", "says", "hint"),
    [
        (None, "cannot start /nonexistent/python", "a Python that has icecomb"),
        (WITHOUT_ICECOMB, "No module named icecomb", "a Python that has icecomb"),
        (ANOTHER_VERSION, r"has icecomb 0\.0\.1 \(protocol 1\)", "`icecomb spark-conf` names"),
    ],
    ids=["no Python", "a Python without icecomb", "an icecomb of another version"],
)
def test_a_planner_that_cannot_serve_is_an_error_with_the_remedy(
    spark, metastore, script, says, hint, tmp_path
):
    python = tmp_path / "python"
    if script is None:
        python = "/nonexistent/python"
    else:
        python.write_text(script)
        python.chmod(python.stat().st_mode | stat.S_IXUSR)
    session = spark.newSession()
    catalog = f"unfit_{uuid.uuid4().hex[:8]}"
    session.conf.set(f"spark.sql.catalog.{catalog}", CATALOG_CLASS)
    session.conf.set(f"spark.sql.catalog.{catalog}.uri", metastore.uri)
    session.conf.set(f"spark.sql.catalog.{catalog}.python", str(python))
    for _ in range(2):
        with pytest.raises(Exception, match=says) as caught:
            session.sql(f"SELECT * FROM {catalog}.db.t").collect()
        assert hint in str(caught.value)
    assert session.sql("SELECT 1").first()[0] == 1


@pytest.mark.jvm
@pytest.mark.full("starts Spark 4.1")
def test_a_jar_for_another_spark_is_an_error_with_the_remedy(metastore, tmp_path):
    conf = spark_conf("lake", uri=metastore.uri, python=sys.executable, jar=bridge_jar())
    other = SparkProcess(spark_venv("4.1"), conf, metastore, tmp_path / "log")
    try:
        for statement in ("SELECT * FROM lake.db.t", "CREATE NAMESPACE lake.unfit"):
            with pytest.raises(AssertionError, match=r"icecomb's jar for Spark 4\.3") as caught:
                other.sql(statement)
            assert "This is Spark 4.1." in str(caught.value)
            assert "icecomb spark-conf --spark-home" in str(caught.value)
        assert other.sql("SELECT 1") == [[1]]
    finally:
        other.close()
