"""Iceberg Java and our Spark read random tables of every format as we do, and as their rows are in memory."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from icecomb.catalog import Table
from tests.catalog.random_table import RandomTable, ordered

pytestmark = pytest.mark.full("a second Spark reads, too")


@pytest.mark.seeds(6)
def test_iceberg_java_reads_what_we_wrote(readers, seed):
    name, file_format = f"random_{seed}", ("parquet", "orc", "avro")[seed % 3]
    made = RandomTable(Random(seed), readers.catalog, readers.own(name), file_format)
    for _ in range(9):
        made.change()
    made.append()
    assert ordered(made.table.scan().to_arrow().to_pylist()) == made.expected()
    found, theirs = readers.python(name), readers.java(name)
    assert readers.spark(name) == found
    if partitioned_inside_a_struct(made.table):
        # Iceberg Java makes a struct of nulls of a null struct with a partition field in it
        found, theirs = null_structs(found), null_structs(theirs)
    assert found == theirs
    # Which deletes may apply is decided by bounds, of which either may use more.
    assert readers.plan(name).keys() == readers.java_plan(name).keys()


def partitioned_inside_a_struct(table: Table) -> bool:
    schema = table.schema()
    sources = {field.source_id for spec in table.specs().values() for field in spec.fields}
    return any(
        schema.contains(source) and "." in (schema.find_column_name(source) or "")
        for source in sources
    )


def null_structs(rows: list[list[Any]]) -> list[list[Any]]:
    """The rows with null for whatever holds nothing but nulls."""
    return sorted(([without_nulls(value) for value in row] for row in rows), key=repr)


def without_nulls(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    parts = [without_nulls(part) for part in value]
    return None if all(part is None for part in parts) else parts
