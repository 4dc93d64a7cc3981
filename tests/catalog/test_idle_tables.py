"""A table object that was idle while others committed and expired what it knows."""

from __future__ import annotations

from datetime import datetime, timezone

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog
from icecomb.format.errors import (
    CommitFailedError,
    NoSuchFileError,
    NoSuchSnapshotError,
    ValidationError,
)
from tests.rings import sampled

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "x": ["a", "b", "c"]})
FAR = datetime(2100, 1, 1, tzinfo=timezone.utc)
NEW = pa.table({"id": pa.array([3, 4], pa.int64()), "x": ["C", "d"]})


def settings(kind):
    # deletes old metadata files, too
    return {
        "write.metadata.delete-after-commit.enabled": "true",
        "write.metadata.previous-versions-max": "1",
        "format-version": kind,
    }


@pytest.fixture(params=["1", "2"])
def idle(request, tmp_path):
    """An idle object of a table whose snapshots, as this object knows them, are all gone."""
    catalog = load_catalog("files", type="hadoop", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", ROWS.schema, properties=settings(request.param))
    table.append(ROWS.slice(0, 1))
    table.append(ROWS.slice(1))
    idle = catalog.load_table("db.t")
    other = catalog.load_table("db.t")
    other.maintenance.rewrite_data_files(options={"rewrite-all": "true"})
    for _ in range(3):
        other.append(ROWS.slice(0, 0))
    other.maintenance.expire_snapshots().older_than(FAR).retain_last(1).commit()

    return idle


def rows(table):
    return sorted(table.refresh().scan().to_arrow()["id"].to_pylist())


CHANGES = {
    "append": (lambda t: t.append(NEW), [1, 2, 3, 3, 4]),
    "delete": (lambda t: t.delete("id = 2"), [1, 3]),
    "overwrite": (lambda t: t.overwrite(NEW, "id = 3"), [1, 2, 3, 4]),
    "upsert": (lambda t: t.upsert(NEW, join_cols=["id"]), [1, 2, 3, 4]),
    "compaction": (
        lambda t: t.maintenance.rewrite_data_files(options={"rewrite-all": "true"}),
        [1, 2, 3],
    ),
    "manifests": (lambda t: t.maintenance.rewrite_manifests(), [1, 2, 3]),
    "schema": (lambda t: t.update_schema().add_column("y", "int").commit(), [1, 2, 3]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_goes_on_from_the_newest_state(idle, change):
    make, expected = CHANGES[change]
    make(idle)
    assert rows(idle) == expected


def test_a_merge_goes_on_from_the_newest_state(idle):
    idle.merge(NEW, "t.id = s.id").when_matched_update_all().when_not_matched_insert_all().execute()
    assert rows(idle) == [1, 2, 3, 4]


@pytest.mark.parametrize(
    "change", ["append", "delete", "overwrite", "upsert", "schema", "merge", "publication"]
)
def test_a_change_is_not_made_to_another_table_of_the_name(idle, change):
    """The old files are gone with the old table, so what is missing is no matter of its age."""
    idle.append(NEW, branch="audit")
    [staged] = [ref.snapshot_id for name, ref in idle.refs().items() if name == "audit"]
    idle.append(ROWS.slice(0, 0))
    idle.catalog.purge_table("db.t")
    other = idle.catalog.create_table("db.t", ROWS.schema)
    other.append(ROWS)
    make = {
        "merge": lambda t: t.merge(NEW, "t.id = s.id").when_matched_delete().execute(),
        "publication": lambda t: t.manage_snapshots().cherry_pick(staged).commit(),
        **{name: make for name, (make, _) in CHANGES.items()},
    }[change]
    with pytest.raises(CommitFailedError, match=r"new table has its name|table-uuid has changed"):
        make(idle)
    assert rows(other) == [1, 2, 3]


@pytest.mark.parametrize("by_wap_id", [True, False])
def test_a_publication_goes_on_from_the_newest_state(idle, by_wap_id):
    other = idle.catalog.load_table("db.t")
    other.update_properties().set("write.wap.enabled", "true").commit()
    other.append(NEW, {"wap.id": "load"})
    [staged] = [s.snapshot_id for s in other.snapshots() if s.summary.get("wap.id")]
    other.manage_snapshots().create_tag(staged, "keep").commit()
    other.append(ROWS.slice(0, 0))
    late = idle.catalog.load_table("db.t")
    for _ in range(2):
        other.append(ROWS.slice(0, 0))
    other.maintenance.expire_snapshots().older_than(FAR).retain_last(1).commit()
    if by_wap_id:
        late.publish_changes("load")
    else:
        late.manage_snapshots().create_tag(staged, "again").cherry_pick(staged).commit()
    assert rows(late) == [1, 2, 3, 3, 4]
    assert ("again" in late.refs()) is not by_wap_id


def stream():
    return pa.RecordBatchReader.from_batches(NEW.schema, iter(NEW.to_batches()))


def test_a_stream_that_is_held_in_memory_is_not_asked_for_again(idle):
    idle.upsert(stream(), join_cols=["id"])
    assert rows(idle) == [1, 2, 3, 4]


def test_a_stream_that_was_read_is_asked_for_again(idle):
    def write():
        idle.overwrite(stream(), "id = 3")

    with pytest.raises(CommitFailedError, match="changed since this object was loaded") as refused:
        write()
    assert "stream" in refused.value.hint
    write()
    assert rows(idle) == [1, 2, 3, 4]


def test_what_is_refused_on_the_newest_state_is_refused(idle):
    with pytest.raises(ValidationError):
        idle.delete("no_such_column = 1")


def test_a_file_that_is_lost_in_the_newest_state_is_told(idle):
    idle.refresh()
    [task] = idle.scan().plan_files()
    idle.io.delete([task.file.file_path])
    with pytest.raises(NoSuchFileError):
        idle.delete("id = 2")


def test_a_transaction_stays_at_the_state_it_began_with(idle):
    with pytest.raises(NoSuchFileError), idle.transaction() as transaction:
        transaction.delete("id = 2")
    assert rows(idle) == [1, 2, 3]


# what others make of a table with rows; what an idle object of it does with that
MADE_BY_OTHERS = {
    "a staged change": (
        lambda t: t.append(NEW, {"wap.id": "load"}),
        lambda t, _: t.publish_changes("load"),
    ),
    "a snapshot to tag": (
        lambda t: t.append(NEW),
        lambda t, made: t.manage_snapshots().create_tag(made, "x").commit(),
    ),
    "a snapshot to go back to": (
        lambda t: t.append(NEW),
        lambda t, made: t.manage_snapshots().rollback_to_snapshot(made).commit(),
    ),
    "a branch to delete from": (
        lambda t: t.append(NEW, branch="b"),
        lambda t, _: t.delete("id = 4", branch="b"),
    ),
    "a branch to upsert to": (
        lambda t: t.append(NEW, branch="b"),
        lambda t, _: t.upsert(NEW.slice(1), ["id"], branch="b"),
    ),
    "a branch to limit": (
        lambda t: t.append(NEW, branch="b"),
        lambda t, _: t.manage_snapshots().set_min_snapshots_to_keep("b", 3).commit(),
    ),
    "a branch to move": (
        lambda t: t.append(NEW, branch="b"),
        lambda t, made: t.manage_snapshots().replace_branch(made, "b").commit(),
    ),
    "a branch to rename": (
        lambda t: t.append(NEW, branch="b"),
        lambda t, _: t.manage_snapshots().rename_branch("b", "c").commit(),
    ),
    "a branch to remove": (
        lambda t: t.append(NEW, branch="b"),
        lambda t, _: t.manage_snapshots().remove_branch("b").commit(),
    ),
    "a branch to go on from": (
        lambda t: t.append(NEW, branch="b"),
        lambda t, _: t.manage_snapshots().set_current_snapshot(ref_name="b").commit(),
    ),
    "a branch to forward to": (
        lambda t: t.append(NEW, branch="b"),
        lambda t, _: t.manage_snapshots().fast_forward("main", "b").commit(),
    ),
    "a first snapshot before a time": (
        lambda t: t.append(NEW),
        lambda t, _: t.manage_snapshots().rollback_to_timestamp(1 << 52).commit(),
    ),
}


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory):
    catalog = load_catalog("made", type="hadoop", warehouse=str(tmp_path_factory.mktemp("made")))
    catalog.create_namespace("db")
    return catalog


@pytest.mark.parametrize("made", sampled(MADE_BY_OTHERS, keep=4))
def test_what_others_have_made_since_is_there(warehouse, made):
    others, use = MADE_BY_OTHERS[made]
    name = f"db.t{list(MADE_BY_OTHERS).index(made)}"
    table = warehouse.create_table(
        name, ROWS.schema, properties={"write.wap.enabled": str("staged" in made).lower()}
    )
    if "first" not in made:
        table.append(ROWS)
    late = warehouse.load_table(name)
    others(table)
    use(late, table.snapshots()[-1].snapshot_id)
    assert late.metadata.last_updated_ms >= table.metadata.last_updated_ms


def test_what_nobody_has_made_is_missing(warehouse):
    table = warehouse.create_table("db.missing", ROWS.schema)
    table.append(ROWS)
    late = warehouse.load_table("db.missing")
    table.append(ROWS)
    for use in (
        lambda: late.publish_changes("load"),
        lambda: late.manage_snapshots().create_tag(1, "x"),
        lambda: late.manage_snapshots().remove_branch("b"),
        lambda: late.delete("id = 4", branch="b"),
    ):
        with pytest.raises(NoSuchSnapshotError):
            use()
