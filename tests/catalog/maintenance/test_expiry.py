"""What an expiry deletes: never what the table needs by then, and it says what it did."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icecomb.catalog import Table, open_table
from icecomb.catalog.maintenance.backup import plan_relocation, relocate
from icecomb.catalog.maintenance.expiry import ExpiredFiles, expire_at_once
from icecomb.format.errors import FileIOError, NoSuchSnapshotError, ValidationError
from icecomb.format.operation.expiry import expire as expiring
from icecomb.format.operation.expiry.expire import Deleted, ExpireSnapshots, collect_left
from icecomb.format.spec.own_folders import OwnFolders
from tests.catalog.numbered_rows import numbers
from tests.peers.stuck_file import stick

LATER = 4_102_444_800_000


@pytest.fixture
def table(lake: Any) -> Table:
    """Its first file is needed by snapshots only that expire."""
    made = lake.create_table("db.t", numbers().schema)
    made.append(numbers(1))
    made.overwrite(numbers(2))
    return made


def ids(table: Table) -> list[int]:
    return sorted(table.refresh().scan().to_arrow()["id"].to_pylist())


def first_file(table: Table) -> str:
    scan = table.scan(snapshot_id=table.snapshots()[0].snapshot_id)
    (path,) = [task.file.file_path for task in scan.plan_files()]
    return str(path)


def snapshot_ids(table: Table) -> list[int]:
    return [snapshot.snapshot_id for snapshot in table.refresh().snapshots()]


def lists(table: Table) -> list[Path]:
    return list(Path(table.location()).rglob("icecomb-gc-*"))


def applies(monkeypatch: Any, look: Callable[[], Any] = lambda: None) -> list[int]:
    """Counts the attempts; after each, before it is committed, something is done."""
    apply = ExpireSnapshots.apply
    calls: list[int] = []

    def applied(self: Any, base: Any) -> Any:
        changes = apply(self, base)
        calls.append(1)
        look()
        return changes

    monkeypatch.setattr(ExpireSnapshots, "apply", applied)
    return calls


@pytest.mark.filterwarnings("ignore:An expiration of db.t was never committed")
def test_nothing_is_expired_before_the_commit_and_then_what_was_asked_for_alone(
    table: Table,
) -> None:
    # PyIceberg's documentation: table.maintenance.expire_snapshots().by_id(12345).commit()
    table.append(numbers(3))
    with table.update_properties() as update:
        update.set("history.expire.max-snapshot-age-ms", "1")
    before = snapshot_ids(table)
    table.maintenance.expire_snapshots()
    table.maintenance.expire_snapshots().older_than(LATER).retain_last(1)
    expire = table.maintenance.expire_snapshots().by_id(before[0])
    assert "nothing has happened" in repr(expire)
    assert snapshot_ids(table) == before
    planned = expire.plan()
    assert snapshot_ids(table) == before
    assert expire.commit() == planned == expire.result
    assert snapshot_ids(table) == before[1:]
    assert str(planned) in repr(expire)
    with pytest.raises(ValidationError, match="committed already"):
        expire.commit()


def test_an_expiry_is_committed_at_the_end_of_its_block_unless_that_fails(table: Table) -> None:
    before = snapshot_ids(table)
    expire = table.maintenance.expire_snapshots().older_than(LATER)
    with pytest.raises(NoSuchSnapshotError), expire:
        expire.by_id(1)
    assert snapshot_ids(table) == before
    with table.maintenance.expire_snapshots() as expire:
        expire.by_ids(before[:1]).clean_expired_files(False)
    assert expire.result == ExpiredFiles()
    assert snapshot_ids(table) == before[1:]


def test_an_expiry_that_is_dropped_says_that_nothing_happened(table: Table) -> None:
    with pytest.warns(RuntimeWarning, match=r"An expiration of db\.t was never committed"):
        table.maintenance.expire_snapshots().older_than(LATER)
    with pytest.raises(
        NoSuchSnapshotError, match="There is no snapshot"
    ):  # and no warning beside it
        table.maintenance.expire_snapshots().by_id(1)


def test_ids_of_a_procedure_come_on_top_of_the_limits_of_the_table(table: Table) -> None:
    for value in (3, 4):
        table.append(numbers(value))
    with table.update_properties() as update:
        update.set("history.expire.max-snapshot-age-ms", "1")
    before = snapshot_ids(table)
    expire_at_once(table, snapshot_ids=before[1:2], retain_last=3, dry_run=False)
    assert snapshot_ids(table) == before[2:]


def test_arguments_of_the_call_are_refused(table: Table) -> None:
    before = snapshot_ids(table)
    with pytest.raises(TypeError, match="retain_last"):
        table.maintenance.expire_snapshots(retain_last=1)  # type: ignore[call-arg]
    assert snapshot_ids(table) == before


def test_the_list_is_there_before_the_commit_and_gone_afterwards(
    table: Table, monkeypatch: Any
) -> None:
    expected = first_file(table)
    seen: list[Any] = []

    def look() -> None:
        (path,) = lists(table)
        seen.extend(pq.read_table(path).to_pylist())

    applies(monkeypatch, look)
    done = table.maintenance.expire_snapshots().older_than(LATER).commit()
    assert {"location": expected, "kind": "data_files"} in seen
    assert len(seen) == sum(
        (
            done.deleted_data_files_count,
            done.deleted_manifest_files_count,
            done.deleted_manifest_lists_count,
        )
    )
    assert lists(table) == []


def raced(table: Table, lake: Any, meanwhile: Callable[[Table], Any]) -> Any:
    """An expiry whose first attempt is overtaken by another commit."""
    expire = table.expire_snapshots().older_than(LATER)
    expire.apply(table.metadata)
    assert len(lists(table)) == 1
    meanwhile(lake.load_table("db.t"))
    expire.commit()
    assert lists(table) == []
    return expire.result


def test_a_lost_race_reads_nothing_twice_and_spares_what_others_took(
    table: Table, lake: Any, monkeypatch: Any
) -> None:
    taken = first_file(table)
    searches: list[int] = []
    search = expiring.unreachable_files

    def counted(*given: Any) -> Any:
        searches.append(1)
        return search(*given)

    monkeypatch.setattr(expiring, "unreachable_files", counted)
    head = table.current_snapshot().snapshot_id

    def meanwhile(other: Table) -> None:
        with other.manage_snapshots() as manage:
            manage.create_tag(head, "head")
        other.add_files([taken])

    result = raced(table, lake, meanwhile)
    assert len(searches) == 1
    assert len(result.files.manifest_lists) == 1
    assert taken not in result.files.files
    assert ids(table) == [1, 2]
    assert table.scan(ref="head").to_arrow()["id"].to_pylist() == [2]


def test_what_others_take_after_the_commit_is_spared(
    table: Table, lake: Any, monkeypatch: Any
) -> None:
    taken = first_file(table)
    clean_up = ExpireSnapshots.clean_up

    def late(self: Any, committed: Any) -> None:
        lake.load_table("db.t").add_files([taken])
        clean_up(self, committed)

    monkeypatch.setattr(ExpireSnapshots, "clean_up", late)
    done = table.maintenance.expire_snapshots().older_than(LATER).commit()
    assert done.deleted_data_files_count == 0
    assert ids(table) == [1, 2]


def test_a_rollback_meanwhile_keeps_its_snapshot(table: Table, lake: Any) -> None:
    first = table.snapshots()[0].snapshot_id

    def roll_back(other: Table) -> None:
        with other.manage_snapshots() as manage:
            manage.rollback_to_snapshot(first)

    assert first not in raced(table, lake, roll_back).snapshot_ids
    assert ids(table) == [1]


def test_a_branch_that_is_made_meanwhile_keeps_its_snapshot(table: Table, lake: Any) -> None:
    first = table.snapshots()[0].snapshot_id

    def branch(other: Table) -> None:
        with other.manage_snapshots() as manage:
            manage.create_branch(first, "side")

    raced(table, lake, branch)
    assert ids(table) == [2]
    assert table.scan(ref="side").to_arrow()["id"].to_pylist() == [1]


def test_an_expiry_that_is_refused_leaves_no_list(table: Table, lake: Any) -> None:
    def forbid(other: Table) -> None:
        with other.update_properties() as update:
            update.set("gc.enabled", "false")

    with pytest.raises(ValidationError, match=r"gc\.enabled"):
        raced(table, lake, forbid)
    assert lists(table) == []
    assert len(table.refresh().snapshots()) > 1


def test_a_file_that_cannot_be_deleted_is_not_counted_and_the_next_run_deletes_it(
    table: Table, monkeypatch: Any
) -> None:
    stuck = first_file(table)
    with monkeypatch.context() as patch:
        stick(patch, stuck.__eq__)
        expire = table.expire_snapshots().older_than(LATER)
        expire.commit()
        assert expire.result.failed == (stuck,)
        assert stuck not in expire.result.files.files
        assert stuck in (expire.result.problem or "")
    (path,) = lists(table)
    assert table.maintenance.expire_snapshots().older_than(LATER).commit() == ExpiredFiles()
    assert Path(stuck).exists(), "the list is young: its run may be under way"
    os.utime(path, (time.time() - 3600,) * 2)
    again = table.maintenance.expire_snapshots().older_than(LATER).commit()
    assert again == ExpiredFiles(deleted_data_files_count=1)
    assert not Path(stuck).exists()
    assert lists(table) == []
    assert ids(table) == [2]


def die_before_commit(table: Table, monkeypatch: Any) -> None:
    """Leave the list of an expiration that died before its commit."""

    def die() -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        applies(patch, die)
        with pytest.raises(KeyboardInterrupt):
            table.maintenance.expire_snapshots().older_than(LATER).commit()


def test_a_failure_is_an_error_that_names_it(table: Table, monkeypatch: Any) -> None:
    stick(monkeypatch, lambda path: "/data/" in path)
    with pytest.raises(FileIOError, match="Not all files could be deleted"):
        table.maintenance.expire_snapshots().older_than(LATER).commit()
    monkeypatch.undo()
    assert ids(table) == [2]


def test_a_list_of_files_that_are_needed_deletes_none(table: Table, monkeypatch: Any) -> None:
    die_before_commit(table, monkeypatch)
    (path,) = lists(table)
    os.utime(path, (time.time() - 3600,) * 2)
    before = [s.snapshot_id for s in table.refresh().snapshots()]
    assert table.maintenance.expire_snapshots().commit() == ExpiredFiles()
    assert lists(table) == []
    assert [s.snapshot_id for s in table.refresh().snapshots()] == before
    for snapshot in table.snapshots():
        table.scan(snapshot_id=snapshot.snapshot_id).to_arrow()


def test_a_list_of_another_table_in_the_same_metadata_folder_is_left_alone(
    lake: Any, table: Table, monkeypatch: Any
) -> None:
    die_before_commit(table, monkeypatch)
    (path,) = lists(table)
    os.utime(path, (time.time() - 3600,) * 2)
    other = lake.create_table("db.other", numbers().schema)
    other.append(numbers(1))
    folder = {"write.metadata.path": str(Path(table.location()) / "metadata")}
    metadata = replace(other.metadata, properties=folder)
    own = OwnFolders([other.location(), table.location()], metadata, {})
    assert collect_left(other.io, metadata, own) == Deleted()
    assert lists(table) == [path]
    for snapshot in table.refresh().snapshots():
        table.scan(snapshot_id=snapshot.snapshot_id).to_arrow()


def test_a_list_in_a_copied_folder_names_files_of_the_original(
    table: Table, monkeypatch: Any, tmp_path: Path
) -> None:
    die_before_commit(table, monkeypatch)
    folder, copy = Path(table.location()), tmp_path / "copy"
    shutil.copytree(folder, copy)
    for path in copy.rglob("icecomb-gc-*"):
        os.utime(path, (time.time() - 3600,) * 2)
    plan = plan_relocation(table.io, f"{copy}/metadata/v3.metadata.json", None, str(copy))
    relocate(table.io, plan)
    relocated = open_table(plan.new_metadata_file)
    own = OwnFolders([str(copy), table.location()], relocated.metadata, {})
    assert collect_left(table.io, relocated.metadata, own) == Deleted()
    for snapshot in table.refresh().snapshots():
        table.scan(snapshot_id=snapshot.snapshot_id).to_arrow()


def test_a_damaged_list_and_other_files_are_left_alone(
    table: Table, caplog: pytest.LogCaptureFixture
) -> None:
    folder = Path(table.location()) / "metadata"
    damaged = folder / "icecomb-gc-00000000-0000-0000-0000-000000000000.parquet"
    other = folder / "icecomb-gc-notes.parquet"
    for path in (damaged, other):
        path.write_bytes(b"PAR1")
        os.utime(path, (time.time() - 3600,) * 2)
    table.maintenance.expire_snapshots().commit()
    assert damaged.exists()
    assert other.exists()
    assert f"{damaged.name} is not a list of icecomb's of files to delete" in caplog.text
    assert other.name not in caplog.text


@pytest.mark.parametrize("names", [["x"] * 100_000, [None]])
def test_a_list_that_names_no_files_is_left_alone(table: Table, names: list[str | None]) -> None:
    """Equal rows take no bytes: a list of a kilobyte would be gigabytes of names."""
    path = (
        Path(table.location()) / "metadata/icecomb-gc-00000000-0000-0000-0000-000000000000.parquet"
    )
    facts = {"table-uuid": str(table.metadata.table_uuid), "table-location": table.location()}
    kinds = pa.array(["data_files"] * len(names))
    written = pa.table({"location": pa.array(names, pa.string()), "kind": kinds})
    pq.write_table(written.replace_schema_metadata(facts), path, compression="zstd")
    os.utime(path, (time.time() - 3600,) * 2)
    own = OwnFolders([table.location()], table.metadata, {})
    assert collect_left(table.io, table.metadata, own) == Deleted()
    assert path.exists()


def test_a_dry_run_counts_the_files_that_earlier_runs_left(table: Table, monkeypatch: Any) -> None:
    die_before_commit(table, monkeypatch)
    (path,) = lists(table)
    left = Path(table.location()) / "data/left.parquet"
    left.write_bytes(b"rows")
    facts = {"table-uuid": str(table.metadata.table_uuid), "table-location": table.location()}
    names = [*pq.read_table(path)["location"].to_pylist(), str(left), f"{left}.gone"]
    listed = pa.table({"location": names, "kind": ["data_files"] * len(names)})
    pq.write_table(listed.replace_schema_metadata(facts), path)
    os.utime(path, (time.time() - 3600,) * 2)
    plan = table.maintenance.expire_snapshots().older_than(LATER).plan()
    assert left.exists()
    done = table.maintenance.expire_snapshots().older_than(LATER).commit()
    assert done == plan
    assert not left.exists()
    assert lists(table) == []


def test_a_transaction_that_is_given_up_leaves_no_list(table: Table) -> None:
    transaction = table.transaction()
    with transaction.expire_snapshots() as expire:
        expire.older_than(LATER)
    assert len(lists(table)) == 1
    transaction.abandon()
    assert lists(table) == []
    with table.transaction() as transaction:
        transaction.append(numbers(3))
        with transaction.expire_snapshots() as expire:
            expire.older_than(LATER)
    assert ids(table) == [2, 3]
    assert lists(table) == []
    assert len(table.snapshots()) == 1


def test_nothing_is_deleted_while_nobody_can_look_for_tables_that_went_on_from_this_one(
    table: Table, monkeypatch: Any
) -> None:
    def failing(*_: Any) -> None:
        raise FileIOError("the folder cannot be listed", hint="none")

    monkeypatch.setattr("icecomb.format.storage.local.LocalFileSystem.entries", failing)
    gone = first_file(table)
    expire = table.expire_snapshots().older_than(LATER)
    expire.commit()
    assert expire.result is not None
    assert expire.result.files.data_files == ()
    assert "cannot be listed" in (expire.result.problem or "")
    assert Path(gone).exists()
    monkeypatch.undo()
    assert len(lists(table)) == 1  # a later expiry goes on from the list of what to delete
    assert ids(table) == [2]
