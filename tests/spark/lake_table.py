"""What is in a table of `lake`, as Spark and as Python see it."""

from __future__ import annotations

from typing import Any

from icecomb.catalog import Catalog, Table


def load(catalog: Catalog, name: str) -> Table:
    """Load the table that Spark calls so."""
    return catalog.load_table(name.removeprefix("lake."))


def found(spark: Any, name: str, columns: str = "*", order: str = "id") -> list[list[Any]]:
    """Return the rows that Spark reads, in order."""
    rows = spark.sql(f"SELECT {columns} FROM {name} ORDER BY {order}").collect()
    return [list(row) for row in rows]


def summary(catalog: Catalog, name: str) -> dict[str, Any]:
    """Return the summary of the current snapshot, with its operation."""
    snapshot = load(catalog, name).current_snapshot()
    assert snapshot is not None
    return {**snapshot.summary, "operation": snapshot.operation}
