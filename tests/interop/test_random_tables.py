"""Iceberg Java reads random tables of every format as we do, and as their rows are in memory."""

from __future__ import annotations

from random import Random

import pytest

from tests.catalog.random_table import RandomTable, ordered

pytestmark = pytest.mark.jvm


@pytest.mark.seeds(6)
def test_iceberg_java_reads_what_we_wrote(readers, seed):
    name, file_format = f"random_{seed}", ("parquet", "orc", "avro")[seed % 3]
    made = RandomTable(Random(seed), readers.catalog, readers.own(name), file_format)
    for _ in range(9):
        made.change()
    made.append()
    assert ordered(made.table.scan().to_arrow().to_pylist()) == made.expected()
    assert readers.agree(name, but=["spark", "peer"])
    # Which deletes may apply is decided by bounds, of which either may use more.
    assert readers.plan(name).keys() == readers.java_plan(name).keys()
