"""SHOW, DESCRIBE, USE, DROP and RENAME in each kind of catalog on each Spark."""

from __future__ import annotations

import sys

import pytest

from icecomb.catalog import metastore
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import LongType, NestedField
from icecomb.spark.conf import CATALOG_CLASS, SESSION_CATALOG_CLASS
from tests.peers.spark_worker import plain
from tests.spark.sql_file import check

KINDS = {
    "folders": ("catalogs/all", "catalogs/folders"),
    "metastore": ("catalogs/all", "catalogs/metastore"),
    "session": ("catalogs/all", "catalogs/metastore"),
    "embedded": ("catalogs/all", "catalogs/metastore"),
}
"""Kinds of catalogs, with the files of statements that they answer."""
NAMES = {"folders": "of_folders", "metastore": "lake", "session": "spark_catalog"}
SCHEMA = Schema((NestedField(1, "id", LongType()),))
UNREADABLE = "SELEC nothing FRM"


@pytest.fixture(scope="module")
def run_on(spark, other_spark):
    """Gives what answers statements, on a Spark whose own catalog has Iceberg tables, too."""
    session = spark.newSession()
    for key, value in {"": SESSION_CATALOG_CLASS, ".python": sys.executable}.items():
        session.conf.set(f"spark.sql.catalog.spark_catalog{key}", value)

    def run(text):
        return [[plain(value) for value in row] for row in session.sql(text).collect()]

    return lambda minor: run if minor == "4.3" else other_spark(minor).sql


@pytest.fixture
def run(run_on, minor):
    """Answers a statement on the Spark of the test."""
    return run_on(minor)


@pytest.mark.parametrize(
    ("minor", "kind", "files"),
    [
        ("4.3", "folders", KINDS["folders"][1:]),
        *(
            pytest.param(
                minor, kind, files, marks=pytest.mark.full("each kind of catalog on each Spark")
            )
            for minor in ("3.5", "4.1", "4.3")
            for kind, files in KINDS.items()
        ),
    ],
    ids=lambda each: str(len(each)) if isinstance(each, tuple) else each,
)
def test_a_catalog_lists_describes_renames_and_drops_what_it_has(run, minor, kind, files, tmp_path):
    name = NAMES.get(kind, f"{kind}_{minor.replace('.', '_')}")
    if kind in {"folders", "embedded"}:
        run(f"SET spark.sql.catalog.{name} = {CATALOG_CLASS}")
        run(f"SET spark.sql.catalog.{name}.python = {sys.executable}")
        run(f"SET spark.sql.catalog.{name}.type = {'hadoop' if kind == 'folders' else 'local'}")
        run(f"SET spark.sql.catalog.{name}.warehouse = {tmp_path}")

    def answer(text):
        # the new name of a view in Spark's own catalog has two parts, by Spark's rule
        if text.startswith("ALTER VIEW"):
            text = text.replace("RENAME TO spark_catalog.", "RENAME TO ")
        if minor == "3.5" and text.startswith("SHOW COLUMNS"):
            with pytest.raises(Exception, match="SHOW COLUMNS is not supported for v2 tables"):
                run(text)
            return [["id"], ["k"]]
        rows = run(text)
        if text.startswith("DESCRIBE ") and text.endswith(".w"):
            # of a column of a view without a comment older Sparks show an empty text
            rows = [[name, kind, comment or None] for name, kind, comment in rows]
        return rows

    try:
        for file in files:
            each = file.rpartition("/")[2]
            check(
                answer, file, name, f"listed_{kind}_{minor.replace('.', '_')}_{each}_{len(files)}"
            )
    finally:
        if kind == "embedded":
            metastore.stop(tmp_path)


@pytest.mark.full("views that are read are in the gate")
@pytest.mark.parametrize("minor", ["4.3"])
def test_a_view_whose_text_is_broken_is_changed_and_dropped(run, minor, catalog):
    db = f"broken_{minor.replace('.', '_')}"
    run(f"CREATE NAMESPACE lake.{db}")
    for each in ("a", "b", "c"):
        catalog.create_view(f"{db}.{each}", SCHEMA, {"spark": UNREADABLE})
    run(f"ALTER VIEW lake.{db}.a SET TBLPROPERTIES ('x' = 'y')")
    run(f"ALTER VIEW lake.{db}.a AS SELECT 7 AS id")
    assert run(f"SELECT * FROM lake.{db}.a") == [[7]]
    run(f"CREATE OR REPLACE VIEW lake.{db}.b AS SELECT 8 AS id")
    assert run(f"SELECT * FROM lake.{db}.b") == [[8]]
    for each in ("a", "b", "c"):
        run(f"DROP VIEW lake.{db}.{each}")
    run(f"DROP NAMESPACE lake.{db}")
