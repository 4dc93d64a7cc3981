"""A table object that was idle while others committed and expired what it knows."""

from __future__ import annotations

from datetime import datetime, timezone

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog
from icecomb.format.errors import CommitFailedError, NoSuchFileError, ValidationError

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


@pytest.mark.parametrize("change", ["overwrite", "upsert"])
def test_a_stream_that_was_read_is_asked_for_again(idle, change):
    def write():
        reader = pa.RecordBatchReader.from_batches(NEW.schema, iter(NEW.to_batches()))
        if change == "overwrite":
            idle.overwrite(reader, "id = 3")
        else:
            idle.upsert(reader, join_cols=["id"])

    with pytest.raises(CommitFailedError, match="Others expired files of this object") as refused:
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
