"""One line is enough: the extension brings a catalog, and lives beside Iceberg's own."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from icecomb.spark.jar import bridge_jar, spark_home
from tests.environments import ICEBERG_JAVA_VENV, ROOT, made, pyspark_of
from tests.peers.iceberg_java import RUNTIME
from tests.peers.ivy import fetch

pytestmark = pytest.mark.full("another Spark, with Iceberg's runtime in it")

OURS = "org.icecomb.spark.IcecombSessionExtensions"
ICEBERGS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"


def run_sessions(metastore, sessions, python=sys.executable):
    """What the statements of some sessions answer, each a list of rows or an error's text.

    They run one after the other in a Spark that has Iceberg's runtime; its catalog is ``ice``.
    `python` runs the planners of catalogs that name none.
    """
    made(ICEBERG_JAVA_VENV)
    home = pyspark_of(ICEBERG_JAVA_VENV)
    settings = {
        "spark.master": "local[2]",
        "spark.driver.memory": "1g",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.jars": f"{bridge_jar(spark_home(home))},{fetch(RUNTIME)}",
        "spark.hadoop.hive.metastore.uris": metastore.uri,
        "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.ice.type": "hive",
        **{f"spark.hadoop.{key}": value for key, value in metastore.client_settings.items()},
    }
    done = subprocess.run(
        [
            str(ICEBERG_JAVA_VENV / "bin" / "python"),
            str(ROOT / "tests" / "peers" / "spark_sessions.py"),
        ],
        env={
            **os.environ,
            "HADOOP_TOKEN_FILE_LOCATION": str(metastore.token_file),
            "ICECOMB_PYTHON": str(python),
        },
        input=json.dumps({"settings": settings, "sessions": sessions}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_the_extension_brings_a_catalog_and_lives_beside_icebergs_own(metastore, catalog):
    catalog.create_namespace("extension_tests")
    alter = "ALTER TABLE {}.extension_tests.{} "
    [(rows, *changed, misspelt), (refused, theirs), (unknown,)] = run_sessions(
        metastore,
        [
            {
                "conf": {"spark.sql.extensions": f"{ICEBERGS},{OURS}"},
                "statements": [
                    "SELECT 1",
                    "CREATE TABLE lake.extension_tests.ours (id INT)",
                    alter.format("lake", "ours") + "ADD PARTITION FIELD bucket(4, id)",
                    "CREATE TABLE ice.extension_tests.theirs (id INT) USING iceberg",
                    alter.format("ice", "theirs") + "ADD PARTITION FIELD bucket(8, id)",
                    (
                        "CALL ice.system.rewrite_data_files(table => 'extension_tests.theirs', "
                        "strategy => 'sort', sort_order => 'id DESC')"
                    ),
                    alter.format("ice", "theirs") + "ADD PARTITION FIELD bucket(8 id)",
                ],
            },
            {
                "conf": {"spark.sql.extensions": f"{OURS},{ICEBERGS}"},
                "statements": [
                    alter.format("lake", "ours") + "CREATE BRANCH b",
                    alter.format("ice", "theirs") + "DROP PARTITION FIELD bucket(8, id)",
                ],
            },
            {
                "conf": {
                    "spark.sql.extensions": OURS,
                    "spark.sql.catalog.other": "org.icecomb.spark.IcecombCatalog",
                },
                "statements": ["SHOW TABLES IN lake.extension_tests"],
            },
        ],
    )
    assert rows == [[1]]
    assert [type(answer) for answer in changed] == [list] * 5, changed
    assert [f.name for f in catalog.load_table("extension_tests.ours").spec().fields] == [
        "id_bucket_4"
    ]
    # Iceberg's own message, as it is
    assert "expecting ')'" in misspelt or "'id'" in misspelt
    assert "Iceberg's own SQL extensions took this statement" in refused
    assert f"spark.sql.extensions={ICEBERGS},{OURS}" in refused
    assert theirs == []
    # who has configured a catalog gets no other
    assert "not supported by v1 session catalog: lake.extension_tests" in unknown


def test_the_planner_of_a_configured_catalog_starts_with_the_session_and_no_other(
    metastore, tmp_path
):
    def interpreter(name):
        """One that notes that it was started."""
        script = tmp_path / name
        script.write_text(
            f'#!/bin/sh\necho started >> "{tmp_path}/{name}.log"\nexec "{sys.executable}" "$@"\n'
        )
        script.chmod(0o755)
        return str(script)

    def starts(name):
        log = tmp_path / f"{name}.log"
        return log.read_text().count("started") if log.exists() else 0

    def session(name, *statements, **conf):
        configured = {
            "spark.sql.catalog.ours": "org.icecomb.spark.IcecombCatalog",
            "spark.sql.catalog.ours.uri": metastore.uri,
            "spark.sql.catalog.ours.python": interpreter(name),
        }
        return {
            "conf": {"spark.sql.extensions": OURS, **configured, **conf},
            "statements": statements,
        }

    only_extension = {"conf": {"spark.sql.extensions": OURS}, "statements": ["SELECT 1"]}
    later = {"spark.sql.icecomb.start-planner-ahead": "false"}
    answers = run_sessions(
        metastore,
        [
            only_extension,
            session("at first use", "SELECT 1", **later),
            session("unasked", "SELECT 1"),
            session("asked", "SHOW NAMESPACES IN ours"),
            session("asked later", "SHOW NAMESPACES IN ours", **later),
        ],
        interpreter("by default"),
    )
    assert answers[:3] == [[[[1]]]] * 3
    assert ["default"] in answers[3][0]
    assert answers[4] == answers[3]
    found = {
        name: starts(name)
        for name in ("by default", "at first use", "unasked", "asked", "asked later")
    }
    assert found == {"by default": 0, "at first use": 0, "unasked": 1, "asked": 1, "asked later": 1}
