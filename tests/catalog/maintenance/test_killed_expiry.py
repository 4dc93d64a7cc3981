"""Expiry and clean-up that are killed before and after every change of the storage.

The table is readable at every moment, nothing that it reaches is gone, and the next run removes
what the killed one left.
"""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from killed_process import fatal_steps, killed, some_steps

from icecomb.catalog import Table, load_catalog
from icecomb.format.storage.file_system import is_draft
from tests.catalog.numbered_rows import numbers

pytestmark = pytest.mark.gate("kills a process at each step")
LATER = 4_102_444_800_000


def open_lake(folder: Path) -> Any:
    return load_catalog("lake", type="hadoop", warehouse=str(folder))


def readable(table: Table) -> list[list[int]]:
    """The rows of all snapshots."""
    return [
        sorted(table.scan(snapshot_id=s.snapshot_id).to_arrow()["id"].to_pylist())
        for s in table.snapshots()
    ]


def age_lists(folder: Path) -> None:
    for path in folder.rglob("icecomb-gc-*.parquet"):
        os.utime(path, (time.time() - 3600,) * 2)


def made(folder: Path) -> Path:
    """A table most of whose files only old snapshots need."""
    lake = open_lake(folder)
    lake.create_namespace("db")
    table = lake.create_table("db.t", numbers().schema)
    table.append(numbers(1, 2))
    table.overwrite(numbers(3))
    with table.update_properties() as update:
        update.set("write.delete.mode", "merge-on-read")
    table.append(numbers(4, 5))
    table.delete("id = 4")
    table.overwrite(numbers(6))
    table.append(numbers(7))
    return folder


@pytest.mark.parametrize("which", some_steps())
def test_an_expiry_killed_anywhere_is_finished_by_the_next(tmp_path: Path, which: slice) -> None:
    template, aside = made(tmp_path / "lake"), tmp_path / "aside"
    shutil.copytree(template, aside)
    expected = open_lake(template).load_table("db.t")
    rows, wanted = readable(expected), len(expected.snapshots())

    def expire() -> None:
        table = open_lake(template).load_table("db.t")
        table.maintenance.expire_snapshots().older_than(LATER).commit()

    steps = fatal_steps(expire, template)
    for fatal in steps[which]:
        shutil.rmtree(template)
        shutil.copytree(aside, template)
        assert killed(expire, fatal)
        table = open_lake(template).load_table("db.t")
        assert len(table.snapshots()) in {1, wanted}
        assert readable(table) == rows[-len(table.snapshots()) :]
        table.maintenance.remove_orphan_files(older_than=LATER, any_age=True)
        age_lists(template)
        table.maintenance.expire_snapshots().older_than(LATER).commit()
        assert readable(table.refresh()) == rows[-1:]
        assert not list(template.rglob("icecomb-gc-*"))
        still = table.maintenance.remove_orphan_files(older_than=LATER, any_age=True)
        # what was half written under a hidden name is all that is left
        assert all(is_draft(Path(one).name) for one in still.orphan_file_location), (fatal, still)
    assert len(steps) > 20


@pytest.mark.parametrize(
    "stride", [5, pytest.param(1, marks=pytest.mark.full("killed at every step"))]
)
def test_a_clean_up_killed_anywhere_is_finished_by_the_next(tmp_path: Path, stride: int) -> None:
    template = made(tmp_path / "lake")
    table = open_lake(template).load_table("db.t")
    rows = readable(table)
    folder = Path(table.location())
    for quarantine in (False, True):
        fatal, finished = 0, False
        while not finished:
            orphans = [folder / "data" / f"left-{n}.parquet" for n in range(3)]
            for path in orphans:
                path.write_bytes(b"left")

            def remove(*, quarantine: bool = quarantine) -> None:
                open_lake(template).load_table("db.t").maintenance.remove_orphan_files(
                    older_than=LATER, any_age=True, dry_run=False, quarantine=quarantine
                )

            finished = not killed(remove, fatal)
            assert readable(open_lake(template).load_table("db.t")) == rows
            if quarantine:
                kept = {path.name for path in (folder / "_icecomb_quarantine").rglob("left-*")}
                assert kept | {p.name for p in orphans if p.exists()} == {p.name for p in orphans}
            remove()
            assert not any(path.exists() for path in orphans)
            shutil.rmtree(folder / "_icecomb_quarantine", ignore_errors=True)
            fatal += stride
        assert fatal > 5


@pytest.mark.parametrize("times", [2, 4])
def test_expiries_at_once_do_each_other_no_harm(tmp_path: Path, times: int) -> None:
    from concurrent.futures import ThreadPoolExecutor

    lake = open_lake(made(tmp_path / "lake"))
    tables = [lake.load_table("db.t") for _ in range(times)]

    def expire(table: Table) -> Any:
        return table.maintenance.expire_snapshots().older_than(LATER).commit()

    with ThreadPoolExecutor(times) as pool:
        results = list(pool.map(expire, tables))
    assert max(result.deleted_data_files_count for result in results) == 3
    table = lake.load_table("db.t")
    assert readable(table) == [[6, 7]]
    assert not list(tmp_path.rglob("icecomb-gc-*"))
