"""CHANGES FROM in format version 3: rows that commits moved or updated, told by their ids."""

from __future__ import annotations

from collections import Counter
from random import Random
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from icecomb.catalog.hadoop.catalog import HadoopCatalog
from icecomb.format.errors import UnsupportedError
from icecomb.format.rows.read.arrow_scan import ArrowScan
from icecomb.format.rows.values.metadata_columns import ROW_POSITION
from icecomb.format.spec.schema import Schema
from icecomb.spark.planner.changes.changelogs import _check_shown, _kind
from icecomb.spark.planner.changes.files import Changelog
from icecomb.spark.planner.table.change_columns import CHANGED_ROWS, CHANGES_FROM, UPDATED_ROWS

ROWS = pa.schema([("id", pa.int64()), ("k", pa.string())])
KINDS = {
    "DELETE": "DELETE",
    "INSERT": "INSERT",
    "UPDATE_BEFORE": "UPDATE_PREIMAGE",
    "UPDATE_AFTER": "UPDATE_POSTIMAGE",
}
WITHOUT_UPDATES = {"UPDATE_PREIMAGE": "DELETE", "UPDATE_POSTIMAGE": "INSERT"}


def made(folder: Any, version: str = "3", **properties: str) -> Any:
    catalog = HadoopCatalog("lake", {"warehouse": str(folder)})
    catalog.create_namespace("db")
    properties |= {"format-version": version}
    return catalog.create_table("db.t", ROWS, properties=properties)


def rows(*pairs: tuple[int, str]) -> pa.Table:
    return pa.table({"id": [i for i, _ in pairs], "k": [k for _, k in pairs]}, ROWS)


def state(table: Any, kind: str) -> Any:
    return SimpleNamespace(
        metadata=table.metadata,
        io=table.io,
        name="db.t",
        snapshot_id=table.metadata.current_snapshot_id,
        metadata_table=kind,
        changes_after=None,
        changes_until=table.metadata.current_snapshot_id,
        scan=table.scan,
    )


def changes(table: Any, kind: str) -> Counter[tuple[Any, ...]]:
    """The rows of a changelog: the commit, the kind and the values of each."""
    projected = Schema((*table.metadata.schema().fields, ROW_POSITION))
    reader = ArrowScan(table.metadata, table.io, projected, schema=table.metadata.schema())
    log = Changelog(state(table, kind), {})
    found: Counter[tuple[Any, ...]] = Counter()
    for task in log.tasks:
        change = log.changes[id(task.file)]
        for batch in reader.read(task):
            for row in batch.to_pylist():
                if change.rows is None or row["_pos"] in change.rows:
                    found[change.snapshot.snapshot_id, change.kind, row["id"], row["k"]] += 1
    return found


def expected(table: Any, *, updates: bool) -> Counter[tuple[Any, ...]]:
    """The same of `table.changes` between each commit and its parent."""
    found: Counter[tuple[Any, ...]] = Counter()
    for snapshot in table.snapshots():
        told = table.changes(snapshot.parent_snapshot_id, snapshot.snapshot_id).to_arrow()
        for row in told.to_pylist():
            kind = KINDS[row["_change_type"]]
            kind = kind if updates else WITHOUT_UPDATES.get(kind, kind)
            found[snapshot.snapshot_id, kind, row["id"], row["k"]] += 1
    return found


def change_at_random(table: Any, random: Random) -> None:
    some = rows(*((random.randrange(12), random.choice("abc")) for _ in range(5)))
    chosen = random.randrange(12)
    if random.random() < 0.3:
        table.append(some)
    elif random.random() < 0.4:
        table.delete(f"id = {chosen}")
    elif random.random() < 0.4:
        source = pa.table({"id": pa.array([chosen, chosen + 1]), "k": ["x", "y"]}, ROWS)
        merge = table.merge(source, on="t.id = s.id").when_matched_update({"k": "s.k"})
        merge.when_not_matched_insert_all().execute()
    elif random.random() < 0.5:
        table.overwrite(some, f"id = {chosen}")
    else:
        table.maintenance.rewrite_data_files(options={"rewrite-all": "true"})


@pytest.mark.seeds(2)
def test_the_rows_are_those_of_changes_between_each_commit_and_its_parent(
    tmp_path: Any, seed: int
) -> None:
    random, mode = Random(seed), ("copy-on-write", "merge-on-read")[seed % 2]
    table = made(tmp_path, **{f"write.{each}.mode": mode for each in ("delete", "merge", "update")})
    table.append(rows(*((number, "a") for number in range(12))))
    for _ in range(5):
        change_at_random(table, random)
    assert changes(table, UPDATED_ROWS) == expected(table, updates=True)
    assert changes(table, CHANGED_ROWS) == expected(table, updates=False)


def test_a_copied_file_has_only_its_changed_row(tmp_path: Any) -> None:
    table = made(tmp_path)
    table.append(rows((1, "a"), (2, "a"), (3, "a")))
    table.merge(rows((2, "b")), on="t.id = s.id").when_matched_update({"k": "s.k"}).execute()
    log = Changelog(state(table, UPDATED_ROWS), {})
    told = [log.changes[id(task.file)] for task in log.tasks]
    assert [(one.kind, one.rows is None or len(one.rows)) for one in told] == [
        ("INSERT", True),
        ("UPDATE_PREIMAGE", 1),
        ("UPDATE_POSTIMAGE", 1),
    ]


def asked(*, updates: bool = False, deduplication: str = "dropCarryovers") -> Any:
    return SimpleNamespace(compute_updates=updates, deduplication=deduplication)


def test_lineage_decides_where_there_is_some_and_all_rows_are_shown_where_they_are_asked_for(
    tmp_path: Any,
) -> None:
    now, old = state(made(tmp_path / "3"), ""), state(made(tmp_path / "2", "2"), "")
    assert _kind(old, asked()) == _kind(old, asked(updates=True)) == CHANGES_FROM
    assert _kind(now, asked(deduplication="none")) == CHANGES_FROM
    assert _kind(now, asked()) == CHANGED_ROWS
    assert _kind(now, asked(updates=True)) == UPDATED_ROWS


def test_commits_from_before_the_upgrade_have_updates_of_no_row_ids(tmp_path: Any) -> None:
    table = made(tmp_path, "2")
    table.append(rows((1, "a"), (2, "a")))
    table.transaction().upgrade_table_version(3).commit_transaction()
    table.delete("id = 1")
    shown, commits = state(table, ""), table.snapshots()
    with pytest.raises(UnsupportedError, match="older than the table's upgrade"):
        _check_shown(shown, commits, asked(updates=True), UPDATED_ROWS)
    with pytest.raises(UnsupportedError, match="rewrote rows"):
        _check_shown(shown, commits, asked(), CHANGED_ROWS)
    table.append(rows((3, "a"), (4, "a")))
    table.delete("id = 3")
    later = table.snapshots()[len(commits) :]
    _check_shown(shown := state(table, ""), later, asked(updates=True), UPDATED_ROWS)
    with pytest.raises(UnsupportedError, match="rewrote rows"):
        _check_shown(shown, later, asked(updates=True, deduplication="none"), UPDATED_ROWS)
