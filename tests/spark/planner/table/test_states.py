"""The states of tables that queries hold on to."""

from __future__ import annotations

import pyarrow as pa
import pytest

from icecomb.format.errors import NoSuchTableError
from tests.spark.planner.protocol import NAMESPACE, Planner


@pytest.fixture
def planner(folders):
    return Planner.in_folders(folders)


def made(catalog, *columns):
    """The table `t` with one row of 1, 2 …, in two commits."""
    rows = pa.table({name: [place] for place, name in enumerate(columns, 1)})
    table = catalog.create_table((*NAMESPACE, "t"), rows.schema)
    table.append(rows)
    return table


@pytest.fixture
def stale(folders, planner):
    """What a query holds on to; meanwhile others made the table anew, and queries looked at that."""
    before = made(folders, "a", "b")
    loaded = planner.load("t")
    assert planner.plan(loaded)["files"]
    folders.purge_table((*NAMESPACE, "t"))
    assert made(folders, "b", "a").metadata_location == before.metadata_location
    return loaded


@pytest.mark.parametrize("looked_at", [True, False])
def test_a_query_reads_no_rows_of_another_table_of_its_name(tmp_path, planner, stale, looked_at):
    if looked_at:
        planner.load("t")
    else:  # it keeps no metadata
        planner = Planner(type="hadoop", warehouse=str(tmp_path), python="p")
    with pytest.raises(NoSuchTableError, match="re-created"):
        planner.plan(stale)
    assert len(planner.plan(planner.load("t"))["files"]) == 1


def test_a_delete_takes_no_rows_of_another_table_of_its_name(folders, planner, stale):
    planner.load("t")
    one = {"op": "eq", "column": ["a"], "type": "long", "value": 2}
    with pytest.raises(NoSuchTableError, match="re-created"):
        planner.ask("delete_where", reference=stale["reference"], filters=[one])
    rows = folders.load_table((*NAMESPACE, "t")).scan().to_arrow().to_pylist()
    assert rows == [{"b": 1, "a": 2}]


def test_what_is_named_below_a_table_says_of_which(folders, planner):
    made(folders, "a", "b")
    parts = {"namespace": [*NAMESPACE, "t"]}
    for part in ("branch_main", "files", "changes"):
        loaded = planner.load("t", table={**parts, "name": part})
        assert (loaded["table"], loaded["below"]) == ([*NAMESPACE, "t"], True)
    for more in ({}, {"version": "main"}, {"timestamp_us": 1 << 60}):
        loaded = planner.load("t", **more)
        assert (loaded["table"], loaded["below"]) == ([*NAMESPACE, "t"], False)
