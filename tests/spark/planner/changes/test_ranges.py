"""Which commits CHANGES FROM means, and how rows of them come."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from icecomb.catalog.hadoop.catalog import HadoopCatalog
from icecomb.format.errors import ValidationError
from icecomb.spark.planner.changes.changelogs import _commits
from icecomb.spark.planner.changes.files import Changelog
from icecomb.spark.planner.protocol.changes import ChangelogRange

BY_DELETE_FILES = {"write.delete.mode": "merge-on-read"}


@pytest.fixture
def table(tmp_path):
    """Four commits: three appends, and the deletion of a row of the second."""
    catalog = HadoopCatalog("lake", {"warehouse": str(tmp_path)})
    catalog.create_namespace("db")
    schema = pa.schema([("id", pa.int64())])
    made = catalog.create_table("db.t", schema, properties=BY_DELETE_FILES)
    for number in range(3):
        made.append(pa.table({"id": [10 * number, 10 * number + 1]}))
    made.delete("id = 11")
    return made


def state(table) -> Any:
    return SimpleNamespace(
        metadata=table.metadata,
        io=table.io,
        name="db.t",
        snapshot_id=table.metadata.current_snapshot_id,
        metadata_table="changes",
        scan=table.scan,
    )


def versions(table, start, end, *, first=True, last=True):
    """The places of the commits of a range of versions, from 0."""
    ids = [snapshot.snapshot_id for snapshot in table.snapshots()]
    wanted = ChangelogRange(str(ids[start]), str(ids[end]), None, None, first, last)
    return [ids.index(each.snapshot_id) for each in _commits(state(table), wanted)[1]]


@pytest.mark.parametrize(
    ("first", "last", "places"),
    [
        (True, True, [1, 2, 3]),
        (False, True, [2, 3]),
        (True, False, [1, 2]),
        (False, False, [2]),
    ],
)
def test_the_ends_of_a_range_of_versions_are_in_it_as_the_query_says(table, first, last, places):
    assert versions(table, 1, 3, first=first, last=last) == places


def test_a_range_of_one_version_is_that_commit_or_none(table):
    assert versions(table, 2, 2) == [2]
    assert versions(table, 2, 2, first=False, last=False) == []


def test_a_range_that_runs_backwards_is_refused(table):
    with pytest.raises(ValidationError, match="is not an ancestor of"):
        versions(table, 3, 1)


def test_appended_rows_come_as_inserted_ones_and_deleted_rows_as_deleted_ones(table):
    log = Changelog(state(table), {})
    found = []
    for task in log.tasks:
        change = log.changes[id(task.file)]
        rows = None if change.rows is None else change.rows.tolist()
        found.append((change.ordinal, change.kind, rows))
    assert found == [(0, "INSERT", None), (1, "INSERT", None), (2, "INSERT", None), (3, "DELETE", [1])]  # fmt: skip


def test_a_delete_file_that_takes_older_deletes_along_deletes_only_the_new_ones(table):
    table.append(pa.table({"id": [30, 31, 32, 33]}))
    table.delete("id = 31")
    table.delete("id = 33")
    assert len(table.inspect.delete_files()) == 2  # of two data files
    log = Changelog(state(table), {})
    changes = [log.changes[id(task.file)] for task in log.tasks]
    found = [(c.kind, c.rows is not None and c.rows.tolist()) for c in changes]
    assert found[-3:] == [("INSERT", False), ("DELETE", [1]), ("DELETE", [3])]


def test_a_vector_deletes_the_rows_that_the_one_before_did_not(table):
    with table.update_properties() as update:
        update.set("format-version", "3")
    before = len(table.snapshots())
    table.append(pa.table({"id": [30, 31, 32, 33]}))
    table.delete("id in (0, 31)")
    table.delete("id = 33")
    log = Changelog(state(table), {})
    changes = [log.changes[id(task.file)] for task in log.tasks]
    found = [(c.ordinal - before, c.kind, c.rows is not None and c.rows.tolist()) for c in changes]
    assert sorted(found[4:]) == [
        (0, "INSERT", False),
        (1, "DELETE", [0]),
        (1, "DELETE", [1]),
        (2, "DELETE", [3]),
    ]


@pytest.mark.parametrize("version", ["2", "3"])
def test_rows_deleted_from_a_file_that_is_there_twice_are_deleted_twice(table, version):
    with table.update_properties() as update:
        update.set("format-version", version)
    (path,) = (task.file_path for task in table.scan("id = 0").plan_files())
    table.add_files([path], check_duplicate_files=False)
    table.append(pa.table({"id": [50]}))  # after an upgrade, entries have ids from here on
    before = len(table.snapshots())
    table.delete("id = 0")
    log = Changelog(state(table), {})
    changes = [log.changes[id(task.file)] for task in log.tasks]
    deleted = [c for c in changes if c.ordinal == before]
    assert [(c.kind, c.rows.tolist()) for c in deleted] == [("DELETE", [0])] * 2
    firsts = {c.file.first_row_id for c in deleted}
    assert len(firsts) == 2 if version == "3" else firsts == {None}
