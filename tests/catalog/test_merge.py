"""Merges on file-system tables, against a list of rows and against what SQL says of MERGE INTO."""

from __future__ import annotations

import math
import tempfile
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyiceberg.table import StaticTable

from icecomb.catalog import load_catalog
from icecomb.format.errors import (
    ExpressionError,
    MissingDependencyError,
    SchemaError,
    ValidationError,
)
from icecomb.format.partition import PartitionField, PartitionSpec
from icecomb.format.transform import parse_transform

SCHEMA = pa.schema([("id", pa.int64()), ("s", pa.string()), ("x", pa.float64())])
CHANGES = pa.schema([*SCHEMA, ("op", pa.string())])
MODES = ("copy-on-write", "merge-on-read")
NAN = float("nan")


@pytest.fixture
def lake(tmp_path):
    found = load_catalog("lake", type="hadoop", warehouse=str(tmp_path / "lake"))
    found.create_namespace("db")
    yield found
    found.close()


@pytest.fixture(params=MODES)
def mode(request):
    return {"write.merge.mode": request.param, "write.delete.mode": request.param}


def frame(*rows, schema=SCHEMA) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [() for _ in schema]
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema)


def changes(*rows) -> pa.Table:
    return frame(*rows, schema=CHANGES)


def new_table(lake, *parts, properties=None, schema=SCHEMA, partition=()):
    spec = PartitionSpec(
        0,
        tuple(
            PartitionField(source, 1000 + i, parse_transform(t), f"p{i}")
            for i, (source, t) in enumerate(partition)
        ),
    )
    table = lake.create_table("db.t", schema, partition_spec=spec, properties=properties or {})
    for part in parts:
        table.append(part)
    return table


def plain(value):
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def rows(table) -> list[tuple]:
    """The rows as our scan and PyIceberg's agree on them, in an order of their own."""
    ours = _sorted(table.scan().to_arrow())
    assert ours == _sorted(StaticTable.from_metadata(table.metadata_location).scan().to_arrow())
    return ours


def _sorted(arrow):
    return sorted((tuple(map(plain, row.values())) for row in arrow.to_pylist()), key=repr)


def test_the_first_clause_that_is_true_decides_about_a_row(lake, mode):
    table = new_table(
        lake,
        frame((1, "a", 1.0), (2, "b", 2.0), (3, "c", 3.0)),
        frame((4, "d", 4.0), (5, "e", 5.0), (None, "f", 6.0)),
        properties=mode,
    )
    before = table.current_snapshot().snapshot_id
    result = (
        table.merge(
            changes(
                (1, "A", 10.0, "D"),
                (2, "B", 20.0, "U"),
                (3, "C", 30.0, "?"),
                (6, "F", 60.0, "U"),
                (7, "G", 70.0, "D"),
                (None, "N", 0.0, "U"),
            ),
            "t.id = s.id",
        )
        .when_matched_delete("s.op = 'D'")
        .when_matched_update({"x": "t.x + s.x"}, "s.op = 'U'")
        .when_not_matched_insert_all("s.op = 'U'")
        .when_not_matched_by_source_update({"s": "upper(t.s)"}, "t.id = 4")
        .when_not_matched_by_source_delete("t.id > 4")
        .execute()
    )
    assert (result.rows_inserted, result.rows_updated, result.rows_deleted) == (2, 2, 2)
    assert table.current_snapshot().parent_snapshot_id == before
    assert rows(table) == [
        (2, "b", 22.0),
        (3, "c", 3.0),
        (4, "D", 4.0),
        (6, "F", 60.0),
        (None, "N", 0.0),
        (None, "f", 6.0),
    ]
    assert (result.delete_files_added > 0) == (mode["write.merge.mode"] == "merge-on-read")
