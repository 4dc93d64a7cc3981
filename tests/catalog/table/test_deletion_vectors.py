"""Rows of version 3 tables are deleted by deletion vectors: one a data file, in one file a change."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from icecomb.format.errors import ConflictError, ValidationError
from icecomb.format.expressions.sql.parser import parse
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.manifests.reader import read_manifest
from icecomb.format.row_changes import row_level_change
from icecomb.format.row_changes.row_level_change import delete_rows
from icecomb.format.row_changes.write_target import WriteTarget
from icecomb.format.rows.deletes.position_delete import PositionDeletes
from tests.rings import sampled

SCHEMA = pa.schema([("id", pa.int64()), ("s", pa.string())])
ON_READ = {f"write.{each}.mode": "merge-on-read" for each in ("delete", "update", "merge")}


def frame(*ids: int) -> pa.Table:
    return pa.table([pa.array(ids, pa.int64()), [f"s{i}" for i in ids]], SCHEMA)


def new_table(lake, *parts, version=3, **properties):
    given = {"format-version": str(version), **ON_READ}
    given |= {key.replace("_", "."): value for key, value in properties.items()}
    table = lake.create_table("db.t", SCHEMA, properties=given)
    for part in parts:
        table.append(part)
    return table


def upgrade(table):
    table.transaction().upgrade_table_version(3).commit_transaction()


def live(table, branch="main"):
    """The live delete files of a branch."""
    return [
        entry.data_file
        for manifest in read_manifests(table.io, table.metadata.snapshot_by_name(branch))
        for entry in read_manifest(table.io, manifest)
        if entry.is_live and entry.data_file.content.value
    ]


def deleted(table, branch="main"):
    """The positions in each vector, in the order of the data files' rows; no data file has two."""
    found = {}
    for file in live(table, branch):
        assert file.is_deletion_vector
        assert file.referenced_data_file not in found
        tasks = table.scan().use_ref(branch).plan_files()
        (task,) = [task for task in tasks if task.file_path == file.referenced_data_file]
        positions = PositionDeletes(table.io).of(task.file, [file])
        assert len(positions) == file.record_count
        found[file.referenced_data_file] = positions.tolist()
    return sorted(found.values())


def ids(table, branch="main"):
    return sorted(table.scan().use_ref(branch).to_arrow()["id"].to_pylist())


def on_disk(table, suffix=".puffin"):
    folder = Path(table.location().removeprefix("file:"))
    return {str(path) for path in folder.rglob(f"*{suffix}")}


def test_a_delete_writes_one_file_with_a_vector_for_each_data_file(lake):
    table = new_table(lake, frame(*range(10)), frame(*range(10, 20)), frame(*range(20, 30)))
    table.delete("id in (1, 3, 12)")
    assert deleted(table) == [[1, 3], [2]]
    assert len({file.file_path for file in live(table)}) == len(on_disk(table)) == 1
    summary = table.current_snapshot().summary
    assert summary["operation"] == "delete"
    assert (summary["added-dvs"], summary["added-position-deletes"]) == ("2", "3")
    assert ids(table) == sorted(set(range(30)) - {1, 3, 12})


def test_the_next_delete_takes_over_what_was_deleted_before(lake):
    table = new_table(lake, frame(*range(10)), frame(*range(10, 20)))
    table.delete("id in (1, 12)")
    table.delete("id in (5, 6)")
    assert deleted(table) == [[1, 5, 6], [2]]
    summary = table.current_snapshot().summary
    assert (summary["added-dvs"], summary["removed-dvs"]) == ("1", "1")
    assert (summary["total-delete-files"], summary["total-position-deletes"]) == ("2", "4")
    # the vector of the other data file is still in the older file
    assert len({file.file_path for file in live(table)}) == 2
    # and earlier snapshots are unchanged
    before = table.snapshots()[-2].snapshot_id
    assert table.scan(snapshot_id=before).count() == 18


def test_a_data_file_whose_last_row_is_deleted_goes_with_its_vector(lake):
    table = new_table(lake, frame(0, 1, 2, 3), frame(7))
    table.delete("id in (0, 2)")
    table.delete("id in (1, 3)")
    assert live(table) == []
    assert ids(table) == [7]
    summary = table.current_snapshot().summary
    assert (summary["removed-dvs"], summary["deleted-data-files"]) == ("1", "1")
    assert (summary["total-delete-files"], summary["total-position-deletes"]) == ("0", "0")


def test_updated_and_merged_rows_are_deleted_by_vectors(lake):
    table = new_table(lake, frame(*range(6)))
    table.delete("id = 0")
    new = pa.table([pa.array([1, 2, 9], pa.int64()), ["s1", "new", "s9"]], SCHEMA)
    result = table.upsert(new, ["id"])
    assert (result.rows_updated, result.rows_inserted) == (1, 1)
    assert deleted(table) == [[0, 2]]
    merged = pa.table([pa.array([3, 4, 5], pa.int64()), ["gone", "merged", "s5"]], SCHEMA)
    merge = table.merge(merged, "t.id = s.id")
    merge = merge.when_matched_delete("s.s = 'gone'").when_matched_update_all("s.s = 'merged'")
    assert merge.execute().delete_files_added == 1
    assert deleted(table) == [[0, 2, 3, 4]]
    found = {row["id"]: row["s"] for row in table.scan().to_arrow().to_pylist()}
    assert found == {1: "s1", 2: "new", 4: "merged", 5: "s5", 9: "s9"}


def test_what_version_2_deleted_is_taken_over_and_files_about_it_alone_go(lake):
    table = new_table(lake, frame(*range(10)), frame(*range(10, 20)), version=2)
    table.delete("id in (1, 11)")  # a file each
    with table.update_properties() as update:
        update.set("write.delete.granularity", "partition")
    table.delete("id in (2, 12)")  # one about both
    upgrade(table)
    table.delete("id = 3")
    by_kind = {True: [], False: []}
    for file in live(table):
        by_kind[file.is_deletion_vector].append(file)
    assert [file.record_count for file in by_kind[True]] == [3]
    # the file about both stays, and that about the other data file
    assert sorted(file.record_count for file in by_kind[False]) == [1, 2]
    assert ids(table) == sorted(set(range(20)) - {1, 2, 3, 11, 12})
    assert table.current_snapshot().summary["removed-position-delete-files"] == "1"


def test_two_writers_who_update_rows_of_one_data_file_are_told_who_was_first(lake):
    table = new_table(lake, frame(*range(10)), frame(*range(10, 20)))
    other = lake.load_table("db.t")
    table.delete("id = 1")
    new = pa.table([pa.array([2], pa.int64()), ["new"]], SCHEMA)
    with pytest.raises(ConflictError, match="Found concurrently added DV for data file") as refused:
        other.upsert(new, ["id"])
    assert refused.value.context["snapshot_ids"] == (table.current_snapshot().snapshot_id,)
    assert refused.value.hint
    # what it wrote is gone
    assert on_disk(table) == {file.file_path.removeprefix("file:") for file in live(table)}
    other.refresh().upsert(new, ["id"])
    assert deleted(other) == [[1, 2]]


@pytest.mark.parametrize("level", ["serializable", "snapshot"])
def test_a_delete_finds_its_rows_again_if_others_deleted_rows_of_the_same_data_file(lake, level):
    table = new_table(lake, frame(*range(10)), **{"write.delete.isolation-level": level})
    other = lake.load_table("db.t")
    table.delete("id in (1, 2)")
    other.delete("id in (2, 3)")
    assert deleted(other) == [[1, 2, 3]]
    assert other.current_snapshot().summary["added-position-deletes"] == "3"
    assert other.current_snapshot().parent_snapshot_id == table.current_snapshot().snapshot_id
    # the file of the first attempt is gone
    assert len(on_disk(table)) == 2


def test_a_delete_finds_its_rows_again_if_others_removed_a_data_file(lake):
    table = new_table(lake, frame(*range(10)), frame(*range(10, 20)))
    other = lake.load_table("db.t")
    table.delete("id < 10")
    other.delete("id in (3, 13)")
    assert deleted(other) == [[3]]
    assert ids(other) == sorted(set(range(10, 20)) - {13})


def test_a_delete_gives_up_if_others_are_first_each_time(lake, monkeypatch):
    table = new_table(lake, frame(*range(10)), **{"commit.retry.num-retries": "2"})
    other, numbers = lake.load_table("db.t"), count()
    finding = row_level_change.delete_rows

    def beaten(target, row_filter):
        change = finding(target, row_filter)
        if target.snapshot_properties:
            other.refresh().delete(f"id = {next(numbers)}")
        return change

    monkeypatch.setattr(row_level_change, "delete_rows", beaten)
    with pytest.raises(ConflictError, match="Found concurrently added DV"):
        table.delete("id = 9", {"who": "beaten"})
    assert next(numbers) == 3
    assert ids(other) == list(range(3, 10))


def test_writers_who_delete_rows_of_different_data_files_are_no_conflict(lake):
    table = new_table(lake, frame(*range(10)), frame(*range(10, 20)))
    other = lake.load_table("db.t")
    table.delete("id = 1")
    other.delete("id = 12")
    assert deleted(other) == [[1], [2]]
    assert ids(other) == sorted(set(range(20)) - {1, 12})


def test_position_deletes_from_before_an_upgrade_are_refused_and_removed(lake):
    table = new_table(lake, frame(*range(10)), version=2)
    change = delete_rows(WriteTarget(table.io, table.metadata), parse("id = 1"))
    written = [file.file_path for file in change.delete_files]
    assert all(table.io.exists(path) for path in written)
    upgrade(lake.load_table("db.t"))
    with pytest.raises(ConflictError, match="upgraded to format version 3, where rows are deleted"):
        table.commit(change)
    assert not any(table.io.exists(path) for path in written)
    table.refresh().delete("id = 1")
    assert deleted(table) == [[1]]


def test_a_delete_finds_its_rows_again_after_an_upgrade(lake):
    table = new_table(lake, frame(*range(10)), version=2)
    upgrade(lake.load_table("db.t"))
    assert table.metadata.format_version == 2
    table.delete("id = 1")
    assert deleted(table) == [[1]]
    assert not any("-deletes.parquet" in path for path in on_disk(table, ".parquet"))


def test_an_update_from_before_an_upgrade_says_so(lake):
    table = new_table(lake, frame(*range(10)), version=2)
    upgrade(lake.load_table("db.t"))
    new = pa.table([pa.array([1], pa.int64()), ["new"]], SCHEMA)
    with pytest.raises(ConflictError, match="upgraded to format version 3") as refused:
        table.upsert(new, ["id"])
    assert "repeat the change" in refused.value.hint
    table.refresh().upsert(new, ["id"])
    assert deleted(table) == [[1]]


def test_two_deletes_of_one_transaction_leave_one_vector(lake):
    table = new_table(lake, frame(*range(10)))
    with table.transaction() as transaction:
        transaction.delete("id = 1")
        transaction.append(frame(20))
        transaction.delete("id in (2, 20)")
    assert deleted(table) == [[1, 2]]
    assert ids(table) == [0, *range(3, 10)]


def test_branches_have_vectors_of_their_own(lake):
    table = new_table(lake, frame(*range(10)))
    table.delete("id = 1")
    table.manage_snapshots().create_branch(table.current_snapshot().snapshot_id, "audit").commit()
    table.refresh().delete("id = 2", branch="audit")
    table.delete("id = 3")
    assert deleted(table, "audit") == [[1, 2]]
    assert deleted(table) == [[1, 3]]
    assert ids(table, "audit") == [0, *range(3, 10)]


def test_a_file_that_the_table_has_twice_loses_the_rows_of_both(lake):
    table = new_table(lake, frame(*range(5)))
    (task,) = table.scan().plan_files()
    table.add_files([task.file_path], check_duplicate_files=False)
    table.delete("id = 1")
    table.delete("id = 2")
    assert ids(table) == [0, 0, 3, 3, 4, 4]
    assert [file.record_count for file in live(table)] == [2]


def test_a_file_that_was_added_again_loses_no_row_that_only_its_older_entry_lost(lake):
    table = new_table(lake, frame(*range(5)), version=2)
    (task,) = table.scan().plan_files()
    table.delete("id = 1")
    table.add_files([task.file_path], check_duplicate_files=False)
    upgrade(table)
    expected = [0, 0, 1, 2, 2, 3, 3, 4, 4]
    with pytest.raises(ValidationError, match="more than once") as told:
        table.refresh().delete("id = 2")
    assert told.value.context["path"] == task.file_path
    assert ids(table.refresh()) == expected
    assert not on_disk(table)
    # nor does a row come back that only the newer entry still has
    for change in (
        lambda: table.delete("id = 1"),
        lambda: table.merge(frame(1), ["id"]).when_matched_delete().execute(),
    ):
        with pytest.raises(ValidationError, match="more than once"):
            change()
    # changes of other rows may read it
    table.delete("s = 's3x'")
    assert ids(table.refresh()) == expected


def test_a_file_that_has_a_vector_is_not_added_again(lake):
    """The vector would be older than the new entry, which readers refuse."""
    table = new_table(lake, frame(*range(5)), frame(5, 6))
    first, second = (task.file_path for task in table.scan().plan_files())
    table.delete("id = 1")
    (vector,) = live(table)
    other = ({first, second} - {vector.referenced_data_file}).pop()
    with pytest.raises(ValidationError, match="has a deletion vector"):
        table.add_files([vector.referenced_data_file], check_duplicate_files=False)
    table.add_files([other], check_duplicate_files=False)
    assert ids(table) == [0, 2, 3, 4, 5, 5, 6, 6]
    files = {task.file_path: task.file for task in table.scan().plan_files()}
    append = table.new_fast_append().append_data_file(files[other])
    with pytest.raises(ValidationError, match="has a deletion vector") as told:
        table.commit(append.append_data_file(files[vector.referenced_data_file]))
    assert told.value.context["path"] == vector.referenced_data_file
    assert ids(table) == [0, 2, 3, 4, 5, 5, 6, 6]


def test_an_append_finds_the_vector_that_its_file_got_meanwhile(lake):
    table = new_table(lake, frame(*range(5)))
    (task,) = table.scan().plan_files()
    append = table.new_fast_append().append_data_file(task.file)
    lake.load_table("db.t").delete("id = 1")
    with pytest.raises(ValidationError, match="has a deletion vector"):
        table.commit(append)
    assert ids(table.refresh()) == [0, 2, 3, 4]


def test_a_rolled_back_delete_leaves_the_vector_of_before(lake):
    table = new_table(lake, frame(*range(5)))
    table.delete("id = 1")
    first = table.current_snapshot().snapshot_id
    table.delete("id = 2")
    table.manage_snapshots().rollback_to_snapshot(first).commit()
    table.refresh().delete("id = 3")
    assert deleted(table) == [[1, 3]]


def test_whole_and_scattered_rows_are_deleted_exactly(lake):
    table = new_table(lake, frame(*range(200_000)), write_delete_mode="merge-on-read")
    rng = np.random.default_rng(5)
    gone = set(range(70_000, 140_000)) | set(rng.integers(0, 200_000, 300).tolist())
    table.delete("id >= 70000 and id < 140000")
    table.delete(f"id in ({', '.join(map(str, sorted(gone)[:400]))})")
    gone = set(range(70_000, 140_000)) | set(sorted(gone)[:400])
    assert ids(table) == sorted(set(range(200_000)) - gone)
    (vector,) = live(table)
    assert vector.record_count == len(gone)


def test_version_2_gets_no_vectors(lake):
    table = new_table(lake, frame(*range(5)), version=2)
    table.delete("id = 1")
    (file,) = live(table)
    assert not file.is_deletion_vector
    assert on_disk(table) == set()
    assert "added-dvs" not in table.current_snapshot().summary


def test_threads_that_delete_rows_of_one_data_file_all_succeed(lake):
    table = new_table(lake, frame(*range(20)))

    def delete(first: int) -> None:
        own = lake.load_table("db.t")
        for n in range(first, first + 3):
            own.delete(f"id = {n}")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(delete, (0, 4, 8, 12)))
    left = sorted(set(range(20)) - {n for first in (0, 4, 8, 12) for n in range(first, first + 3)})
    assert ids(table.refresh()) == left
    assert len(deleted(table)) == 1


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("mode", sampled(["merge-on-read", "copy-on-write"], keep=1))
def test_rows_are_deleted_and_read_without_importing_pandas(lake, version, mode):
    table = new_table(lake, frame(*range(10)), version=version, write_delete_mode=mode)
    table.delete("id = 1")
    code = """
import sys
from icecomb.catalog import open_table
table = open_table(sys.argv[1])
table.delete("id = 3")
found = table.scan("id < 7")
print(sum(batch.num_rows for batch in found.to_arrow_batches()), "pandas" in sys.modules)
"""
    command = [sys.executable, "-c", code, table.location()]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd="/")
    assert done.stdout.split() == ["5", "False"]
