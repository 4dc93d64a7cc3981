"""Writers of Hive that begin before the conversion and end after it: what Hive was told is done is in the table, or named."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icecomb.catalog import migrate
from icecomb.catalog.migrate.applying import hive_parts
from icecomb.catalog.migrate.reverting.present_state import examine_migration
from icecomb.catalog.report.finding import Severity
from icecomb.format.errors import MigrationError
from tests.catalog.numbered_rows import ids, numbers

MADE = "in_flight"
ALTER = "alter_table_with_environment_context"
STAGING = ".hive-staging_hive_2099-01-01_10-00-00_001_42-1"


class Said:
    """Progress that does something at the first thing it is told of."""

    def __init__(self, act: Callable[[], None]) -> None:
        self.act, self.messages = act, list[str]()

    def task(self, *_: Any) -> Any:
        return nullcontext(lambda _: None)

    def say(self, message: str) -> None:
        self.messages.append(message)
        if len(self.messages) == 1:
            self.act()


class HiveInsert:
    """``INSERT INTO t PARTITION (k=…)`` of Hive 3.1, compiled while it was a Hive table (Hive.loadPartition)."""

    def __init__(self, table: Any, value: str, folder: str) -> None:
        self.table, self.value = table, value
        self.folder: Path = table.folder / folder
        self.staging = self.folder / STAGING
        (self.staging / "-ext-10000").mkdir(parents=True)

    def end(self, *rows: int) -> Path:
        """Move the file to its place: over the one that is there, where the partition has no entry."""
        place = self.table.name.split(".")
        there = self.table.catalog.client.partitions.named(*place, [f"k={self.value}"])
        name = "part-0_copy_1.parquet" if there else "part-0.parquet"
        made = self.staging / "-ext-10000" / "part-0.parquet"
        pq.write_table(numbers(*rows), made)
        made.replace(self.folder / name)
        shutil.rmtree(self.staging)
        return self.folder / name


@pytest.fixture
def two(make_hive_table: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A table of two partitions, whose entries are dropped one by one."""
    monkeypatch.setattr(hive_parts, "PAGE", 1)
    parts = {(k,): numbers(int(k)) for k in "12"}
    return make_hive_table({"id": "bigint"}, {"k": "int"}, parts)


def test_an_insert_that_began_before_the_turn_keeps_the_files_of_its_partition(
    two: Any, proxied: Any, proxy: Any
) -> None:
    begun: list[HiveInsert] = []
    proxy.after(ALTER, lambda: begun.append(HiveInsert(two, "1", "p0")))
    said = Said(lambda: begun[0].end(7))
    done = migrate.apply(proxied, two.name, progress=said)
    assert f"waiting for writers of {two.name}: file:{two.folder}/p0/{STAGING}" in said.messages[0]
    assert "1 files that Hive added after the conversion were taken in" in said.messages[-1]
    assert (done.files, done.rows) == (2, 2)
    assert ids(two) == [1, 2, 7]
    found = migrate.verify(two.catalog, two.name)
    assert (found.difference_count, found.hive.rows, found.iceberg.rows) == (0, 3, 3)
    plan = migrate.revert(two.catalog, two.name)
    assert not plan.loses_data
    migrate.revert(two.catalog, two.name, dry_run=False)
    assert pq.read_table(two.folder / "p0" / "part-0_copy_1.parquet").column(0).to_pylist() == [7]
    assert migrate.apply(two.catalog, two.name).rows == 3


def test_a_writer_that_does_not_end_is_named_and_no_partition_is_taken_away(
    two: Any, run: Any
) -> None:
    writer = HiveInsert(two, "1", "p0")
    with pytest.raises(
        MigrationError, match=r"is being written to: .*nothing was changed"
    ) as caught:
        migrate.apply(two.catalog, two.name, wait=0)
    assert "--wait" in (caught.value.hint or "")
    assert not two.entry.is_iceberg
    assert run("apply", two.name, "--wait", "0")[0] == 1
    writer.end(7)
    assert run("apply", two.name, "--wait", "0")[0] == 0
    assert ids(two) == [1, 2, 7]


def test_a_lock_of_a_statement_that_began_before_the_turn_is_waited_for(
    make_hive_table: Any, proxied: Any, proxy: Any
) -> None:
    """Where the table is committed to without locks our own lock does not wait for it."""
    table = make_hive_table(
        {"id": "bigint"}, rows=numbers(1), parameters={"engine.hive.lock-enabled": "false"}
    )
    client, place = table.catalog.client, table.name.split(".")
    held: list[int] = []

    def hold() -> None:
        answer = client.lock(*place, user="ann", host="there", agent="hive_1")
        held.append(answer.lock_id)

    def end() -> None:
        pq.write_table(numbers(7), table.folder / "000000_0.parquet")
        client.unlock(held[0])

    assert proxied.rejects_stale_swap(table.name, expectation_sent=True)
    proxy.after(ALTER, hold)
    said = Said(end)
    migrate.apply(proxied, table.name, progress=said)
    assert "ann@there" in said.messages[0]
    assert ids(table) == [1, 7]


def test_folders_that_nobody_works_in_any_more_keep_nothing_from_being_done(two: Any) -> None:
    left = two.folder / "_temporary" / "0"
    left.mkdir(parents=True)
    pq.write_table(numbers(9), left / "part-0.parquet")
    os.utime(left / "part-0.parquet", (time.time() - 90_000,) * 2)
    (two.folder / "_impala_insert_staging").mkdir()  # it stays there
    assert migrate.apply(two.catalog, two.name, wait=0).rows == 2


def test_an_overwrite_of_an_unpartitioned_table_in_flight_is_waited_for(
    make_hive_table: Any,
) -> None:
    table = make_hive_table({"id": "bigint"}, rows=numbers(1))
    (table.folder / STAGING).mkdir()

    def end() -> None:
        (table.folder / "part-0.parquet").unlink()
        pq.write_table(numbers(8, 9), table.folder / "000000_0.parquet")
        (table.folder / STAGING).rmdir()

    assert migrate.apply(table.catalog, table.name, progress=Said(end)).rows == 2
    assert ids(table) == [8, 9]
    assert migrate.verify(table.catalog, table.name).difference_count == 0


def named(table: Any, run: Any, what: str) -> None:
    """Everybody who is asked tells of a file, and nobody gives the way back up."""
    found = migrate.verify(table.catalog, table.name)
    assert [one for one in found.differences if what in one] != []
    code, out, _ = run("status", table.name)
    assert code == 3
    assert "files differ since: run" in out
    assert what in out
    with pytest.raises(MigrationError, match=f"{what}|has no finished migration"):
        migrate.finalize(table.catalog, table.name, unverified=True)
    findings = list(examine_migration(table.catalog, table.entry))
    assert any(what in one.message and one.severity is Severity.PROBLEM for one in findings)


def test_a_file_that_is_replaced_in_the_take_away_is_told_by_all_until_the_table_went_back(
    two: Any, proxied: Any, proxy: Any, run: Any
) -> None:
    """The writer left no sign: another row, of the same length, where the partition had no entry."""
    file = two.folder / "p0" / "part-0.parquet"

    def replace_file() -> None:
        file.unlink()
        pq.write_table(numbers(7), file)

    proxy.after("drop_partitions_req", replace_file)
    with pytest.raises(MigrationError, match="Hive replaced or removed 1 of its files") as caught:
        migrate.apply(proxied, two.name)
    assert "icecomb migrate revert" in (caught.value.hint or "")
    with pytest.raises(MigrationError, match="Hive replaced or removed 1 of its files"):
        migrate.apply(two.catalog, two.name)
    named(two, run, str(file))
    migrate.revert(two.catalog, two.name, dry_run=False)
    assert migrate.apply(two.catalog, two.name).rows == 2
    assert ids(two) == [2, 7]
    assert migrate.verify(two.catalog, two.name).difference_count == 0


def test_a_file_that_comes_after_all_is_told_by_all_until_apply_takes_it_in(
    two: Any, run: Any, icecomb: Any
) -> None:
    migrate.apply(two.catalog, two.name)
    assert migrate.verify(two.catalog, two.name).difference_count == 0
    file = two.folder / "p1" / "000000_0.parquet"
    pq.write_table(numbers(7), file)
    named(two, run, str(file))
    assert icecomb("doctor", two.name)[0] == 3
    done = migrate.apply(two.catalog, two.name)
    assert not done.already
    assert {"id": 7, "k": 2} in two.rows()
    assert migrate.verify(two.catalog, two.name).difference_count == 0
    assert run("status", two.name)[0] == 0
    assert icecomb("doctor", two.name)[0] == 0
    assert migrate.apply(two.catalog, two.name).already
    # rows of the Iceberg table's own are set aside by a revert, Hive's stay
    two.catalog.load_table(two.name).append(pa.table({"id": [9], "k": pa.array([1], pa.int32())}))
    migrate.revert(two.catalog, two.name, dry_run=False, allow_data_loss=True)
    assert file.exists()


def test_files_that_the_table_does_not_use_any_more_are_no_difference(two: Any) -> None:
    migrate.apply(two.catalog, two.name)
    loaded = two.catalog.load_table(two.name)
    loaded.delete("k = 1")
    (two.folder / "p0" / "part-0.parquet").unlink()
    assert migrate.apply(two.catalog, two.name).already


def test_a_partition_that_hive_adds_in_the_turn_is_a_difference_for_verify_too(
    two: Any, proxied: Any, proxy: Any, run: Any
) -> None:
    new = two.folder / "k=3"
    new.mkdir()
    pq.write_table(numbers(3), new / "000000_0.parquet")
    storage = replace(two.partitions[0].storage, location=f"file:{new}")
    added = replace(two.partitions[0], values=("3",), storage=storage, wire=None)
    proxy.after(ALTER, lambda: two.catalog.client.partitions.add([added]))
    with pytest.raises(MigrationError, match="Hive added 1 files"):
        migrate.apply(proxied, two.name)
    named(two, run, f"{new}/000000_0.parquet")
    loaded = two.catalog.load_table(two.name)
    loaded.add_files([f"file:{new}/000000_0.parquet"], partition={"k": "3"})
    assert migrate.verify(two.catalog, two.name).difference_count == 0
    migrate.apply(two.catalog, two.name)
    assert ids(two) == [1, 2, 3]
