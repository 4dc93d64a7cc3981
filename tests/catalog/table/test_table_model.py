"""Random tables of every format agree with rows in memory, at every snapshot, in every reader."""

from __future__ import annotations

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from pyiceberg.table import StaticTable

from tests.catalog.random_table import INNER, VALUES, changed_table, ordered


@pytest.mark.gate("reads every snapshot of each table in five ways")
@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(random=st.randoms(use_true_random=False), steps=st.integers(2, 9))
def test_any_table_is_read_as_its_rows_are(file_format, random, steps):
    with changed_table(random, steps, file_format) as made:
        check(made)


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(random=st.randoms(use_true_random=False), steps=st.integers(2, 7))
def test_pyiceberg_reads_random_tables_as_we_do(random, steps):
    # PyIceberg reads a null list of structs as an empty one
    types = [kind for kind in VALUES if kind != pa.list_(INNER)]
    with changed_table(random, steps, "parquet", equality=False, types=types) as made:
        peer = StaticTable.from_metadata(made.table.metadata_location).scan().to_arrow()
        assert ordered(peer.to_pylist()) == check(made)


def check(made):
    scan = made.table.scan()
    expected = made.expected()
    assert ordered(scan.to_arrow().to_pylist()) == expected
    batches = [row for batch in scan.to_arrow_batches() for row in batch.to_pylist()]
    assert ordered(batches) == expected
    assert scan.count() == len(expected)
    assert scan.to_polars().select(pl.len()).collect().item() == len(expected)
    assert repr(made.table)
    assert repr(scan)
    for snapshot_id, rows in made.history:
        then = made.table.scan(snapshot_id=snapshot_id)
        assert ordered(then.to_arrow().to_pylist()) == rows
        assert then.count() == len(rows)
    marked = made.table.scan(selected_fields=("id", "_deleted")).to_arrow()
    assert marked["_deleted"].to_pylist().count(False) == len(expected)
    return expected
