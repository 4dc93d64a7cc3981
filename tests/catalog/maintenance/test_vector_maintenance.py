"""Maintenance of version 3 tables: deletes become vectors, and these go with their data files."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from maintained_table import (
    ALL,
    RandomTable,
    assert_numbers,
    assert_vectors,
    data_on_disk,
    delete_by_value,
    frame,
    in_order,
    interrupting,
    live_files,
    new_table,
)

from icecomb.catalog.hadoop.pointer import HadoopPointer
from icecomb.catalog.maintenance import orphans
from icecomb.format.errors import CommitFailedError, ConflictError
from icecomb.format.maintenance.dangling_deletes import DanglingDeletesRemoval
from icecomb.format.maintenance.equality_conversion import EqualityConverter
from icecomb.format.maintenance.file_rewriter import FileRewriter
from icecomb.format.maintenance.position_deletes import PositionDeleteRewriter
from icecomb.format.maintenance.rewrite_commit import RewriteCommit
from icecomb.format.maintenance.vector_conversion import VectorConverter
from icecomb.format.manifests.manifest import DataFileContent
from icecomb.format.operation import merging
from icecomb.format.operation.overwrite import DeleteFiles, RewriteFiles
from icecomb.format.operation.row_delta import RowDelta
from icecomb.format.rows.deletes.deletion_vector_writer import DeletionVectorWriter
from icecomb.format.rows.write.data_writer import write_data
from tests.format.rows.equality_delete_writer import EqualityDeleteWriter

PARTITION_WIDE = {"write.delete.granularity": "partition"}
V3 = {"format-version": "3"}
EQUALITY = DataFileContent.EQUALITY_DELETES


@pytest.fixture
def while_rewriting(monkeypatch):
    return interrupting(monkeypatch, VectorConverter)


@pytest.fixture
def while_converting(monkeypatch):
    return interrupting(monkeypatch, EqualityConverter)


@pytest.fixture
def unlocked(monkeypatch):
    """Others of this process may be first while it commits."""

    def no_queue(_self, _held, _base=None):
        return False

    monkeypatch.setattr(HadoopPointer, "queue", no_queue)


def upgrade(table):
    with table.refresh().update_properties() as update:
        update.set("format-version", "3")
    return table.refresh()


def deletes(table):
    return [file for file in live_files(table) if file.content is not DataFileContent.DATA]


def counts(result):
    return (
        result.rewritten_delete_files_count,
        result.added_delete_files_count,
        result.failed_delete_files_count,
    )


def left_by_version_2(lake):
    """Three data files, with a position delete file about each of two, and one about both."""
    table = new_table(lake, frame(1, 2, 3), frame(4, 5, 6), frame(7, 8))
    table.delete("id in (1, 4)")
    with table.update_properties() as update:
        update.set("write.delete.granularity", "partition")
    table.delete("id in (2, 5)")
    return upgrade(table)


def rewrite(table, **given):
    return table.maintenance.rewrite_position_delete_files(**given)


def test_position_deletes_that_version_2_left_become_vectors(lake):
    table = left_by_version_2(lake)
    old = deletes(table)
    assert len(old) == 3
    result = rewrite(table)
    assert counts(result) == (3, 2, 0)
    assert result.rewritten_bytes_count == sum(file.file_size_in_bytes for file in old)
    new = deletes(table)
    assert all(file.is_deletion_vector for file in new)
    assert [file.record_count for file in new] == [2, 2]
    assert len({file.file_path for file in new}) == 1
    assert result.added_bytes_count == sum(file.content_size_in_bytes for file in new)
    assert sorted(in_order(table)) == [3, 6, 7, 8]
    summary = table.current_snapshot().summary
    assert (summary["operation"], summary["added-dvs"]) == ("replace", "2")
    assert summary["removed-position-delete-files"] == "3"
    assert summary["total-position-deletes"] == "4"
    assert_numbers(table)
    assert_vectors(table)
    # there is nothing left to do
    assert counts(rewrite(table)) == (0, 0, 0)


def test_position_deletes_do_not_become_vectors_of_a_data_file_that_was_added_again(lake):
    """They delete rows of the older entry only; a vector would delete those of both."""
    table = new_table(lake, frame(1, 2, 3))
    (path,) = data_on_disk(table)
    table.delete("id = 2")
    table.add_files([path], check_duplicate_files=False)
    table = upgrade(table)
    assert counts(rewrite(table)) == (0, 0, 0)
    assert sorted(in_order(table)) == [1, 1, 2, 3, 3]


def test_data_files_that_have_a_vector_keep_it(lake):
    table = left_by_version_2(lake)
    table.delete("id = 3")  # the last row of the first file, whose own delete file goes with it
    table.delete("id = 7")
    (vector,) = [file for file in deletes(table) if file.is_deletion_vector]
    assert counts(rewrite(table)) == (2, 1, 0)
    assert vector in deletes(table)
    assert sorted(in_order(table)) == [6, 8]
    assert_vectors(table)


def test_a_dry_run_tells_the_data_files_that_get_vectors(lake):
    table = left_by_version_2(lake)
    (planned,) = rewrite(table, dry_run=True).plan
    # the deletes about both may be about the third, too
    assert (planned.delete_files, planned.deletes) == (3, 4)
    assert planned.data_files >= 2


def test_a_filter_chooses_partitions_to_convert(lake):
    table = new_table(lake, frame(1, 2, 11, 12), by="truncate[10]")
    table.delete("id in (1, 11)")
    upgrade(table)
    assert counts(rewrite(table, where="id < 10")) == (1, 1, 0)
    kinds = {file.partition: file.is_deletion_vector for file in deletes(table)}
    assert kinds == {(0,): True, (10,): False}
    assert sorted(in_order(table)) == [2, 12]


def test_a_single_target_in_another_partition_stays_deleted(lake):
    """Its delete file applies by the path alone, and would be ignored beside a vector."""
    table = new_table(lake, frame(1, 2), frame(11, 12), by="truncate[10]")
    table.delete("id = 1")
    table.delete("id = 11")
    stray, other = deletes(table)
    moved = RowDelta(table.io).validate_from_snapshot(table.current_snapshot().snapshot_id)
    moved.remove_deletes(stray)
    moved.add_deletes(replace(stray, file_path=_copied(stray.file_path), partition=other.partition))
    table.commit(moved)
    upgrade(table)
    assert sorted(in_order(table)) == [2, 12]
    rewrite(table)
    assert all(file.is_deletion_vector for file in deletes(table))
    assert sorted(in_order(table)) == [2, 12]
    assert_vectors(table)


def _copied(path):
    source = Path(path.removeprefix("file:"))
    target = source.with_name(f"copied-{source.name}")
    target.write_bytes(source.read_bytes())
    return path.replace(source.name, target.name)


def test_rows_of_the_same_files_deleted_meanwhile_stay_deleted(lake, while_rewriting):
    table = left_by_version_2(lake)
    other = lake.load_table("db.t")
    while_rewriting(lambda: other.refresh().delete("id = 3"), lambda: other.delete("id = 7"))
    rewrite(table)
    assert sorted(in_order(table)) == [6, 8]
    assert_vectors(table)
    assert_numbers(table)


def test_data_files_rewritten_meanwhile_leave_no_vector_behind(lake, while_rewriting):
    table = left_by_version_2(lake)
    other = lake.load_table("db.t")
    while_rewriting(lambda: other.maintenance.rewrite_data_files(options=ALL))
    rewrite(table)
    assert sorted(in_order(table)) == [3, 6, 7, 8]
    assert deletes(table) == []


def test_data_files_removed_meanwhile_leave_no_vector_behind(lake, while_rewriting):
    table = left_by_version_2(lake)
    other = lake.load_table("db.t")
    while_rewriting(lambda: other.commit(DeleteFiles(other.io).delete_by_predicate("id < 4")))
    rewrite(table)
    assert sorted(in_order(table)) == [6, 7, 8]
    assert_vectors(table)


def test_an_upgrade_while_position_deletes_are_combined_makes_vectors_of_them(lake, monkeypatch):
    table = new_table(lake, frame(1, 2, 3), frame(4, 5, 6), **PARTITION_WIDE)
    table.delete("id = 1")
    table.delete("id = 4")
    interrupting(monkeypatch, PositionDeleteRewriter)(lambda: upgrade(lake.load_table("db.t")))
    before = data_on_disk(table)
    assert counts(rewrite(table, options=ALL)) == (2, 2, 0)
    assert all(file.is_deletion_vector for file in deletes(table))
    assert sorted(in_order(table)) == [2, 3, 5, 6]
    # the file that was written for version 2 is gone
    assert len(data_on_disk(table) - before) == 1


def test_equality_deletes_become_vectors_with_what_was_deleted_before(lake):
    table = new_table(lake, frame(1, 2, 3), frame(4, 5, 6), **V3)
    table.delete("id = 1")
    delete_by_value(table, 2)
    delete_by_value(table, 5)
    before = sorted(in_order(table))
    result = table.maintenance.convert_equality_deletes()
    assert result.rewritten_equality_delete_files_count == 2
    assert sorted(in_order(table)) == before == [3, 4, 6]
    assert sorted(file.record_count for file in deletes(table)) == [1, 2]
    assert_vectors(table)
    assert_numbers(table)
    summary = table.current_snapshot().summary
    assert summary["operation"] == "delete"
    assert (summary["added-dvs"], summary["removed-dvs"]) == ("2", "1")


def test_equality_deletes_of_all_partitions_and_of_one_give_one_vector(lake):
    table = new_table(lake, frame(1, 2, 3), **V3)
    with table.update_spec() as update:
        update.add_field("id", "truncate[10]", "p")
    table.append(frame(4, 5, 6))
    delete_by_value(table, 1)
    delete_by_value(table, 5)  # of the first spec: about all partitions
    local = table.metadata.spec().spec_id
    _delete_in_partition(table, 4, local)
    assert sorted(in_order(table)) == [2, 3, 6]
    table.maintenance.convert_equality_deletes()
    assert [file for file in deletes(table) if file.content is EQUALITY] == []
    assert sorted(in_order(table)) == [2, 3, 6]
    assert_vectors(table)


def test_keys_of_one_partition_stay_in_others_that_deletes_of_all_partitions_reach(lake):
    # spec, Scan Planning: equality deletes of a partition apply to data files of it alone
    table = new_table(lake, frame(), **V3)
    with table.update_spec() as update:
        update.add_field("s", "identity", "p")
    for name in ("here", "there"):
        table.append(frame(4, 5, 6).set_column(1, "s", pa.array([name] * 3)))
    delete_by_value(table, 6)  # of the first spec: about all partitions
    writer = EqualityDeleteWriter(table.io, table.refresh().metadata, uuid.uuid4().hex, ["id"])
    writer.write(pa.record_batch({"id": [5], "s": ["there"]}))
    (deletes_there,) = writer.close()
    table.commit(RowDelta(table.io).add_deletes(deletes_there))
    before = sorted(in_order(table))
    table.maintenance.convert_equality_deletes()
    assert sorted(in_order(table)) == before == [4, 4, 5]
    assert_vectors(table)


def _delete_in_partition(table, value, spec_id):
    writer = EqualityDeleteWriter(
        table.io, table.refresh().metadata, uuid.uuid4().hex, ["id"], spec_id=spec_id
    )
    writer.write(pa.record_batch({"id": [value]}))
    change = RowDelta(table.io)
    for file in writer.close():
        change.add_deletes(file)
    table.commit(change)


def test_rows_deleted_while_equality_deletes_are_converted_stay_deleted(lake, while_converting):
    table = new_table(lake, frame(1, 2, 3), frame(4, 5, 6), **V3)
    delete_by_value(table, 2)
    other = lake.load_table("db.t")
    while_converting(lambda: other.refresh().delete("id = 3"))
    table.maintenance.convert_equality_deletes()
    assert sorted(in_order(table)) == [1, 4, 5, 6]
    assert_vectors(table)
    assert_numbers(table)


def test_a_compaction_applies_vectors_and_removes_them(lake):
    table = new_table(lake, frame(1, 2, 3), frame(4, 5, 6), frame(7, 8), **V3)
    table.delete("id in (1, 5)")
    table.maintenance.rewrite_data_files(options=ALL)
    assert sorted(in_order(table)) == [2, 3, 4, 6, 7, 8]
    assert deletes(table) == []
    assert table.current_snapshot().summary["removed-dvs"] == "2"
    assert_numbers(table)


def test_rows_deleted_during_a_compaction_get_vectors_of_the_new_files(lake, meanwhile):
    table = new_table(lake, frame(1, 2, 3), frame(4, 5, 6), **V3)
    table.delete("id = 1")
    other = lake.load_table("db.t")
    meanwhile(lambda: other.refresh().delete("id in (2, 6)"))
    table.maintenance.rewrite_data_files(options=ALL)
    assert sorted(in_order(table)) == [3, 4, 5]
    (vector,) = deletes(table)
    assert vector.is_deletion_vector
    assert vector.record_count == 2
    assert_vectors(table)
    assert_numbers(table)


def test_vectors_of_an_attempt_that_was_overtaken_are_removed(lake, meanwhile, overtaken, unlocked):
    table = new_table(lake, frame(1, 2, 3, 4), frame(5, 6), **V3)
    other = lake.load_table("db.t")
    meanwhile(lambda: other.refresh().delete("id = 2"))
    overtaken(lambda: other.refresh().delete("id = 3"))
    table.maintenance.rewrite_data_files(options=ALL)
    assert sorted(in_order(table)) == [1, 4, 5, 6]
    assert_vectors(table)
    puffins = {path for path in data_on_disk(table) if path.endswith(".puffin")}
    assert len(puffins) == 3  # of the two deletes, and of the new file


def test_a_compaction_makes_way_for_vectors_by_api(lake):
    table = new_table(lake, frame(1, 2, 3), frame(4, 5, 6), **V3)
    other = lake.load_table("db.t")
    tasks = list(table.scan().plan_files())
    new = write_data(table.io, table.metadata, table.scan().to_arrow())
    change = RewriteFiles(table.io).validate_from_snapshot(table.current_snapshot().snapshot_id)
    change.rewrite_files([task.file for task in tasks], new)
    other.delete("id = 2")
    with pytest.raises(ConflictError, match="found new delete for replaced data file"):
        table.commit(change)


def test_deletes_that_apply_to_nothing_are_found_among_vectors(lake):
    table = left_by_version_2(lake)
    gone = DeleteFiles(table.io)  # both data files go, which have a delete file each
    for task in table.scan("id in (3, 6)").plan_files():
        gone.delete_data_file(task.file)
    table.commit(gone)
    table.delete("id = 7")
    assert len(deletes(table)) == 4
    table.commit(DanglingDeletesRemoval(table.io))
    # the file about several might be about the third
    assert sorted(file.is_deletion_vector for file in deletes(table)) == [False, True]
    assert in_order(table) == [8]


def test_position_deletes_beside_a_vector_apply_to_nothing(lake):
    table = new_table(lake, frame(1, 2, 3))
    table.delete("id = 1")
    (old,) = deletes(table)
    upgrade(table)
    table.delete("id = 2")
    (vector,) = deletes(table)
    # another writer leaves it there
    _put_back(table, old)
    assert len(deletes(table)) == 2
    table.commit(DanglingDeletesRemoval(table.io))
    assert deletes(table) == [vector]
    assert in_order(table) == [3]


def _put_back(table, old):
    """As a writer does that removes no position deletes: in a commit that version 3 would refuse."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merging, "check_delete_files", lambda *_: None)
        change = RowDelta(table.io).validate_from_snapshot(table.current_snapshot().snapshot_id)
        table.commit(change.add_deletes(old))


def expire(table):
    later = datetime.now(timezone.utc) + timedelta(days=1)
    table.refresh().expire_snapshots().older_than(later).retain_last(1).commit()


def puffins(table):
    return {path for path in data_on_disk(table) if path.endswith(".puffin")}


def test_an_expiration_keeps_a_file_as_long_as_one_vector_in_it_is_live(lake):
    table = new_table(lake, frame(1, 2, 3), frame(4, 5, 6), **V3)
    table.delete("id in (1, 4)")  # both vectors in one file
    (first,) = puffins(table)
    table.delete("id = 2")
    (second,) = puffins(table) - {first}
    expire(table)
    assert puffins(table) == {first, second}
    assert sorted(in_order(table)) == [3, 5, 6]
    table.delete("id = 5")
    (third,) = puffins(table) - {first, second}
    expire(table)
    assert puffins(table) == {second, third}
    assert sorted(in_order(table)) == [3, 6]
    assert_numbers(table)


def test_a_tag_keeps_the_files_of_its_vectors(lake):
    table = new_table(lake, frame(1, 2, 3), **V3)
    table.delete("id = 1")
    table.manage_snapshots().create_tag(table.current_snapshot().snapshot_id, "kept").commit()
    table.refresh().delete("id = 2")
    table.delete("id = 3")
    expire(table)
    assert len(puffins(table)) == 1
    assert table.scan().use_ref("kept").to_arrow()["id"].to_pylist() == [2, 3]


def test_orphans_are_files_of_which_no_vector_is_live(lake):
    table = new_table(lake, frame(1, 2, 3), frame(4, 5, 6), **V3)
    table.delete("id in (1, 4)")
    table.delete("id = 2")
    (one, *_) = live = sorted(puffins(table))
    orphan = Path(one).with_name("orphan.puffin")
    orphan.write_bytes(Path(one).read_bytes())
    later = datetime.now(timezone.utc) + timedelta(days=1)
    table.maintenance.remove_orphan_files(older_than=later, any_age=True, dry_run=False)
    assert sorted(puffins(table)) == live


@pytest.mark.parametrize("joined", [False, True])
def test_vectors_that_are_committed_while_orphans_are_looked_for_stay(lake, monkeypatch, joined):
    """Their Puffin file is no file of the table when it is listed; one of several is never."""
    table = new_table(lake, frame(1, 2, 3), frame(4, 5, 6), **V3)
    tasks = {task.file.record_count: task for task in table.scan().plan_files()}
    change, written = RowDelta(table.io), []
    for name, gone in (("one", [0]), ("two", [1]))[: 1 + joined]:
        writer = DeletionVectorWriter(table.io, table.metadata, name)
        writer.add(tasks[3].file, np.array(gone))
        written += writer.close()
    for file in written:
        change.add_deletes(file)
    change.validate_from_snapshot(table.current_snapshot().snapshot_id)
    look = orphans._Orphans.find

    def find(self):
        found = look(self)
        assert {path for path in found if path.endswith(".puffin")} == set(puffins(table))
        lake.load_table("db.t").commit(change)
        return found

    monkeypatch.setattr(orphans._Orphans, "find", find)
    later = datetime.now(timezone.utc) + timedelta(days=1)
    done = table.maintenance.remove_orphan_files(older_than=later, any_age=True, dry_run=False)
    assert len(done.orphan_file_location) == (2 if joined else 0)
    assert len(puffins(table)) == 1
    assert table.refresh().scan().count() == (4 if joined else 5)
    assert len(in_order(table)) == (4 if joined else 5)
    assert_vectors(table)


@pytest.mark.gate("six tables that others change all the time")
@pytest.mark.seeds(60, gate=4)
def test_whatever_happens_rows_are_exact_and_a_data_file_has_one_vector(
    lake, seed, monkeypatch, unlocked
):
    """Version 3 from the start, or an upgrade at some time, while others change the table."""
    random = Random(seed)
    changed = RandomTable(lake, random, random.choice([2, 3]))
    kinds = ("delete", "delete", "delete_by_value", "append", "upsert", "merge", "whole_files")
    changed.change(random.randint(3, 6), *kinds)
    others = [lambda: changed.change(random.randint(0, 2), "upgrade", *kinds, "compaction")] * 3
    for rewriter in (VectorConverter, PositionDeleteRewriter, EqualityConverter, FileRewriter):
        interrupting(monkeypatch, rewriter)(*others)
    interrupting(monkeypatch, RewriteCommit, "apply")(*others)
    for _ in range(4):
        action = random.choice(["rewrite", "convert", "compact", "expire", "dangling"])
        changed.told.append(action)
        table = changed.load()
        try:
            match action:
                case "rewrite":
                    rewrite(table, options=ALL)
                case "convert":
                    table.maintenance.convert_equality_deletes()
                case "compact":
                    table.maintenance.rewrite_data_files(options=ALL)
                case "dangling":
                    table.commit(DanglingDeletesRemoval(table.io))
                case "expire":
                    expire(table)
        except CommitFailedError as error:
            changed.told.append(f"refused: {error}")
        changed.check()
        changed.change(2, "upgrade", *kinds)
    changed.check()
    assert_numbers(changed.load())
