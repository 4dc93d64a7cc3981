"""Sizes of files that a manifest states and no file has: planning ends, in little memory."""

from __future__ import annotations

from itertools import islice
from typing import Any

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog
from icecomb.format.errors import CorruptFileError
from icecomb.format.rows.values.scan_task import MOST_PARTS
from tests.catalog.metadata_of_others import NO_CACHE, Record, again, tell_otherwise

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64())})


@pytest.fixture
def table(tmp_path) -> Any:
    catalog = load_catalog("files", type="hadoop", warehouse=str(tmp_path), **NO_CACHE)
    catalog.create_namespace("db")
    properties = {"read.split.target-size": "1"}
    table = catalog.create_table("db.t", ROWS.schema, properties=properties)
    with table.transaction() as change:
        for _ in range(4):
            change.append(ROWS)
    return again(table)


def stated(size: int) -> Any:
    def change(record: Record) -> None:
        record.update(file_size_in_bytes=size, split_offsets=None)

    return change


def test_a_huge_file_is_planned_in_a_bounded_number_of_parts(table):
    tell_otherwise(table, stated(1 << 52))
    table = again(table)
    assert next(iter(table.scan().plan_tasks())).tasks[0].length == -(-(1 << 52) // MOST_PARTS)
    [task] = islice(table.scan().plan_files(), 1)
    assert len(list(task.split(1))) <= MOST_PARTS


@pytest.mark.parametrize("size", [(1 << 53) + 1, (1 << 63) - 1])
def test_a_size_that_no_file_has_is_a_damaged_manifest(table, size):
    tell_otherwise(table, stated(size))
    table = again(table)
    for plan in (
        lambda: list(table.scan().plan_files()),
        lambda: table.delete("id = 1"),
    ):
        with pytest.raises(CorruptFileError, match=f"a file of {size} bytes"):
            plan()
