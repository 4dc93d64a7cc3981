"""Which snapshot came from which, also where metadata is damaged."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog
from icecomb.format.errors import CorruptFileError
from icecomb.format.operation.conflict import History
from icecomb.format.scan.incremental_scan import IncrementalAppendScan
from icecomb.format.spec.snapshot import ancestors_of, is_ancestor, latest_ancestor_before

ROWS = pa.table({"id": pa.array([1], pa.int64())})


@pytest.fixture
def table(tmp_path):
    catalog = load_catalog("files", type="hadoop", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", ROWS.schema)
    for _ in range(3):
        table.append(ROWS)
    return table


@pytest.fixture(params=[0, 1, 2])
def circle(request, table):
    """Metadata whose oldest snapshot says that it came from one of the others, or from itself."""
    metadata = table.metadata
    oldest, *others = metadata.snapshots
    parent = metadata.snapshots[request.param].snapshot_id
    return replace(metadata, snapshots=(replace(oldest, parent_snapshot_id=parent), *others))


def test_ancestors_come_the_newest_first(table):
    ids = [s.snapshot_id for s in table.metadata.snapshots]
    found = ancestors_of(table.metadata, ids[-1])
    assert [s.snapshot_id for s in found] == ids[::-1]


def test_a_circle_is_told_and_not_followed_for_ever(circle):
    head = circle.current_snapshot_id
    for ask in (
        lambda: list(ancestors_of(circle, head)),
        lambda: is_ancestor(circle, 7, head),
        lambda: latest_ancestor_before(circle, 0, head),
    ):
        with pytest.raises(CorruptFileError, match="among its own ancestors"):
            ask()


def test_the_checks_of_a_commit_tell_it_too(circle, table):
    with pytest.raises(CorruptFileError, match="among its own ancestors"):
        _ = History(table.io, circle, circle.current_snapshot(), 7).snapshots


def test_changes_between_snapshots_tell_it_too(circle, table):
    with pytest.raises(CorruptFileError, match="among its own ancestors"):
        list(IncrementalAppendScan(circle, table.io).plan_files())
