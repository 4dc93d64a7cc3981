"""Sparks beside the shared one."""

from __future__ import annotations

import sys

import pytest

from tests.environments import spark_venv
from tests.peers.spark_process import SparkProcess


@pytest.fixture(scope="session")
def other_spark(metastore, tmp_path_factory):
    """Sparks in environments of their own, by minor version, with our catalogs; each is started once."""
    from icecomb.spark import spark_conf
    from icecomb.spark.jar import bridge_jar, spark_home

    running = {}

    def start(minor):
        if minor not in running:
            venv = spark_venv(minor)
            home = spark_home(next(venv.glob("lib/python3*/site-packages/pyspark")))
            assert home.minor == minor
            place = {"uri": metastore.uri, "warehouse": str(metastore.warehouse)}
            jar = bridge_jar(home)
            conf = spark_conf("lake", **place, session_catalog=True, python=sys.executable, jar=jar)
            log = tmp_path_factory.mktemp(f"spark-{minor}") / "log"
            running[minor] = SparkProcess(venv, conf, metastore, log)
        return running[minor]

    yield start
    for each in running.values():
        each.close()


@pytest.fixture
def only_lake(spark):
    """No other catalog of ours is configured, whatever tests before this one left in the session."""
    others = {
        key: value
        for key, value in spark.conf.getAll.items()
        if key.startswith("spark.sql.catalog.") and not key.startswith("spark.sql.catalog.lake")
    }
    for key in others:
        spark.conf.unset(key)
    yield
    for key, value in others.items():
        spark.conf.set(key, value)
