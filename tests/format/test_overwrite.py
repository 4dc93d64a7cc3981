from __future__ import annotations

from dataclasses import replace

import pyiceberg.table
import pytest

from icecomb.format.errors import ValidationError
from icecomb.format.expressions.expression import AlwaysTrue
from icecomb.format.manifests.manifest import (
    DataFile,
    DataFileContent,
    ManifestContent,
    ManifestEntryStatus,
)
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.manifests.reader import read_manifest
from icecomb.format.operation.append import FastAppend, MergeAppend
from icecomb.format.operation.cherry_pick import CherryPick
from icecomb.format.operation.overwrite import (
    DeleteFiles,
    OverwriteFiles,
    ReplacePartitions,
    RewriteFiles,
)
from icecomb.format.operation.rewrite_manifests import RewriteManifests
from icecomb.format.operation.row_delta import RowDelta
from icecomb.format.operation.snapshot_management import ManageSnapshots
from icecomb.format.scan.table_scan import TableScan
from icecomb.format.spec.change.update import (
    AddPartitionSpecUpdate,
    SetDefaultSpecUpdate,
    update_table_metadata,
)
from icecomb.format.spec.metadata import TableMetadata, new_table_metadata
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.single_value import to_bytes
from icecomb.format.spec.sort import UNSORTED_SORT_ORDER
from icecomb.format.spec.transform import parse_transform
from icecomb.format.spec.types import DoubleType, LongType, NestedField, StringType
from icecomb.format.storage.file_io import FileIO
from tests.format.commit import append, commit

IO = FileIO()
SCHEMA = Schema((NestedField(1, "id", LongType()), NestedField(2, "day", StringType())))
BY_DAY = PartitionSpec(0, (PartitionField(2, 1000, parse_transform("identity"), "day"),))
NEVER = {"commit.manifest-merge.enabled": "false"}


def new_table(tmp_path, version=2, spec=BY_DAY, schema=SCHEMA, **properties) -> TableMetadata:
    properties = {"format-version": str(version), **properties}
    return new_table_metadata(schema, spec, UNSORTED_SORT_ORDER, str(tmp_path / "t"), properties)


def data_file(name, day="mon", low=0, high=9, **fields) -> DataFile:
    bounds = [{1: to_bytes(LongType(), value)} for value in (low, high)]
    return DataFile(
        **{
            "file_path": f"/t/data/{name}",
            "partition": (day,),
            "record_count": 10,
            "file_size_in_bytes": 100,
            "value_counts": {1: 10},
            "null_value_counts": {1: 0},
            "lower_bounds": bounds[0],
            "upper_bounds": bounds[1],
            **fields,
        }
    )


def deletes(name, day="mon", content=DataFileContent.POSITION_DELETES, **fields) -> DataFile:
    equality = (1,) if content is DataFileContent.EQUALITY_DELETES else None
    return DataFile(
        content=content,
        file_path=f"/t/data/{name}",
        partition=(day,),
        record_count=2,
        file_size_in_bytes=7,
        equality_ids=equality,
        **fields,
    )


def entries(metadata: TableMetadata):
    for manifest in read_manifests(IO, metadata.current_snapshot()):
        yield from read_manifest(IO, manifest)


def name(file: DataFile) -> str:
    return file.file_path.rpartition("/")[2]


def live(metadata: TableMetadata) -> set[str]:
    return {name(entry.data_file) for entry in entries(metadata) if entry.is_live}


def removed(metadata: TableMetadata) -> set[str]:
    own = metadata.current_snapshot_id
    return {name(e.data_file) for e in entries(metadata) if not e.is_live and e.snapshot_id == own}


def summary(metadata: TableMetadata) -> dict[str, str]:
    return dict(metadata.current_snapshot().summary)


def three_days(tmp_path, **options) -> TableMetadata:
    table = new_table(tmp_path, **options)
    table = append(
        table, data_file("m1"), data_file("m2", low=100, high=199), data_file("t1", "tue")
    )
    return append(table, data_file("w1", "wed"))


def merge_append(*files) -> MergeAppend:
    operation = MergeAppend(IO)
    for file in files:
        operation.append_data_file(file)
    return operation


def test_a_merge_append_merges_once_there_are_enough_manifests(tmp_path):
    table = new_table(tmp_path, **{"commit.manifest.min-count-to-merge": "3"})
    counts = []
    for i in range(5):
        table = commit(table, merge_append(data_file(str(i))))
        counts.append(len(read_manifests(IO, table.current_snapshot())))
    # three become one, and so do the next three
    assert counts == [1, 2, 1, 2, 1]
    assert live(table) == {"0", "1", "2", "3", "4"}
    assert [e.sequence_number for e in entries(table)] == [5, 4, 3, 2, 1]
    assert [e.status for e in entries(table)] == [ManifestEntryStatus.ADDED] + [
        ManifestEntryStatus.EXISTING
    ] * 4
    found = summary(table)
    assert (found["manifests-created"], found["manifests-kept"], found["manifests-replaced"]) == (
        "1",
        "0",
        "2",
    )
    assert found["total-data-files"] == "5"
    (manifest,) = read_manifests(IO, table.current_snapshot())
    assert (manifest.sequence_number, manifest.min_sequence_number) == (5, 1)


def test_full_manifests_are_not_merged_again(tmp_path):
    table = new_table(
        tmp_path,
        **{"commit.manifest.min-count-to-merge": "2", "commit.manifest.target-size-bytes": "1"},
    )
    for i in range(4):
        table = commit(table, merge_append(data_file(str(i))))
    assert len(read_manifests(IO, table.current_snapshot())) == 4


def test_merging_can_be_switched_off(tmp_path):
    table = new_table(tmp_path, **{"commit.manifest.min-count-to-merge": "2", **NEVER})
    for i in range(3):
        table = commit(table, merge_append(data_file(str(i))))
    assert len(read_manifests(IO, table.current_snapshot())) == 3


def test_a_merge_leaves_no_manifest_behind_that_nobody_lists(tmp_path):
    table = new_table(tmp_path, **{"commit.manifest.min-count-to-merge": "2"})
    for i in range(3):
        operation = merge_append(data_file(str(i)))
        table = commit(table, operation)
        operation.clean_up(table)
    listed = {s.manifest_list for s in table.snapshots}
    listed |= {m.manifest_path for s in table.snapshots for m in read_manifests(IO, s)}
    assert {str(path) for path in (tmp_path / "t" / "metadata").iterdir()} == listed


@pytest.mark.parametrize("version", [1, 2])
def test_deleting_by_partition_removes_whole_files(tmp_path, version):
    table = commit(
        three_days(tmp_path, version=version), DeleteFiles(IO).delete_by_predicate("day = 'mon'")
    )
    assert live(table) == {"t1", "w1"}
    assert removed(table) == {"m1", "m2"}
    found = summary(table)
    assert found["operation"] == "delete"
    assert (found["deleted-data-files"], found["deleted-records"], found["removed-files-size"]) == (
        "2",
        "20",
        "200",
    )
    assert (found["manifests-created"], found["manifests-kept"], found["manifests-replaced"]) == (
        "1",
        "1",
        "1",
    )
    assert (found["total-data-files"], found["changed-partition-count"]) == ("2", "1")
    kept = next(e for e in entries(table) if name(e.data_file) == "t1")
    assert kept.status is ManifestEntryStatus.EXISTING
    assert kept.snapshot_id == table.snapshots[0].snapshot_id
    assert kept.sequence_number == (1 if version == 2 else 0)
    assert kept.data_file == data_file("t1", "tue")


def test_deleted_entries_are_gone_after_the_next_rewrite(tmp_path):
    table = commit(three_days(tmp_path), DeleteFiles(IO).delete_data_file("/t/data/m1"))
    assert removed(table) == {"m1"}
    table = commit(table, DeleteFiles(IO).delete_data_file(data_file("m2")))
    assert [name(e.data_file) for e in entries(table) if not e.is_live] == ["m2"]
    assert live(table) == {"t1", "w1"}


def test_rewritten_manifests_carry_what_files_are_encrypted_with(tmp_path):
    files = (data_file(n, key_metadata=n.encode(), split_offsets=(4,)) for n in ("a", "b", "c"))
    table = append(three_days(tmp_path), *files)
    table = commit(table, DeleteFiles(IO).delete_data_file("/t/data/b"))
    table = commit(table, merge_append(data_file("d", key_metadata=b"d")))
    carried = {name(e.data_file): e.data_file.key_metadata for e in entries(table) if e.is_live}
    assert {n: key for n, key in carried.items() if key} == {"a": b"a", "c": b"c", "d": b"d"}


def test_a_manifest_without_live_files_is_dropped_by_the_next_commit(tmp_path):
    table = commit(three_days(tmp_path), DeleteFiles(IO).delete_data_file("/t/data/w1"))
    assert len(read_manifests(IO, table.current_snapshot())) == 2
    table = commit(table, merge_append(data_file("n")))
    assert live(table) == {"m1", "m2", "t1", "n"}
    assert len(read_manifests(IO, table.current_snapshot())) == 2


def test_deleting_by_bounds_removes_a_file_only_when_every_row_matches(tmp_path):
    table = commit(three_days(tmp_path), DeleteFiles(IO).delete_by_predicate("id >= 100"))
    assert live(table) == {"m1", "t1", "w1"}
    before = sorted((tmp_path / "t" / "metadata").iterdir())
    operation = DeleteFiles(IO).delete_by_predicate("id < 5")
    with pytest.raises(ValidationError, match=r"some, but not all.*"):
        operation.apply(table)
    operation.clean_up(None)
    assert sorted((tmp_path / "t" / "metadata").iterdir()) == before


def test_partitions_that_match_by_different_parts_of_a_filter_all_go(tmp_path):
    table = three_days(tmp_path)
    kept = commit(table, DeleteFiles(IO).delete_by_predicate("day = 'mon' or day = 'tue'"))
    days = [file.data_file.partition for file in entries(kept) if file.status.name != "DELETED"]
    assert days == [("wed",)]


def test_an_equality_delete_file_stays_though_what_it_does_not_compare_matches(tmp_path):
    day_is_a_day = deletes(
        "e",
        content=DataFileContent.EQUALITY_DELETES,
        lower_bounds={1: to_bytes(LongType(), 1)},
        upper_bounds={1: to_bytes(LongType(), 2)},
        value_counts={1: 2},
        null_value_counts={1: 0},
    )
    table = append(new_table(tmp_path), data_file("m1"), data_file("m2", low=500, high=600))
    table = row_delta(table, replace(day_is_a_day, equality_ids=(2,)))
    table = commit(table, DeleteFiles(IO).delete_by_predicate("id < 10"))
    assert live(table) == {"m2", "e"}
    table = commit(table, OverwriteFiles(IO).overwrite_by_row_filter("id < 100"))
    assert live(table) == {"m2", "e"}


def test_deleting_all_leaves_an_empty_table(tmp_path):
    table = commit(three_days(tmp_path), DeleteFiles(IO).delete_by_predicate(AlwaysTrue()))
    assert live(table) == set()
    assert summary(table)["total-records"] == "0"


def test_a_file_that_must_be_there_is_missed(tmp_path):
    table = three_days(tmp_path)
    operation = DeleteFiles(IO).delete_data_file("/t/data/gone").validate_files_exist()
    with pytest.raises(ValidationError, match="/t/data/gone"):
        operation.apply(table)
    assert live(commit(table, DeleteFiles(IO).delete_data_file("/t/data/gone"))) == live(table)


def test_an_overwrite_replaces_by_filter_and_by_file(tmp_path):
    table = three_days(tmp_path)
    operation = (
        OverwriteFiles(IO).overwrite_by_row_filter("day = 'mon'").append_data_file(data_file("new"))
    )
    table = commit(table, operation)
    assert live(table) == {"new", "t1", "w1"}
    assert summary(table)["operation"] == "overwrite"
    operation = (
        OverwriteFiles(IO)
        .delete_data_file(data_file("t1", "tue"))
        .append_data_file(data_file("n2", "tue"))
    )
    table = commit(table, operation)
    assert live(table) == {"new", "n2", "w1"}
    assert removed(table) == {"t1"}


@pytest.mark.parametrize(
    ("build", "operation"),
    [
        (lambda o: o.append_data_file(data_file("x")), "append"),
        (lambda o: o.delete_data_file(data_file("m1")), "delete"),
        (
            lambda o: o.delete_data_file(data_file("m1")).append_data_file(data_file("x")),
            "overwrite",
        ),
    ],
)
def test_an_overwrite_is_called_by_what_it_does(tmp_path, build, operation):
    assert (
        summary(commit(three_days(tmp_path), build(OverwriteFiles(IO))))["operation"] == operation
    )


def test_replacing_partitions_replaces_only_those_of_the_new_files(tmp_path):
    table = three_days(tmp_path)
    table = commit(table, ReplacePartitions(IO).append_data_file(data_file("new")))
    assert live(table) == {"new", "t1", "w1"}
    found = summary(table)
    assert (found["operation"], found["replace-partitions"]) == ("overwrite", "true")
    assert live(commit(table, ReplacePartitions(IO).append_data_file(data_file("z", "sun")))) == {
        "new",
        "t1",
        "w1",
        "z",
    }


def test_replacing_the_partition_of_nan_and_of_null(tmp_path):
    schema = Schema((NestedField(1, "id", DoubleType()),))
    spec = PartitionSpec(0, (PartitionField(1, 1000, parse_transform("identity"), "id"),))
    table = new_table(tmp_path, spec=spec, schema=schema)
    bare = {
        "value_counts": None,
        "null_value_counts": None,
        "lower_bounds": None,
        "upper_bounds": None,
    }
    values = {"nan": float("nan"), "null": None, "one": 1.0}
    table = append(table, *(data_file(key, value, **bare) for key, value in values.items()))
    operation = ReplacePartitions(IO)
    for key in ("nan", "null"):
        operation.append_data_file(data_file(f"new-{key}", values[key], **bare))
    assert live(commit(table, operation)) == {"new-nan", "new-null", "one"}


def test_the_partitions_of_both_zeros_are_two(tmp_path):
    schema = Schema((NestedField(1, "id", DoubleType()),))
    spec = PartitionSpec(0, (PartitionField(1, 1000, parse_transform("identity"), "id"),))
    table = new_table(tmp_path, spec=spec, schema=schema)
    bounds = {"lower_bounds": None, "upper_bounds": None}
    table = append(table, data_file("zero", 0.0, **bounds), data_file("minus", -0.0, **bounds))
    operation = ReplacePartitions(IO).append_data_file(data_file("new", -0.0, **bounds))
    assert live(commit(table, operation)) == {"zero", "new"}
    table = row_delta(table, deletes("e", -0.0, content=DataFileContent.EQUALITY_DELETES))
    tasks = TableScan(table, IO).plan_files()
    found = {name(t.file): [name(f) for f in t.delete_files] for t in tasks}
    assert found == {"zero": [], "minus": ["e"]}


def test_a_pick_sees_what_others_added_to_either_zero(tmp_path):
    schema = Schema((NestedField(1, "id", DoubleType()),))
    spec = PartitionSpec(0, (PartitionField(1, 1000, parse_transform("identity"), "id"),))
    table = new_table(tmp_path, spec=spec, schema=schema)
    bounds = {"lower_bounds": None, "upper_bounds": None}
    table = append(table, data_file("one", 1.0, **bounds))
    replacing = ReplacePartitions(IO, stage_only=True)
    replacing.append_data_file(data_file("zero", 0.0, **bounds))
    replacing.append_data_file(data_file("minus", -0.0, **bounds))
    staged = commit(table, replacing)
    for value in (0.0, -0.0):
        moved = append(staged, data_file("x", value, **bounds))
        with pytest.raises(ValidationError, match="/t/data/x"):
            CherryPick(IO, replacing.snapshot_id).apply(moved)
    moved = append(staged, data_file("x", 2.0, **bounds))
    picked = commit(moved, CherryPick(IO, replacing.snapshot_id))
    assert live(picked) == {"one", "x", "zero", "minus"}


def test_replacing_partitions_of_an_unpartitioned_table_replaces_all(tmp_path):
    table = new_table(tmp_path, spec=PartitionSpec(0, ()))
    table = append(table, data_file("a", partition=()), data_file("b", partition=()))
    table = commit(table, ReplacePartitions(IO).append_data_file(data_file("c", partition=())))
    assert live(table) == {"c"}


def test_a_row_delta_adds_rows_and_deletes(tmp_path):
    table = three_days(tmp_path)
    eq = DataFileContent.EQUALITY_DELETES
    table = commit(
        table,
        RowDelta(IO)
        .add_rows(data_file("n"))
        .add_deletes(deletes("p"))
        .add_deletes(deletes("e", content=eq)),
    )
    assert live(table) == {"m1", "m2", "t1", "w1", "n", "p", "e"}
    manifests = read_manifests(IO, table.current_snapshot())
    assert [m.content for m in manifests] == [ManifestContent.DATA] * 3 + [ManifestContent.DELETES]
    found = summary(table)
    assert found["operation"] == "overwrite"
    assert {k: v for k, v in found.items() if "delete" in k} == {
        "added-delete-files": "2",
        "added-equality-delete-files": "1",
        "added-position-delete-files": "1",
        "added-position-deletes": "2",
        "added-equality-deletes": "2",
        "total-delete-files": "2",
        "total-position-deletes": "2",
        "total-equality-deletes": "2",
    }
    table = commit(table, RowDelta(IO).add_deletes(deletes("p2")).remove_deletes(deletes("p")))
    assert summary(table)["operation"] == "delete"
    assert summary(table)["removed-position-delete-files"] == "1"
    assert live(table) == {"m1", "m2", "t1", "w1", "n", "p2", "e"}


def test_a_table_of_version_1_takes_no_deletes(tmp_path):
    with pytest.raises(ValidationError, match="version 1"):
        RowDelta(IO).add_deletes(deletes("p")).apply(three_days(tmp_path, version=1))


def test_deletes_that_apply_to_no_file_any_more_go_when_their_manifest_is_rewritten(tmp_path):
    table = append(new_table(tmp_path), data_file("old"))
    table = commit(table, RowDelta(IO).add_deletes(deletes("p1")).add_deletes(deletes("p2", "tue")))
    table = append(table, data_file("new", "tue"))
    table = commit(table, DeleteFiles(IO).delete_data_file("/t/data/old"))
    assert live(table) == {"new", "p1", "p2"}
    table = commit(table, RowDelta(IO).remove_deletes(deletes("p1")).add_rows(data_file("z")))
    assert live(table) == {"new", "z"}


def test_a_retry_on_an_older_state_keeps_the_deletes_that_apply_there(tmp_path):
    table = append(new_table(tmp_path), data_file("m1"), data_file("t1", "tue"))
    deleted = row_delta(table, deletes("pm"), deletes("pt", "tue"))
    rewrite = RewriteFiles(IO).rewrite_files(
        [data_file("m1"), data_file("t1", "tue")], [data_file("m2"), data_file("t2", "tue")]
    )
    rewritten = commit(deleted, rewrite.validate_from_snapshot(deleted.current_snapshot_id))
    removal = RewriteFiles(IO).rewrite_files([deletes("pm")], [])
    assert live(commit(rewritten, removal)) == {"m2", "t2"}
    rollback = ManageSnapshots(rewritten).rollback_to_snapshot(deleted.current_snapshot_id)
    rolled_back = commit(rewritten, rollback)
    assert live(commit(rolled_back, removal)) == {"m1", "t1", "pt"}


def test_a_rewrite_keeps_the_sequence_number_it_is_given(tmp_path):
    table = three_days(tmp_path)
    operation = RewriteFiles(IO).rewrite_files(
        [data_file("m1"), data_file("m2")], [data_file("big", record_count=20)], sequence_number=1
    )
    table = commit(table, operation)
    assert live(table) == {"big", "t1", "w1"}
    assert summary(table)["operation"] == "replace"
    (entry,) = [e for e in entries(table) if name(e.data_file) == "big"]
    assert (entry.sequence_number, entry.file_sequence_number) == (1, 3)
    with pytest.raises(ValidationError, match="rows"):
        RewriteFiles(IO).rewrite_files([data_file("big")], [data_file("x", record_count=21)]).apply(
            table
        )
    with pytest.raises(ValidationError, match="m1"):
        RewriteFiles(IO).rewrite_files([data_file("m1")], [data_file("x")]).apply(table)
    with pytest.raises(ValidationError, match="nothing to rewrite"):
        RewriteFiles(IO).rewrite_files([], [data_file("x", record_count=0)]).apply(table)


def test_a_rewrite_with_a_pinned_number_keeps_the_deletes_that_apply_to_it(tmp_path):
    table = append(
        new_table(tmp_path, **{"commit.manifest.min-count-to-merge": "1"}), data_file("a")
    )
    table = commit(table, RowDelta(IO).add_deletes(deletes("p")))
    pinned, since = table.last_sequence_number, start(table)
    for late in ("e1", "e2"):
        late_delete = deletes(late, content=DataFileContent.EQUALITY_DELETES)
        table = commit(table, RowDelta(IO).add_deletes(late_delete))
    operation = RewriteFiles(IO).rewrite_files(
        [data_file("a"), deletes("p")], [data_file("b")], sequence_number=pinned
    )
    table = commit(table, operation.validate_from_snapshot(since))
    assert live(table) == {"b", "e1", "e2"}


@pytest.mark.parametrize("kind", [MergeAppend, DeleteFiles, RewriteManifests])
def test_what_a_transaction_added_itself_has_the_number_of_the_attempt_that_counts(tmp_path, kind):
    table = append(
        new_table(tmp_path, **{"commit.manifest.min-count-to-merge": "2"}), data_file("a")
    )
    first, second = FastAppend(IO).append_data_file(data_file("b", "tue")), kind(IO)
    if kind is MergeAppend:
        second.append_data_file(data_file("c"))
    elif kind is DeleteFiles:
        second.delete_by_predicate("day = 'sun'").delete_data_file("/t/data/a")
    commit(commit(table, first), second)
    for number in range(3):
        table = row_delta(table, deletes(f"e{number}", content=DataFileContent.EQUALITY_DELETES))
    table = commit(commit(table, first), second)
    numbers = {name(e.data_file): e.sequence_number for e in entries(table) if e.is_live}
    assert numbers["b"] == 5, "deletes of the others, up to number 4, do not apply to it"


def test_a_retry_filters_only_what_is_new(tmp_path):
    table = three_days(tmp_path)
    operation = (
        OverwriteFiles(IO).overwrite_by_row_filter("day = 'mon'").append_data_file(data_file("new"))
    )
    operation.apply(table)
    before = {p.name for p in (tmp_path / "t" / "metadata").iterdir()}
    table = append(table, data_file("m3"))
    theirs = {p.name for p in (tmp_path / "t" / "metadata").iterdir()} - before
    table = commit(table, operation)
    assert live(table) == {"new", "t1", "w1"}
    assert removed(table) == {"m1", "m2", "m3"}
    ours = {p.name for p in (tmp_path / "t" / "metadata").iterdir()} - before - theirs
    assert len([n for n in ours if "-m" in n and not n.startswith("snap")]) == 1
    operation.clean_up(table)
    assert live(table) == {"new", "t1", "w1"}


def start(table: TableMetadata) -> int:
    return table.current_snapshot_id


def dropped_day(table, day):
    return commit(table, DeleteFiles(IO).delete_by_predicate(f"day = '{day}'"))


def row_delta(table, *files):
    operation = RowDelta(IO)
    for file in files:
        operation.add_deletes(file)
    return commit(table, operation)


def overwrite_mon(since) -> OverwriteFiles:
    operation = OverwriteFiles(IO).overwrite_by_row_filter("day = 'mon'")
    return operation.append_data_file(data_file("new")).validate_from_snapshot(since)


def test_a_conflict_filter_narrows_what_counts(tmp_path):
    table = three_days(tmp_path)
    since = start(table)
    now = append(table, data_file("x", low=500, high=600))
    narrow = overwrite_mon(since).conflict_detection_filter("day = 'mon' and id < 100")
    assert "new" in live(commit(now, narrow.validate_no_conflicting_data()))
    wide = overwrite_mon(since).conflict_detection_filter("day = 'mon' and id > 100")
    with pytest.raises(ValidationError, match="/t/data/x"):
        wide.validate_no_conflicting_data().apply(now)


def test_replacing_a_file_that_got_new_deletes_is_refused(tmp_path):
    table = three_days(tmp_path)
    since = start(table)

    def overwrite():
        operation = (
            OverwriteFiles(IO).delete_data_file(data_file("m1")).append_data_file(data_file("n"))
        )
        return operation.validate_from_snapshot(since).validate_no_conflicting_deletes()

    now = row_delta(table, deletes("p", "tue"))
    assert "n" in live(commit(now, overwrite()))
    now = row_delta(table, deletes("p", referenced_data_file="/t/data/m2"))
    assert "n" in live(commit(now, overwrite()))
    for found in (deletes("p"), deletes("p", content=DataFileContent.EQUALITY_DELETES)):
        with pytest.raises(
            ValidationError, match=r"new delete for replaced data file: .*/t/data/m1"
        ):
            overwrite().apply(row_delta(table, found))
    # the rows of the replacing file may be those that were deleted, whatever the change is about
    beside = deletes("e", content=DataFileContent.EQUALITY_DELETES)
    bound = {1: to_bytes(LongType(), 5)}
    beside = replace(beside, lower_bounds=bound, upper_bounds=bound)
    with pytest.raises(ValidationError, match=r"for replaced data file: .*/t/data/m1"):
        overwrite().conflict_detection_filter("id = 1").apply(row_delta(table, beside))
    removing = RowDelta(IO).remove_rows(data_file("m1")).add_rows(data_file("n"))
    removing.validate_from_snapshot(since).conflict_detection_filter("id = 1")
    with pytest.raises(ValidationError, match=r"for replaced data file: .*/t/data/m1"):
        removing.validate_no_conflicting_delete_files().apply(row_delta(table, beside))


def test_equality_deletes_of_a_spec_that_became_void_reach_every_replaced_file(tmp_path):
    table = append(new_table(tmp_path), data_file("m1"))
    void = PartitionSpec(1, (PartitionField(2, 1000, parse_transform("void"), "day"),))
    specs = (AddPartitionSpecUpdate(spec=void), SetDefaultSpecUpdate(spec_id=-1))
    table = update_table_metadata(table, specs)
    since = start(table)
    everywhere = deletes("e", None, content=DataFileContent.EQUALITY_DELETES, spec_id=1)
    table = row_delta(table, everywhere)
    (task,) = TableScan(table, IO).plan_files()
    assert [name(file) for file in task.delete_files] == ["e"]
    replaced = OverwriteFiles(IO).delete_data_file(data_file("m1"))
    replaced.validate_from_snapshot(since).validate_no_conflicting_deletes()
    with pytest.raises(ValidationError, match=r"for replaced data file: .*/t/data/m1"):
        replaced.apply(table)


def test_a_row_delta_that_asks_for_some_rows_refuses_deletes_of_any_file_that_was_rewritten(
    tmp_path,
):
    table = three_days(tmp_path)
    rewritten = commit(table, RewriteFiles(IO).rewrite_files([data_file("m1")], [data_file("n")]))
    delta = RowDelta(IO).add_deletes(deletes("p")).validate_from_snapshot(start(table))
    # names may have changed their columns meanwhile
    delta.validate_data_files_exist(["/t/data/m1"]).conflict_detection_filter("id > 400")
    with pytest.raises(ValidationError, match=r"missing data files: .*/t/data/m1"):
        delta.apply(rewritten)


def test_a_removed_file_cannot_be_named_by_new_deletes(tmp_path):
    operation = RowDelta(IO).remove_rows(data_file("m1")).add_deletes(deletes("p"))
    with pytest.raises(ValidationError, match="also named"):
        operation.validate_data_files_exist(["/t/data/m1"]).apply(three_days(tmp_path))


def test_a_start_that_is_not_in_the_history_is_refused(tmp_path):
    table = three_days(tmp_path)
    with pytest.raises(ValidationError, match="Cannot determine the history"):
        overwrite_mon(12345).validate_no_conflicting_data().apply(table)
    expired = replace(table, snapshots=table.snapshots[1:])
    with pytest.raises(ValidationError, match="Cannot determine the history"):
        overwrite_mon(None).validate_no_conflicting_data().apply(expired)


def test_an_old_spec_whose_column_is_gone_is_rewritten_with_its_own_type(tmp_path):
    schema = Schema((NestedField(1, "id", LongType()), NestedField(2, "n", LongType())))
    spec = PartitionSpec(0, (PartitionField(2, 1000, parse_transform("identity"), "n"),))
    table = append(
        new_table(tmp_path, spec=spec, schema=schema), data_file("a", 7), data_file("b", 8)
    )
    without = Schema((NestedField(1, "id", LongType()),), schema_id=1)
    table = replace(
        table,
        schemas=(*table.schemas, without),
        current_schema_id=1,
        partition_specs=(*table.partition_specs, PartitionSpec(1, ())),
        default_spec_id=1,
    )
    table = commit(table, DeleteFiles(IO).delete_data_file("/t/data/a"))
    assert [e.data_file.partition for e in entries(table) if e.is_live] == [(8,)]


@pytest.mark.parametrize("version", [1, 2])
def test_pyiceberg_plans_what_is_left(tmp_path, version):
    table = three_days(tmp_path, version=version, **{"commit.manifest.min-count-to-merge": "2"})
    table = commit(
        table,
        OverwriteFiles(IO)
        .overwrite_by_row_filter("day = 'mon'")
        .append_data_file(data_file("new")),
    )
    if version == 2:
        table = row_delta(table, deletes("p"))
    path = tmp_path / "v.metadata.json"
    path.write_text(table.to_json())
    theirs = pyiceberg.table.StaticTable.from_metadata(str(path))
    tasks = {
        task.file.file_path.rpartition("/")[2]: len(task.delete_files)
        for task in theirs.scan().plan_files()
    }
    assert tasks == {"new": int(version == 2), "t1": 0, "w1": 0}
