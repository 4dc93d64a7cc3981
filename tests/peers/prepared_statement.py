"""A statement of Spark in two steps, so that others can commit between them.

The first resolves and plans it: which state of which table it reads is settled then. The second runs its
tasks, and commits. Needs pyspark only: workers in other environments import it, too.
"""

from __future__ import annotations

from typing import Any


def prepare(spark: Any, text: str) -> Any:
    """The statement, planned."""
    sql = spark._jvm.org.apache.spark.sql
    state = spark._jsparkSession.sessionState()
    plan = state.sqlParser().parsePlan(text)
    execution = state.executePlan(plan, sql.execution.CommandExecutionMode.SKIP())
    execution.executedPlan()
    classes = sql if spark.version.startswith("3.") else sql.classic
    encoder = sql.catalyst.encoders.ExpressionEncoder.apply(execution.analyzed().schema())
    return classes.Dataset(execution, encoder)


def run(rows: Any) -> None:
    """Does what was planned."""
    rows.collect()
