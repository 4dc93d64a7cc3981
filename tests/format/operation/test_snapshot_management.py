"""Branches, tags, rollbacks and cherry-picks."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadataUtil
from pyiceberg.table.update.snapshot import ManageSnapshots as PeerManageSnapshots

from icecomb.format.errors import CommitFailedError, NoSuchSnapshotError, ValidationError
from icecomb.format.manifests.manifest import DataFile
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.manifests.reader import read_manifest
from icecomb.format.operation.append import FastAppend
from icecomb.format.operation.overwrite import DeleteFiles, OverwriteFiles, ReplacePartitions
from icecomb.format.operation.snapshot_management import ManageSnapshots
from icecomb.format.spec.change.update import update_table_metadata
from icecomb.format.spec.metadata import TableMetadata, new_table_metadata
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.snapshot import SnapshotRef, SnapshotRefType, parents_of
from icecomb.format.spec.sort import UNSORTED_SORT_ORDER
from icecomb.format.spec.transform import parse_transform
from icecomb.format.spec.types import LongType, NestedField, StringType
from icecomb.format.storage.file_io import FileIO
from tests.format.commit import commit

IO = FileIO()
SCHEMA = Schema((NestedField(1, "id", LongType()), NestedField(2, "day", StringType())))
BY_DAY = PartitionSpec(0, (PartitionField(2, 1000, parse_transform("identity"), "day"),))


@pytest.fixture
def base(tmp_path):
    return new_table_metadata(SCHEMA, BY_DAY, UNSORTED_SORT_ORDER, str(tmp_path / "t"), {})


def file(name, day="mon"):
    return DataFile(
        file_path=f"/t/data/{name}", partition=(day,), record_count=1, file_size_in_bytes=9
    )


def append(base, *files, **options):
    operation = FastAppend(IO, **options)
    for added in files:
        operation.append_data_file(added)
    return commit(base, operation), operation.snapshot_id


def names(metadata, ref="main"):
    snapshot = metadata.snapshot_by_name(ref)
    entries = [
        entry
        for manifest in read_manifests(IO, snapshot)
        for entry in read_manifest(IO, manifest, discard_deleted=True)
    ]
    return sorted(entry.data_file.file_path.rpartition("/")[2] for entry in entries)


def managed(base, change):
    update = ManageSnapshots(base, IO)
    change(update)
    return commit(base, update)


@pytest.fixture
def history(base):
    """Three snapshots on main, a second apart."""
    ids = []
    for n in range(3):
        operation = FastAppend(IO).append_data_file(file(f"{n}"))
        changes = operation.apply(base)
        base = update_table_metadata(base, changes.updates)
        ids.append(operation.snapshot_id)
    return base, ids


def test_branches_and_tags_are_made_like_pyicebergs(history):
    metadata, ids = history

    def change(update):
        update.create_branch(ids[0], "b", 10, 20, 3).create_tag(ids[1], "t", 5)
        update.create_branch(ids[2], "plain")

    made = managed(metadata, change)
    peer = Table(
        ("db", "t"),
        TableMetadataUtil.parse_raw(metadata.to_json()),
        "/t/m.json",
        PyArrowFileIO(),
        NoopCatalog("peer"),
    ).transaction()
    with PeerManageSnapshots(peer) as update:
        change(update)
    expected = {
        name: ref.model_dump(by_alias=True, exclude_none=True)
        for name, ref in peer.table_metadata.refs.items()
    }
    assert {name: ref.to_json() for name, ref in made.refs.items()} == expected
    assert made.snapshot_log == metadata.snapshot_log


def test_references_are_replaced_renamed_limited_and_removed(history):
    metadata, ids = history
    made = managed(metadata, lambda u: u.create_branch(ids[0], "b").create_tag(ids[0], "t"))
    changed = managed(
        made,
        lambda u: (
            u.replace_branch(ids[1], "b")
            .replace_tag(ids[2], "t")
            .rename_branch("b", "c")
            .set_min_snapshots_to_keep("c", 7)
            .set_max_snapshot_age_ms("c", 8)
            .set_max_ref_age_ms("t", 9)
            .set_min_snapshots_to_keep("main", 2)
        ),
    )
    assert changed.refs == {
        "main": SnapshotRef(ids[2], SnapshotRefType.BRANCH, 2),
        "c": SnapshotRef(ids[1], SnapshotRefType.BRANCH, 7, 8),
        "t": SnapshotRef(ids[2], SnapshotRefType.TAG, max_ref_age_ms=9),
    }
    bare = managed(changed, lambda u: u.remove_branch("c").remove_tag("t"))
    assert set(bare.refs) == {"main"}


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda u, _: u.create_tag(1, "x"), NoSuchSnapshotError),
        (lambda u, ids: u.create_tag(ids[0], "main"), ValidationError),
        (lambda u, ids: u.create_branch(ids[0], "t"), ValidationError),
        (lambda u, ids: u.create_branch(ids[0], ""), ValidationError),
        (lambda u, ids: u.create_branch(ids[0], "x", min_snapshots_to_keep=0), ValidationError),
        (lambda u, _: u.remove_branch("t"), ValidationError),
        (lambda u, _: u.remove_tag("main"), ValidationError),
        (lambda u, _: u.remove_branch("main"), ValidationError),
        (lambda u, _: u.remove_tag("nothing"), NoSuchSnapshotError),
        (lambda u, _: u.rename_branch("main", "x"), ValidationError),
        (lambda u, _: u.rename_branch("b", "t"), ValidationError),
        (lambda u, _: u.set_min_snapshots_to_keep("t", 1), ValidationError),
        (lambda u, _: u.set_max_ref_age_ms("nothing", 1), NoSuchSnapshotError),
        (lambda u, _: u.fast_forward("main", "b"), ValidationError),
        (lambda u, _: u.fast_forward("t", "main"), ValidationError),
        (lambda u, _: u.fast_forward("b", "nothing"), NoSuchSnapshotError),
        (lambda u, _: u.set_current_snapshot(), ValidationError),
        (lambda u, ids: u.set_current_snapshot(ids[0], "t"), ValidationError),
        (lambda u, _: u.set_current_snapshot(1), NoSuchSnapshotError),
        (lambda u, _: u.set_current_snapshot(ref_name="nothing"), NoSuchSnapshotError),
        (lambda u, _: u.rollback_to_snapshot(1), NoSuchSnapshotError),
        (lambda u, _: u.rollback_to_timestamp(1), NoSuchSnapshotError),
        (lambda u, _: u.cherry_pick(1), NoSuchSnapshotError),
    ],
)
def test_what_makes_no_sense_is_refused_at_the_call(history, change, error):
    metadata, ids = history
    made = managed(metadata, lambda u: u.create_branch(ids[0], "b").create_tag(ids[0], "t"))
    with pytest.raises(error):
        change(ManageSnapshots(made, IO), ids)


@pytest.mark.parametrize(
    "change", [lambda u: u.remove_branch("main"), lambda u: u.rename_branch("main", "x")]
)
def test_main_cannot_be_removed_before_the_first_snapshot_either(base, change):
    with pytest.raises(ValidationError, match="main cannot be removed"):
        change(ManageSnapshots(base, IO))


def test_parents_are_those_of_the_snapshots_whether_these_are_values_or_still_json(history):
    metadata, ids = history
    expected = {s.snapshot_id: s.parent_snapshot_id for s in metadata.snapshots}
    assert list(expected) == ids
    raw = json.loads(metadata.to_json())
    raw["snapshots"][0]["parent-snapshot-id"] = -1  # as some writers say that there is none
    for one in (metadata, TableMetadata.from_json(json.dumps(raw))):
        assert parents_of(one) == expected
        assert [one.snapshot_by_id(number).snapshot_id for number in ids] == ids
        assert one.snapshot_by_id(1) is None


def test_main_goes_back_to_an_ancestor_only_or_to_anything_when_set(history):
    metadata, ids = history
    back = managed(metadata, lambda u: u.rollback_to_snapshot(ids[0]))
    assert back.current_snapshot_id == back.refs["main"].snapshot_id == ids[0]
    assert [entry.snapshot_id for entry in back.snapshot_log] == [*ids, ids[0]]
    with pytest.raises(ValidationError, match="not an ancestor"):
        ManageSnapshots(back).rollback_to_snapshot(ids[2])
    assert managed(back, lambda u: u.set_current_snapshot(ids[2])).current_snapshot_id == ids[2]
    tagged = managed(back, lambda u: u.create_tag(ids[1], "t").set_current_snapshot(ref_name="t"))
    assert tagged.current_snapshot_id == ids[1]


def test_a_rollback_to_a_time_takes_the_newest_strictly_older_snapshot(base):
    ids = []
    for n in range(3):
        operation = FastAppend(IO).append_data_file(file(f"{n}"))
        changes = operation.apply(base)
        add, ref = changes.updates
        at = base.last_updated_ms + 1000
        add = replace(add, snapshot=replace(add.snapshot, timestamp_ms=at))
        base = update_table_metadata(base, (add, ref))
        ids.append((operation.snapshot_id, at))
    (first, _), (second, at), _ = ids
    strictly = managed(base, lambda u: u.rollback_to_timestamp(at))
    assert strictly.current_snapshot_id == first
    assert managed(base, lambda u: u.rollback_to_timestamp(at + 1)).current_snapshot_id == second


def test_a_branch_goes_back_to_its_own_ancestors_only_and_keeps_its_limits(history):
    metadata, ids = history
    limited = managed(metadata, lambda u: u.create_branch(ids[0], "b", 1000, 2000, 3))
    ahead, head = append(limited, file("x"), branch="b")
    back = managed(ahead, lambda u: u.rollback_to_snapshot(ids[0], "b"))
    assert back.refs["b"] == limited.refs["b"]
    assert back.current_snapshot_id == ids[2]
    made_at = ahead.snapshot_by_id(head).timestamp_ms
    by_time = managed(ahead, lambda u: u.rollback_to_timestamp(made_at + 1, branch="b"))
    assert by_time.refs["b"].snapshot_id == head
    for snapshot_id, branch, error in (
        (ids[1], "b", ValidationError),
        (head, "main", ValidationError),
        (ids[0], "nope", NoSuchSnapshotError),
    ):
        with pytest.raises(error):
            ManageSnapshots(ahead).rollback_to_snapshot(snapshot_id, branch)
    tagged = managed(ahead, lambda u: u.create_tag(head, "t"))
    with pytest.raises(ValidationError, match="is a tag"):
        ManageSnapshots(tagged).rollback_to_timestamp(made_at + 1, "t")


def test_a_branch_is_fast_forwarded_to_its_own_descendants_only(history):
    metadata, ids = history
    made = managed(metadata, lambda u: u.create_branch(ids[0], "b").fast_forward("b", "main"))
    assert made.refs["b"].snapshot_id == ids[2]
    assert managed(metadata, lambda u: u.fast_forward("new", "main")).refs["new"] == SnapshotRef(
        ids[2]
    )
    ahead, _ = append(made, file("x"), branch="b")
    assert managed(ahead, lambda u: u.fast_forward("main", "b")).current_snapshot_id == (
        ahead.refs["b"].snapshot_id
    )
    apart, _ = append(ahead, file("y"))
    with pytest.raises(ValidationError, match="not an ancestor"):
        ManageSnapshots(apart).fast_forward("main", "b")


def test_new_references_are_made_again_on_what_others_committed(history):
    metadata, ids = history
    update = ManageSnapshots(metadata).create_tag(ids[0], "t").create_branch(ids[1], "b")
    newer, _ = append(metadata, file("other"))
    made = commit(newer, update)
    assert set(made.refs) == {"main", "t", "b"}
    with pytest.raises(ValidationError, match="already"):
        update.apply(made)


def test_what_others_moved_meanwhile_is_not_overwritten(history):
    metadata, ids = history
    made = managed(metadata, lambda u: u.create_branch(ids[0], "b"))
    for change in (
        lambda u: u.rollback_to_snapshot(ids[0]),
        lambda u: u.set_current_snapshot(ids[1]),
    ):
        update = ManageSnapshots(made)
        change(update)
        with pytest.raises(CommitFailedError, match="was moved"):
            update.apply(append(made, file("other"))[0])
    for change in (
        lambda u: u.remove_branch("b"),
        lambda u: u.replace_branch(ids[1], "b"),
        lambda u: u.rename_branch("b", "c"),
        lambda u: u.rollback_to_snapshot(ids[0], "b"),
    ):
        update = ManageSnapshots(made)
        change(update)
        with pytest.raises(CommitFailedError, match="was moved"):
            update.apply(append(made, file("other"), branch="b")[0])


def test_a_staged_append_is_picked_once_and_says_where_it_came_from(history):
    metadata, _ = history
    staged, staged_id = append(
        metadata, file("staged"), stage_only=True, snapshot_properties={"wap.id": "w1"}
    )
    twin, twin_id = append(
        staged, file("twin"), stage_only=True, snapshot_properties={"wap.id": "w1"}
    )
    moved, _ = append(twin, file("other"))
    assert names(moved) == ["0", "1", "2", "other"]
    picked = managed(moved, lambda u: u.cherry_pick(staged_id))
    assert names(picked) == ["0", "1", "2", "other", "staged"]
    head = picked.current_snapshot()
    assert head.summary["source-snapshot-id"] == str(staged_id)
    assert head.summary["published-wap-id"] == "w1"
    assert head.summary["added-data-files"] == "1"
    assert head.operation == "append"
    for again, message in ((staged_id, "picked already"), (twin_id, "wap.id 'w1'")):
        with pytest.raises(ValidationError, match=message):
            ManageSnapshots(picked, IO).cherry_pick(again)
    with pytest.raises(ValidationError, match="ancestor already"):
        ManageSnapshots(picked, IO).cherry_pick(metadata.current_snapshot_id)


def test_a_batch_of_a_streaming_query_is_picked_once_and_says_so(history):
    metadata, _ = history
    query, epoch = "spark.sql.streaming.queryId", "spark.sql.streaming.epochId"

    def batch(base, name, number, **options):
        told = {query: "q", epoch: number}
        return append(base, file(name), snapshot_properties=told, **options)

    staged, staged_id = batch(metadata, "staged", "4", stage_only=True)
    earlier, earlier_id = batch(staged, "earlier", "3", stage_only=True)
    moved, _ = append(earlier, file("other"))
    picked = managed(moved, lambda u: u.cherry_pick(staged_id))
    assert picked.current_snapshot().summary[query] == "q"
    assert picked.current_snapshot().summary[epoch] == "4"
    # the query itself ran the batch again on main, with files of other names
    again, _ = batch(moved, "again", "4")
    with pytest.raises(ValidationError, match="batch 4 of the streaming query q is in the table"):
        ManageSnapshots(again, IO).cherry_pick(staged_id)
    for there in (picked, again):
        both = managed(there, lambda u: u.cherry_pick(earlier_id))
        summary = both.current_snapshot().summary
        assert summary["icecomb.picked-batch"] == "3 q"
        assert epoch not in summary, "Iceberg Java's sink would take it for the last"


FLINK = {
    "flink.job-id": "j",
    "flink.operator-id": "o",
    "flink.max-committed-checkpoint-id": "7",
}
CONNECT = {
    "kafka.connect.offsets.control.sink": '{"0": 12}',
    "kafka.connect.commit-id": "c",
}


@pytest.mark.parametrize("progress", [FLINK, CONNECT], ids=["flink", "kafka"])
def test_what_a_job_of_flink_or_kafka_wrote_says_how_far_it_is_unless_the_job_went_on(
    history, progress
):
    metadata, _ = history
    written = {**progress, "app": "etl"}
    staged, number = append(metadata, file("a"), snapshot_properties=written, stage_only=True)
    other = {key.replace("sink", "other"): value + "9" for key, value in progress.items()}
    moved, _ = append(staged, file("b"), snapshot_properties=other)
    summary = managed(moved, lambda u: u.cherry_pick(number)).current_snapshot().summary
    assert (summary.items() >= progress.items(), "app" in summary) == (True, False)
    later, _ = append(moved, file("c"), snapshot_properties=progress)
    summary = managed(later, lambda u: u.cherry_pick(number)).current_snapshot().summary
    assert summary.keys().isdisjoint(progress), "the job would go back to there"


def test_a_staged_change_on_the_head_of_main_is_simply_taken(history):
    metadata, _ = history
    operation = DeleteFiles(IO, stage_only=True).delete_data_file("/t/data/0")
    staged = commit(metadata, operation)
    picked = managed(staged, lambda u: u.cherry_pick(operation.snapshot_id))
    assert picked.current_snapshot_id == operation.snapshot_id
    assert len(picked.snapshots) == len(staged.snapshots)
    moved, _ = append(staged, file("other"))
    with pytest.raises(ValidationError, match="not an append"):
        ManageSnapshots(moved, IO).cherry_pick(operation.snapshot_id)


def test_replaced_partitions_are_picked_unless_they_changed(history):
    metadata, _ = history
    metadata, _ = append(metadata, file("tue", "tue"))
    operation = ReplacePartitions(IO, stage_only=True).append_data_file(file("new"))
    staged = commit(metadata, operation)
    elsewhere, _ = append(staged, file("tue2", "tue"))
    picked = managed(elsewhere, lambda u: u.cherry_pick(operation.snapshot_id))
    assert names(picked) == ["new", "tue", "tue2"]
    assert picked.current_snapshot().operation == "overwrite"
    touched, _ = append(staged, file("mon2"))
    with pytest.raises(ValidationError, match="conflicting"):
        ManageSnapshots(touched, IO).cherry_pick(operation.snapshot_id)
    removed = commit(staged, OverwriteFiles(IO).delete_data_file(file("0")))
    with pytest.raises(ValidationError, match="0"):
        ManageSnapshots(removed, IO).cherry_pick(operation.snapshot_id)


def test_a_pick_is_made_again_on_a_newer_base_and_leaves_no_file_when_given_up(history, tmp_path):
    metadata, _ = history
    staged, staged_id = append(metadata, file("staged"), stage_only=True)
    moved, _ = append(staged, file("a"))
    folder = Path(tmp_path) / "t" / "metadata"
    before = set(folder.iterdir())
    with suppress(ZeroDivisionError), ManageSnapshots(moved, IO) as update:
        update.cherry_pick(staged_id)
        assert set(folder.iterdir()) != before
        raise ZeroDivisionError
    assert set(folder.iterdir()) == before
    update = ManageSnapshots(moved, IO).cherry_pick(staged_id).create_tag(staged_id, "source")
    update.apply(moved)
    newer, _ = append(moved, file("b"))
    picked = commit(newer, update)
    assert names(picked) == ["0", "1", "2", "a", "b", "staged"]
    update.clean_up(picked)
    listed = {m.manifest_path for s in picked.snapshots for m in read_manifests(IO, s)}
    lists = {s.manifest_list for s in picked.snapshots}
    assert {str(path) for path in folder.iterdir()} == listed | lists


def test_a_change_without_a_table_cannot_be_committed(history):
    metadata, ids = history
    with pytest.raises(ValidationError, match="belongs to no table"):
        ManageSnapshots(metadata).create_tag(ids[0], "t").commit()
    update = ManageSnapshots(metadata, IO, lambda _: None).create_tag(ids[0], "t")
    update.commit()
    with pytest.raises(ValidationError, match="already"):
        update.commit()
