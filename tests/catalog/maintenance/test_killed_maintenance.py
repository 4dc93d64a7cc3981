"""Actions of maintenance that are killed before and after every change of the storage.

Whatever is left, the table has the rows it had, in every snapshot, and all files that it refers to.
What else is in its folder the clean-up finds, and the next run of the action succeeds.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from killed_process import fatal_steps, killed, some_steps
from maintained_table import ALL, delete_by_value, frame, new_table
from needed_files import needed_files, path

from icecomb.catalog import Table, load_catalog

LATER = 4_102_444_800_000
FORMER = [1, 3, 102, 201, 202, 203, 204]
LEFT = [1, 3, 102, 104, 201, 202, 203, 204]
ONE = {"max-concurrent-file-group-rewrites": "1"}

COPIED = "icecomb.maintenance.copy-min-row-group-bytes"

Act = Callable[[Table], Any]

ACTIONS: dict[str, tuple[Act, int]] = {
    "data files decoded": (
        lambda table: table.maintenance.rewrite_data_files(
            where="id < 100", options={**ALL, "copy": "never", "remove-dangling-deletes": "true"}
        ),
        15,
    ),
    "data files copied": (
        lambda table: table.maintenance.rewrite_data_files(
            where="id > 200", options={**ALL, "copy": "require"}
        ),
        10,
    ),
    "data files sorted": (
        lambda table: table.maintenance.rewrite_data_files(
            where="id < 100", sort_order="s DESC", options=ALL
        ),
        12,
    ),
    "data files in parts": (
        lambda table: table.maintenance.rewrite_data_files(
            where="id > 100", options={**ALL, "partial-progress.enabled": "true", **ONE}
        ),
        25,
    ),
    "position deletes": (
        lambda table: table.maintenance.rewrite_position_delete_files(options=ALL),
        12,
    ),
    "equality deletes": (lambda table: table.maintenance.convert_equality_deletes(), 12),
    "manifests": (lambda table: table.maintenance.rewrite_manifests(), 8),
}
"""What is done, and how many states it leaves at least when it is killed."""


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    """A lake, and where its only table is kept.

    It has three partitions: with position deletes, with equality deletes, and with none.
    """
    lake = load_catalog("lake", type="hadoop", warehouse=str(tmp_path_factory.mktemp("lake")))
    lake.create_namespace("db")
    parts = [(1, 2, 3), (4, 5), (101, 102), (103, 104), (201, 202), (203, 204)]
    table = new_table(lake, *(frame(*part) for part in parts), by="truncate[100]", **{COPIED: "0"})
    for row in (2, 4, 5, 101):
        table.refresh().delete(f"id = {row}")
    for row in (103, 104):
        delete_by_value(table, row)
    table.maintenance.rewrite_manifests()
    table.append(frame(104))
    table.maintenance.expire_snapshots().older_than(LATER).retain_last(2).commit()
    assert [rows(table, s.snapshot_id) for s in table.snapshots()] == [FORMER, LEFT]
    aside = tmp_path_factory.mktemp("aside") / "t"
    shutil.copytree(path(table.location()), aside)
    return lake, aside


def remove(table: Table, **given: Any) -> Any:
    return table.maintenance.remove_orphan_files(older_than=LATER, any_age=True, **given)


def ledger(table: Table) -> dict[int, list[int]]:
    """The rows of every snapshot."""
    return {s.snapshot_id: rows(table, s.snapshot_id) for s in table.snapshots()}


def rows(table: Table, snapshot_id: int | None = None) -> list[int]:
    found = table.scan(snapshot_id=snapshot_id).to_arrow()
    assert [f"s{n}" for n in found["id"].to_pylist()] == found["s"].to_pylist()
    return sorted(found["id"].to_pylist())


def in_folder(table: Table) -> set[str]:
    return {str(each) for each in path(table.location()).rglob("*") if each.is_file()}


def unneeded(table: Table) -> set[str]:
    """The files in a table's folder that it does not refer to; all that it refers to is there."""
    needed = {str(path(each)) for each in needed_files(table)}
    there = in_folder(table)
    assert needed <= there
    hint = str(path(table.location()) / "metadata" / "version-hint.text")
    return there - needed - {hint}


@pytest.mark.gate("kills a process at each step")
@pytest.mark.parametrize(("name", "which"), some_steps(*ACTIONS, keep=2))
def test_an_action_killed_anywhere_keeps_all_rows_and_can_be_repeated(
    template: tuple[Any, Path], name: str, which: slice
) -> None:
    (lake, aside), (act, least) = template, ACTIONS[name]
    folder = path(lake.load_table("db.t").location())

    def restore() -> Table:
        shutil.rmtree(folder)
        shutil.copytree(aside, folder)
        return lake.load_table("db.t")

    before = ledger(restore())
    steps = fatal_steps(lambda: act(lake.load_table("db.t")), folder, counted=False)
    commits = set[int]()
    for fatal in steps[which]:
        restore()
        assert killed(lambda: act(lake.load_table("db.t")), fatal)
        table = lake.load_table("db.t")
        now = ledger(table)
        assert now == {**dict.fromkeys(now, LEFT), **before}, fatal
        commits.add(len(now) - len(before))
        left = unneeded(table)
        assert {str(path(each)) for each in remove(table).orphan_file_location} == left, fatal
        act(table)
        remove(table, dry_run=False)
        table = lake.load_table("db.t")
        now = ledger(table)
        assert now == {**dict.fromkeys(now, LEFT), **before}, fatal
        assert unneeded(table) == set(), fatal
    assert len(steps) >= least
    assert {0, 1} <= commits


@pytest.mark.gate("kills a process at each step")
def test_a_quarantine_whose_emptying_is_killed_is_emptied_by_the_next(
    template: tuple[Any, Path],
) -> None:
    lake, aside = template
    folder = path(lake.load_table("db.t").location())

    def restore() -> Table:
        shutil.rmtree(folder)
        shutil.copytree(aside, folder)
        for name in ("data/left.parquet", "data/p=0/left.parquet", "metadata/left-m0.avro"):
            (folder / name).write_bytes(b"left")
        table = lake.load_table("db.t")
        assert remove(table, dry_run=False, quarantine=True).deleted_files_count == 3
        return table

    def empty() -> Any:
        kept = lake.load_table("db.t").maintenance
        return kept.empty_quarantine(older_than=LATER, dry_run=False)

    before, there = ledger(restore()), set[int]()
    steps = fatal_steps(empty, folder)
    for fatal in steps:
        table = restore()
        assert killed(empty, fatal)
        assert ledger(lake.load_table("db.t")) == before
        left = unneeded(table)
        assert all("/_icecomb_quarantine/" in each for each in left)
        there.add(len(left))
        assert empty().deleted_files_count == len(left)
        assert not (folder / "_icecomb_quarantine").exists()
        assert unneeded(lake.load_table("db.t")) == set()
    assert len(steps) >= 6
    assert there == {0, 1, 2, 3}
