"""Manifests of many snapshots are read by few threads."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from icecomb.format.expressions.expression import AlwaysTrue
from icecomb.format.inspect.manifest_table import ManifestTable
from icecomb.format.inspect.metadata_table import TableRequest


@pytest.mark.parametrize(("snapshots", "most"), [(0, 0), (1, 1), (20, 20), (500, 40), (6400, 100)])
def test_parts_are_fewer_than_snapshots_where_there_are_many(snapshots, most):
    nothing: Any = None
    ids: Any = [SimpleNamespace(snapshot_id=number) for number in range(snapshots)]
    table = ManifestTable(nothing, nothing, ids, is_all=True)
    parts = list(table.parts(TableRequest(table.schema, AlwaysTrue())))
    assert len(parts) <= most
    assert [one for part in parts for one in part.args[0]] == ids
