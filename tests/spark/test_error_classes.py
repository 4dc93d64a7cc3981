"""Refusals are of the classes that programs catch: those of the JDK and Spark that Iceberg's runtime throws."""

from __future__ import annotations

import re

import pytest

from icecomb.format import errors
from icecomb.spark.jar import sources

TABLE = "lake.error_class_tests.t"
# as Iceberg 1.11's own tests of its runtime ask for them; its parser's class is an AnalysisException
CLASSES = {
    "ALTER TABLE {t} DROP COLUMN missing_one": "AnalysisException",  # Spark would wrap others
    "ALTER TABLE {t} CREATE BRANCH b RETAIN x DAYS": "AnalysisException",
    "ALTER TABLE {t} CREATE TAG kept": "IllegalArgumentException",
    "ALTER TABLE {t} DROP BRANCH missing": "IllegalArgumentException",
    "ALTER TABLE {t} SET IDENTIFIER FIELDS missing": "IllegalArgumentException",
    "ALTER TABLE {t} SET TBLPROPERTIES ('sort-order' = 'id')": "UnsupportedOperationException",
    "ALTER TABLE {t} SET TBLPROPERTIES ('identifier-fields' = 'id')": "UnsupportedOperationException",
    "CREATE TABLE {t}_new (id INT) USING crocodile": "IllegalArgumentException",
    "CALL lake.system.fast_forward('{t}', 'main', 'missing')": "IllegalArgumentException",
    "CALL lake.system.ancestors_of('')": "IllegalArgumentException",
    "DELETE FROM {t}.tag_kept": "IllegalArgumentException",
    "INSERT INTO {t}.tag_kept VALUES (2)": "IllegalArgumentException",
    "SELECT * FROM {t}.branch_main VERSION AS OF 1": "IllegalArgumentException",
    "CREATE TABLE {t}_new (id INT) USING iceberg PARTITIONED BY (zorder(id))": "UnsupportedOperationException",
    "SELECT * FROM {t}_missing": "AnalysisException",
}


def test_a_refusal_is_of_the_class_that_programs_catch(spark):
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {TABLE.rpartition('.')[0]}")
    spark.sql(f"CREATE TABLE {TABLE} (id INT) USING iceberg")
    spark.sql(f"INSERT INTO {TABLE} VALUES (1)")
    spark.sql(f"ALTER TABLE {TABLE} CREATE TAG kept")
    found = {}
    for statement in CLASSES:
        with pytest.raises(Exception, match=r"\w") as refused:
            spark.sql(statement.format(t=TABLE)).collect()
        found[statement] = type(refused.value).__name__
    assert found == CLASSES
    assert [row.id for row in spark.table(TABLE).collect()] == [1]


def test_the_bridge_chooses_by_classes_that_the_planner_has():
    [source] = [path for path in sources("3.5") if path.name == "SparkErrors.java"]
    named = set(re.findall(r'entry\("(\w+)"', source.read_text()))
    assert {"ValidationError", "UnsupportedError", "ConflictError"} < named
    assert {name for name in named if not hasattr(errors, name)} == {"StatementError"}
