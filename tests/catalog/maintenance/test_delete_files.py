"""Delete files are rewritten: the same rows are deleted, whoever writes to the table meanwhile."""

from __future__ import annotations

import uuid
from dataclasses import replace
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from agreed_rows import rows
from maintained_table import (
    ALL,
    SCHEMA,
    RandomTable,
    assert_numbers,
    data_on_disk,
    delete_by_value,
    files,
    frame,
    in_order,
    interrupting,
    new_table,
)

from icecomb.format.errors import (
    CommitFailedError,
    ConfigurationError,
    CorruptFileError,
    IcecombError,
    NoSuchSnapshotError,
    ValidationError,
)
from icecomb.format.maintenance import equality_conversion, position_deletes
from icecomb.format.maintenance.equality_conversion import EqualityConverter
from icecomb.format.maintenance.position_deletes import PositionDeleteRewriter
from icecomb.format.manifests.manifest import DataFileContent
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.manifests.reader import read_manifest
from icecomb.format.operation.overwrite import DeleteFiles, OverwriteFiles, RewriteFiles
from icecomb.format.operation.row_delta import RowDelta
from icecomb.format.rows.write.data_writer import write_data
from tests.format.rows.equality_delete_writer import EqualityDeleteWriter

pytestmark = pytest.mark.gate("81 tables; in fast are those of test_compaction")
PARTITION_WIDE = {"write.delete.granularity": "partition"}
POSITION, EQUALITY = DataFileContent.POSITION_DELETES, DataFileContent.EQUALITY_DELETES


@pytest.fixture
def while_rewriting(monkeypatch):
    return interrupting(monkeypatch, PositionDeleteRewriter)


@pytest.fixture
def while_converting(monkeypatch):
    return interrupting(monkeypatch, EqualityConverter)


def deletes(table, content=None) -> list:
    """The entries of delete files of a table."""
    return [
        entry
        for manifest in read_manifests(table.io, table.refresh().current_snapshot())
        for entry in read_manifest(table.io, manifest)
        if entry.is_live
        and entry.data_file.content in ({content} if content else {POSITION, EQUALITY})
    ]


def file_from(table, least: int):
    """The data file whose least id is this."""
    return next(
        entry.data_file
        for manifest in read_manifests(table.io, table.refresh().current_snapshot())
        for entry in read_manifest(table.io, manifest)
        if entry.is_live
        and entry.data_file.content is DataFileContent.DATA
        and int.from_bytes(entry.data_file.lower_bounds[1], "little") == least
    )


def replace_as_old(table, start) -> None:
    """Replace all data files by one of the rows, and of the age, of an earlier state."""
    table.refresh()
    added = write_data(
        table.io, table.metadata, table.scan(snapshot_id=start.snapshot_id).to_arrow()
    )
    change = RewriteFiles(table.io).validate_from_snapshot(table.current_snapshot().snapshot_id)
    removed = files(table)
    table.commit(change.rewrite_files(removed, added, sequence_number=start.sequence_number))


def rewrite(table, **given):
    return table.maintenance.rewrite_position_delete_files(**{"options": ALL, **given})


def convert(table, **given):
    return table.maintenance.convert_equality_deletes(**given)


def counts(result) -> tuple[int, int, int]:
    return (
        result.rewritten_delete_files_count,
        result.added_delete_files_count,
        result.failed_delete_files_count,
    )


# Position deletes


@pytest.mark.parametrize(("granularity", "written"), [("partition", 1), ("file", 2)])
def test_small_delete_files_become_one_of_a_partition_or_of_a_file(lake, granularity, written):
    table = new_table(
        lake, frame(1, 2, 3), frame(4, 5, 6), **{"write.delete.granularity": granularity}
    )
    for n in (1, 4, 5, 2):
        table.delete(f"id = {n}")
    old = deletes(table)
    sizes = sum(entry.data_file.file_size_in_bytes for entry in old)
    result = rewrite(table)
    assert counts(result) == (len(old), written, 0)
    assert result.rewritten_bytes_count == sizes
    assert sorted(in_order(table)) == [3, 6]
    assert sorted(rows(table)) == [(3, "s3"), (6, "s6")]
    new = deletes(table)
    assert sum(entry.data_file.file_size_in_bytes for entry in new) == result.added_bytes_count
    newest = max(entry.sequence_number for entry in old)
    assert {entry.sequence_number for entry in new} == {newest}
    assert table.current_snapshot().summary["operation"] == "replace"
    assert_numbers(table)


def test_partitions_are_groups_of_their_own(lake):
    table = new_table(lake, frame(1, 2), frame(1, 2), frame(1, 2), by="identity", **PARTITION_WIDE)
    table.append(pa.table({"id": [1, 1], "s": ["x", "y"]}, SCHEMA))
    table.delete("s = 's1'")
    table.delete("id = 1 and s = 'x'")
    table.append(frame(2))
    table.append(pa.table({"id": [2], "s": ["z"]}, SCHEMA))
    table.delete("s = 'z'")
    plan = rewrite(table, dry_run=True).plan
    assert {(g.partition, g.delete_files, g.data_files) for g in plan} <= {
        ("p=1", 1, 0),
        ("p=1", 2, 0),
        ("p=2", 1, 0),
    }
    before = sorted(rows(table))
    rewrite(table)
    assert sorted(rows(table)) == before
    assert {entry.data_file.partition for entry in deletes(table)} <= {(1,), (2,)}


def test_fewer_than_min_input_files_are_left_alone(lake):
    table = new_table(lake, frame(*range(9)), frame(*range(9, 18)), **PARTITION_WIDE)
    for n in range(4):
        table.delete(f"id = {n}")
    assert len(deletes(table)) == 4
    state = table.metadata_location
    assert counts(rewrite(table, options={})) == (0, 0, 0)
    assert table.refresh().metadata_location == state
    assert counts(rewrite(table, options={"min-input-files": "4"})) == (4, 1, 0)
    assert counts(rewrite(table, options={"min-input-files": "2"})) == (0, 0, 0)


def test_a_dry_run_says_what_would_be_done(lake):
    table = new_table(lake, frame(1, 2, 3), **PARTITION_WIDE)
    table.delete("id = 1")
    table.delete("id = 2")
    state, disk = table.metadata_location, data_on_disk(table)
    (group,) = rewrite(table, dry_run=True).plan
    assert (group.partition, group.delete_files, group.deletes) == ("", 2, 2)
    assert (table.refresh().metadata_location, data_on_disk(table)) == (state, disk)


def test_a_filter_chooses_partitions(lake):
    table = new_table(lake, frame(1, 2), frame(1, 2), by="identity", **PARTITION_WIDE)
    table.append(pa.table({"id": [1, 2], "s": ["x", "x"]}, SCHEMA))
    table.delete("s = 'x' and id = 1")
    table.delete("s = 'x' and id = 2")
    table.append(pa.table({"id": [1, 2, 1], "s": ["y", "y", "z"]}, SCHEMA))
    table.delete("s = 'y' and id < 2")
    plan = rewrite(table, where="id = 1", dry_run=True).plan
    assert {group.partition for group in plan} <= {"p=1"}
    assert rewrite(table, where="id = 7", dry_run=True).plan == ()


def test_positions_in_files_that_are_gone_are_dropped(lake):
    table = new_table(lake, frame(1, 2), frame(3, 4), **PARTITION_WIDE)
    table.delete("id = 1")
    table.delete("id = 3")
    gone = file_from(table, 3)
    table.commit(DeleteFiles(table.io).delete_data_file(gone))
    assert counts(rewrite(table)) == (2, 1, 0)
    (left,) = deletes(table)
    assert left.data_file.record_count == 1
    assert in_order(table) == [2]
    table.delete("id = 2")
    table.append(frame(9))
    assert in_order(table) == [9]


def test_files_that_apply_to_nothing_go_without_new_ones(lake):
    table = new_table(lake, frame(1, 2), frame(3), **PARTITION_WIDE)
    table.delete("id = 1")
    table.append(frame(7))
    gone = file_from(table, 1)
    change = OverwriteFiles(table.io).delete_data_file(gone)
    table.commit(change)
    if deletes(table):
        assert counts(rewrite(table)) == (1, 0, 0)
    assert deletes(table) == []
    assert sorted(in_order(table)) == [3, 7]


def test_a_file_that_came_back_since_keeps_its_rows(lake):
    """Its deletes are older than it is by now, and those that they are put together with newer."""
    table = new_table(lake, frame(1, 2), frame(3, 4), **PARTITION_WIDE)
    table.delete("id = 1")
    back = file_from(table, 1)
    table.commit(OverwriteFiles(table.io).delete_data_file(back))
    table.refresh()
    change = OverwriteFiles(table.io).append_data_file(back)
    table.commit(change)
    table.delete("id = 3")
    assert sorted(in_order(table)) == [1, 2, 4]
    old = [entry.data_file.file_path for entry in deletes(table)]
    rewrite(table)
    assert sorted(in_order(table)) == [1, 2, 4]
    assert not set(old) & {entry.data_file.file_path for entry in deletes(table)}


def test_a_file_that_comes_back_meanwhile_keeps_its_rows(lake, while_rewriting):
    table = new_table(lake, frame(1, 2), frame(3, 4), **PARTITION_WIDE)
    table.delete("id = 1")
    table.delete("id = 3")
    back = file_from(table, 1)
    other = lake.load_table("db.t")

    def change() -> None:
        other.refresh().commit(OverwriteFiles(other.io).delete_data_file(back))
        other.commit(OverwriteFiles(other.io).append_data_file(back))

    while_rewriting(change)
    rewrite(table)
    assert sorted(in_order(table)) == [1, 2, 4]


def test_a_file_that_is_there_twice_is_refused(lake):
    table = new_table(lake, frame(1, 2), frame(3, 4), **PARTITION_WIDE)
    table.delete("id = 1")
    first = file_from(table, 1)
    table.commit(OverwriteFiles(table.io).append_data_file(first))
    before = sorted(in_order(table))
    with pytest.raises(ValidationError, match="more than once"):
        rewrite(table)
    assert sorted(in_order(table)) == before


def test_deletes_of_a_file_that_two_partitions_have_are_left_alone(lake):
    """As new as the deletes of others they would be about the one that was added later, too."""
    table = new_table(lake, frame(1, 2), frame(3, 4))
    first = file_from(table, 1)
    table.delete("id = 1")
    with table.refresh().update_spec() as update:
        update.add_field("id", "identity", "p")
    again = replace(first, spec_id=1, partition=(1,))
    table.refresh().commit(OverwriteFiles(table.io).append_data_file(again))
    table.delete("id = 3")
    before = sorted(in_order(table))
    kept = {
        entry.data_file.file_path
        for entry in deletes(table)
        if entry.data_file.referenced_data_file == first.file_path
    }
    assert len(kept) == 1
    rewrite(table)
    assert sorted(in_order(table)) == before
    assert kept < {entry.data_file.file_path for entry in deletes(table)}


@pytest.mark.parametrize("granularity", ["file", "partition"])
def test_partition_wide_deletes_of_a_file_that_two_partitions_have_are_refused(lake, granularity):
    """By itself in a file, what names it would be about its rows in the other partition, too."""
    table = new_table(lake, *(frame(n, n + 1) for n in (1, 3, 5, 7)), **PARTITION_WIDE)
    first = file_from(table, 1)
    table.delete("id = 1 or id = 3")
    with table.refresh().update_spec() as update:
        update.add_field("id", "identity", "p")
    again = replace(first, spec_id=1, partition=(1,))
    table.refresh().commit(OverwriteFiles(table.io).append_data_file(again))
    with table.refresh().transaction() as change:
        change.set_properties({"write.delete.granularity": granularity})
    table.delete("id = 5 or id = 7")
    before, disk = sorted(in_order(table)), data_on_disk(table)
    with pytest.raises(ValidationError, match="more than once"):
        rewrite(table, options={**ALL, "max-file-group-input-files": "2"})
    assert sorted(in_order(table)) == before
    assert data_on_disk(table) == disk


def test_what_others_delete_meanwhile_stays_deleted(lake, while_rewriting):
    table = new_table(lake, frame(1, 2, 3), frame(4, 5, 6), **PARTITION_WIDE)
    table.delete("id = 1")
    table.delete("id = 4")
    other = lake.load_table("db.t")
    while_rewriting(lambda: other.refresh().delete("id = 2"))
    rewrite(table)
    assert sorted(in_order(table)) == [3, 5, 6]


def test_data_files_that_others_rewrite_meanwhile_do_no_harm(lake, while_rewriting):
    table = new_table(lake, frame(1, 2, 3), frame(4, 5, 6), **PARTITION_WIDE)
    table.delete("id = 1")
    table.delete("id = 4")
    other = lake.load_table("db.t")
    while_rewriting(lambda: other.maintenance.rewrite_data_files(options=ALL))
    rewrite(table)
    assert sorted(in_order(table)) == [2, 3, 5, 6]


def test_who_rewrites_the_same_delete_files_meanwhile_is_made_way_for(lake, while_rewriting):
    table = new_table(lake, frame(1, 2, 3), frame(4, 5, 6), **PARTITION_WIDE)
    table.delete("id = 1")
    table.delete("id = 4")
    other = lake.load_table("db.t")
    while_rewriting(lambda: other.maintenance.rewrite_position_delete_files(options=ALL))
    disk = data_on_disk(table)
    assert counts(rewrite(table)) == (0, 0, 0)
    assert sorted(in_order(table)) == [2, 3, 5, 6]
    named = {e.data_file.file_path.removeprefix("file:") for e in deletes(table)}
    assert data_on_disk(table) - disk == named


def test_a_rollback_meanwhile_leaves_the_deletes_of_before(lake, while_rewriting):
    table = new_table(lake, frame(1, 2, 3), **PARTITION_WIDE)
    table.delete("id = 1")
    before = table.current_snapshot().snapshot_id
    table.delete("id = 2")
    other = lake.load_table("db.t")
    while_rewriting(
        lambda: other.refresh().manage_snapshots().rollback_to_snapshot(before).commit()
    )
    rewrite(table)
    assert sorted(in_order(table)) == [2, 3]


def test_more_positions_than_fit_into_memory_are_read_in_shares(lake, monkeypatch):
    monkeypatch.setattr(position_deletes, "AT_ONCE", 3)
    table = new_table(lake, *(frame(*range(n, n + 4)) for n in range(0, 40, 4)), **PARTITION_WIDE)
    for n in range(5):
        table.delete(f"id >= {n * 8} and id < {n * 8 + 6}")
    before = sorted(in_order(table))
    rewrite(table)
    assert sorted(in_order(table)) == before == [n for n in range(40) if n % 8 >= 6]
    assert sorted(rows(table)) == sorted((n, f"s{n}") for n in before)


def test_a_single_target_in_another_partition_stays_in_force(lake):
    """A file of deletes of one data file applies to it whatever its own partition is."""
    table = new_table(lake, frame(1, 1, 2), by="identity")
    table.append(pa.table({"id": [1, 2], "s": ["x", "y"]}, SCHEMA))
    victim = next(f for f in files(table) if f.partition == (2,) and f.record_count == 1)
    stray = _stray_delete(table, victim, (1,))
    table.commit(RowDelta(table.io).add_deletes(stray))
    table.delete("id = 1 and s = 'x'")
    before = sorted(rows(table))
    rewrite(table)
    assert sorted(rows(table)) == before
    assert stray.file_path in {entry.data_file.file_path for entry in deletes(table)}


def _stray_delete(table, victim, partition):
    import numpy as np

    from icecomb.format.rows.deletes.position_delete_writer import PositionDeleteWriter

    writer = PositionDeleteWriter(table.io, table.refresh().metadata, uuid.uuid4().hex)
    writer.add(victim, np.array([0], np.int64))
    (file,) = writer.close()
    return replace(file, partition=partition)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"options": {"min-input-file": "1"}}, "no option min-input-file"),
        ({"options": {"use-starting-sequence-number": "true"}}, "no option use-starting"),
        ({"options": {"max-files-to-rewrite": "1"}}, "no option max-files-to-rewrite"),
        ({"options": {"min-file-size-bytes": "900000000"}}, "not less than"),
        ({"options": {"max-file-size-bytes": "5"}}, "not more than"),
        ({"branch": "gone"}, "no branch or tag 'gone'"),
        ({"branch": "old"}, "is a tag"),
        ({"where": "z = 1"}, "z"),
    ],
)
def test_what_is_of_no_use_is_refused_before_any_work(lake, given, problem):
    table = new_table(lake, frame(1, 2, 3), **PARTITION_WIDE)
    table.delete("id = 1")
    table.manage_snapshots().create_tag(table.current_snapshot().snapshot_id, "old").commit()
    state, disk = table.metadata_location, data_on_disk(table)
    for act in (rewrite, convert):
        if act is convert and "file-size" in str(given):
            continue
        with pytest.raises((ValidationError, NoSuchSnapshotError, IcecombError), match=problem):
            act(table, **given)
    assert (table.refresh().metadata_location, data_on_disk(table)) == (state, disk)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("rewrite-all", "yes"),
        ("rewrite-job-order", "best"),
        ("max-concurrent-file-group-rewrites", "0"),
        ("partial-progress.max-commits", "0"),
        ("target-file-size-bytes", "0"),
        ("max-file-group-input-files", "0"),
        ("max-file-group-size-bytes", "0"),
    ],
)
def test_options_that_make_no_sense_are_refused(lake, option, value):
    table = new_table(lake, frame(1))
    with pytest.raises(ConfigurationError, match=option):
        rewrite(table, options={option: value})


def test_groups_have_the_most_files_and_the_order_that_is_asked_for(lake):
    table = new_table(lake, frame(*range(9)), **PARTITION_WIDE)
    for n in range(3):
        table.delete(f"id = {n}")
    options = {**ALL, "max-file-group-input-files": "2", "rewrite-job-order": "files-asc"}
    assert [g.delete_files for g in rewrite(table, options=options, dry_run=True).plan] == [1, 2]
    size = deletes(table)[0].data_file.file_size_in_bytes
    options = {**ALL, "max-file-group-size-bytes": str(size)}
    assert [g.delete_files for g in rewrite(table, options=options, dry_run=True).plan] == [1, 1, 1]
    options = {**ALL, "target-file-size-bytes": str(size // 3)}
    rewrite(table, options=options)
    assert in_order(table) == list(range(3, 9))


def test_large_deletes_become_files_of_about_the_target_size(lake):
    count = 400_000
    table = lake.create_table(
        "db.large",
        pa.schema([("id", pa.int64())]),
        properties={"write.delete.mode": "merge-on-read", **PARTITION_WIDE},
    )
    order = list(range(count))
    Random(5).shuffle(order)
    table.append(pa.table({"id": pa.array(order, pa.int64())}))
    table.delete(f"id < {count // 2}")
    (old,) = deletes(table)
    target = old.data_file.file_size_in_bytes // 4
    rewrite(table, options={**ALL, "target-file-size-bytes": str(target)})
    sizes = [entry.data_file.file_size_in_bytes for entry in deletes(table)]
    assert len(sizes) in {4, 5}
    assert max(sizes) < 1.6 * target
    assert sorted(in_order(table)) == list(range(count // 2, count))


def test_partial_progress_commits_what_succeeds_and_counts_what_does_not(lake):
    table = new_table(lake, frame(1, 1, 2, 2), by="identity", **PARTITION_WIDE)
    table.append(pa.table({"id": [1, 1, 2, 2], "s": ["x", "w", "x", "w"]}, SCHEMA))
    table.delete("s = 'x'")
    table.append(pa.table({"id": [1, 1, 2, 2], "s": ["v", "w", "v", "w"]}, SCHEMA))
    table.delete("s = 'v'")
    broken = next(e.data_file for e in deletes(table) if e.data_file.partition == (2,))
    Path(broken.file_path.removeprefix("file:")).write_bytes(b"PAR1 nothing PAR1")
    state, disk = table.metadata_location, data_on_disk(table)
    with pytest.raises(CorruptFileError, match=Path(broken.file_path).name):
        rewrite(table)
    assert (table.refresh().metadata_location, data_on_disk(table)) == (state, disk)
    options = {**ALL, "partial-progress.enabled": "true", "partial-progress.max-commits": "3"}
    result = rewrite(table, options=options)
    assert result.failed_delete_files_count == 2
    assert result.rewritten_delete_files_count == 2
    assert broken.file_path in {e.data_file.file_path for e in deletes(table)}


def test_branches_are_rewritten_by_themselves(lake):
    table = new_table(lake, frame(1, 2, 3), **PARTITION_WIDE)
    with table.manage_snapshots() as manage:
        manage.create_branch(table.current_snapshot().snapshot_id, "b")
    table.delete("id = 1", branch="b")
    table.delete("id = 2", branch="b")
    delete_by_value(table, 3)
    assert counts(rewrite(table)) == (0, 0, 0)
    assert counts(rewrite(table, branch="b")) == (2, 1, 0)
    assert counts(convert(table, branch="b")) == (0, 0, 0)
    assert table.refresh().scan(ref="b").to_arrow()["id"].to_pylist() == [3]
    assert in_order(table) == [1, 2]


# Equality deletes


def test_equality_deletes_become_positions(lake):
    table = new_table(lake, frame(1, 2, 3), frame(4, 5, 6))
    delete_by_value(table, 2)
    table.append(frame(2, 7))
    delete_by_value(table, 5)
    before = sorted(in_order(table))
    result = convert(table)
    assert counts(result) == (2, 2, 0)
    assert result.rewritten_equality_delete_files_count == 2
    assert sorted(in_order(table)) == before == [1, 2, 3, 4, 6, 7]
    assert sorted(rows(table)) == sorted((n, f"s{n}") for n in before)
    assert deletes(table, EQUALITY) == []
    assert sum(e.data_file.record_count for e in deletes(table)) == 2
    assert table.current_snapshot().summary["operation"] == "delete"
    assert_numbers(table)


def test_rows_that_are_deleted_by_position_already_are_not_deleted_twice(lake):
    table = new_table(lake, frame(1, 2, 3))
    table.delete("id = 1")
    delete_by_value(table, 1)
    delete_by_value(table, 9)
    result = convert(table)
    assert counts(result) == (2, 0, 0)
    assert in_order(table) == [2, 3]
    assert sum(e.data_file.record_count for e in deletes(table)) == 1
    assert table.current_snapshot().summary["operation"] == "replace"


def test_a_key_that_came_back_stays_and_one_that_was_deleted_again_goes(lake):
    table = new_table(lake, frame(1))
    for _ in range(3):
        delete_by_value(table, 1)
        table.append(frame(1))
    delete_by_value(table, 2)
    assert in_order(table) == [1]
    convert(table)
    assert in_order(table) == [1]
    delete_by_value(table, 1)
    convert(table)
    assert in_order(table) == []


def test_equality_deletes_of_a_file_that_is_there_twice_are_refused(lake):
    """They are about the older of both, positions would be about both."""
    table = new_table(lake, frame(1, 2), frame(3, 4))
    delete_by_value(table, 1)
    table.commit(OverwriteFiles(table.io).append_data_file(file_from(table, 1)))
    assert sorted(in_order(table)) == [1, 2, 2, 3, 4]
    with pytest.raises(ValidationError, match="more than once"):
        convert(table)
    assert sorted(in_order(table)) == [1, 2, 2, 3, 4]


def test_deletes_of_a_partition_are_about_that_partition(lake):
    table = new_table(lake, frame(1, 2), by="identity")
    table.append(pa.table({"id": [1, 2], "s": ["x", "x"]}, SCHEMA))
    writer = EqualityDeleteWriter(table.io, table.metadata, uuid.uuid4().hex, ["id", "s"])
    writer.write(pa.record_batch({"id": [1], "s": ["x"]}))
    change = RowDelta(table.io)
    for file in writer.close():
        change.add_deletes(file)
    table.commit(change)
    (group,) = convert(table, dry_run=True).plan
    assert (group.partition, group.delete_files, group.deletes) == ("p=1", 1, 1)
    assert convert(table, where="id = 2", dry_run=True).plan == ()
    assert counts(convert(table, where="id = 2")) == (0, 0, 0)
    assert counts(convert(table, where="id = 1")) == (1, 1, 0)
    assert sorted(rows(table)) == [(1, "s1"), (2, "s2"), (2, "x")]
    (entry,) = deletes(table)
    assert entry.data_file.partition == (1,)


def test_deletes_about_all_partitions_reach_files_of_any_spec(lake):
    table = new_table(lake, frame(1, 2, 3))
    with table.update_spec() as update:
        update.add_field("id", "identity", "p")
    table.append(frame(1, 2))
    delete_by_value(table, 2)
    table.append(frame(2))
    assert counts(convert(table)) == (1, 2, 0)
    assert sorted(in_order(table)) == [1, 1, 2, 3]
    assert {e.data_file.spec_id for e in deletes(table)} == {0, 1}


def test_deletes_of_a_dropped_column_still_delete(lake):
    table = new_table(lake, frame(1, 2, 3))
    delete_by_value(table, "s2", "s")
    with table.update_schema() as update:
        update.delete_column("s")
    assert in_order(table) == [1, 3]
    assert counts(convert(table)) == (1, 1, 0)
    assert in_order(table) == [1, 3]


def test_keys_are_looked_up_in_rounds_where_they_are_many(lake, monkeypatch):
    monkeypatch.setattr(equality_conversion, "KEYS_AT_ONCE", 2)
    monkeypatch.setattr(equality_conversion, "POSITIONS_AT_ONCE", 3)
    table = new_table(lake, frame(*range(20)), frame(*range(10, 30)), **PARTITION_WIDE)
    for n in range(0, 30, 3):
        delete_by_value(table, n)
    delete_by_value(table, "s1", "s")
    table.append(frame(3))
    before = sorted(in_order(table))
    convert(table)
    assert deletes(table, EQUALITY) == []
    assert sorted(in_order(table)) == before
    assert sorted(rows(table)) == sorted((n, f"s{n}") for n in before)


def test_old_data_that_others_add_meanwhile_is_looked_at_too(lake, while_converting):
    """A file that replaces others may be as old as they were."""
    table = new_table(lake, frame(1, 2, 3), frame(4, 5))
    start = table.current_snapshot()
    delete_by_value(table, 2)
    other = lake.load_table("db.t")

    while_converting(lambda: replace_as_old(other, start))
    assert counts(convert(table)) == (1, 1, 0)
    assert sorted(in_order(table)) == [1, 3, 4, 5]
    assert deletes(table, EQUALITY) == []


def test_who_compacts_while_equality_deletes_are_converted_brings_no_row_back(lake, monkeypatch):
    from icecomb.format.maintenance.file_rewriter import FileRewriter

    table = new_table(lake, frame(1, 2, 3), frame(4, 5))
    other = lake.load_table("db.t")

    def change() -> None:
        delete_by_value(other, 2)
        convert(other)

    interrupting(monkeypatch, FileRewriter)(change)
    table.maintenance.rewrite_data_files(options=ALL)
    assert sorted(in_order(table)) == [1, 3, 4, 5]


def test_a_replacement_that_began_before_sees_the_positions(lake):
    """It ignores equality deletes, as they apply to its files, but these are positions by now."""
    table = new_table(lake, frame(1, 2, 3), frame(4, 5))
    start = table.current_snapshot()
    removed = files(table)
    added = write_data(table.io, table.metadata, table.scan().to_arrow())
    delete_by_value(table, 2)
    convert(table)
    change = RewriteFiles(table.io).validate_from_snapshot(start.snapshot_id)
    change.rewrite_files(removed, added, sequence_number=start.sequence_number)
    with pytest.raises(ValidationError, match="found new position delete"):
        table.commit(change)
    assert sorted(in_order(table)) == [1, 3, 4, 5]


def test_a_data_file_that_comes_back_while_converting_keeps_its_rows(lake, while_converting):
    table = new_table(lake, frame(1, 2), frame(3, 4))
    delete_by_value(table, 1)
    back = file_from(table, 1)
    other = lake.load_table("db.t")

    def change() -> None:
        other.refresh().commit(OverwriteFiles(other.io).delete_data_file(back))
        other.commit(OverwriteFiles(other.io).append_data_file(back))

    while_converting(change)
    convert(table)
    assert sorted(in_order(table)) == [1, 2, 3, 4]


def test_deletes_that_others_add_while_converting_stay(lake, while_converting):
    table = new_table(lake, frame(1, 2, 3))
    delete_by_value(table, 1)
    other = lake.load_table("db.t")
    while_converting(lambda: delete_by_value(other, 2))
    assert counts(convert(table)) == (1, 1, 0)
    assert in_order(table) == [3]
    assert len(deletes(table, EQUALITY)) == 1


def test_a_rollback_while_converting_leaves_the_rows_of_before(lake, while_converting):
    table = new_table(lake, frame(1, 2, 3))
    delete_by_value(table, 1)
    before = table.current_snapshot().snapshot_id
    delete_by_value(table, 2)
    other = lake.load_table("db.t")
    back = lambda: other.refresh().manage_snapshots().rollback_to_snapshot(before).commit()  # noqa: E731
    while_converting(back)
    convert(table)
    assert in_order(table) == [2, 3]
    assert deletes(table, EQUALITY) == []


def test_files_that_change_each_time_fail_in_the_end_with_nothing_left_behind(
    lake, while_converting
):
    table = new_table(lake, frame(1, 2))
    start = table.current_snapshot()
    delete_by_value(table, 1)
    other = lake.load_table("db.t")
    disk = data_on_disk(table)
    while_converting(*[lambda: replace_as_old(other, start)] * 3)
    with pytest.raises(CommitFailedError, match="others changed the files each time"):
        convert(table)
    assert in_order(table) == [2]
    assert {path for path in data_on_disk(table) - disk if "deletes" in path} == set()
    assert counts(convert(table)) == (1, 1, 0)
    assert in_order(table) == [2]


def test_a_damaged_data_file_is_named_and_nothing_is_left_behind(lake):
    table = new_table(lake, frame(1, 2), frame(1, 3))
    delete_by_value(table, 1)
    broken = files(table)[1].file_path
    Path(broken.removeprefix("file:")).write_bytes(b"PAR1 nothing PAR1")
    state, disk = table.metadata_location, data_on_disk(table)
    with pytest.raises(CorruptFileError, match=Path(broken).name):
        convert(table)
    assert (table.refresh().metadata_location, data_on_disk(table)) == (state, disk)


def test_a_conversion_is_no_change_of_rows_to_a_changelog(lake):
    table = new_table(lake, frame(1, 2, 3))
    delete_by_value(table, 1)
    convert(table)
    assert table.current_snapshot().summary["added-position-deletes"] == "1"
    assert in_order(table) == [2, 3]


@pytest.mark.seeds(50, gate=10)
def test_whatever_others_do_meanwhile_rows_stay_as_they_make_them(lake, seed, monkeypatch):
    random = Random(seed)
    changed = RandomTable(lake, random)
    deleting = ("delete", "delete_by_value", "delete_by_value", "append", "upsert")
    changed.change(random.randint(3, 6), *deleting)
    others = [lambda: changed.change(random.randint(0, 2))] * 4
    for rewriter in (PositionDeleteRewriter, EqualityConverter):
        interrupting(monkeypatch, rewriter)(*others)
    for _ in range(3):
        options = {
            "partial-progress.enabled": random.choice(["true", "false"]),
            "partial-progress.max-commits": random.choice(["1", "3"]),
        }
        converting = random.random() < 0.5
        changed.told.append(f"conversion {options}" if converting else f"rewriting {options}")
        act = convert if converting else rewrite
        try:
            act(changed.load(), options=options if converting else {**ALL, **options})
        except CommitFailedError as error:
            changed.told.append(f"refused: {error}")
        changed.check()
        changed.change(2, *deleting)
    assert_numbers(changed.load())
