"""What was published is not published again, also once the first publication has expired from `main`."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icecomb.catalog import load_catalog
from icecomb.format.errors import ValidationError
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.manifests.reader import read_manifest
from icecomb.format.operation.append import FastAppend

FAR = datetime(2100, 1, 1, tzinfo=timezone.utc)


def rows(*ids):
    return pa.table({"id": pa.array(ids, pa.int64())})


def ids(table):
    return sorted(table.refresh().scan().to_arrow()["id"].to_pylist())


@pytest.fixture(params=["1", "2"])
def table(request, tmp_path):
    catalog = load_catalog("files", type="hadoop", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    properties = {"write.wap.enabled": "true", "format-version": request.param}
    table = catalog.create_table("db.t", rows().schema, properties=properties)
    table.append(rows(1))
    return table


@pytest.fixture
def staged(table):
    """A staged snapshot that a tag keeps."""
    table.append(rows(3), {"wap.id": "load"})
    found = next(s for s in table.snapshots() if s.summary.get("wap.id") == "load")
    table.manage_snapshots().create_tag(found.snapshot_id, "audit").commit()
    return found.snapshot_id


def publish(table, snapshot_id, by_wap_id):
    if by_wap_id:
        table.publish_changes("load")
    else:
        table.manage_snapshots().cherry_pick(snapshot_id).commit()


def commit_and_expire(table, count=2):
    """Others go on, and all but their last snapshot expires."""
    for number in range(count):
        table.append(rows(100 + number))
    table.maintenance.expire_snapshots().older_than(FAR).retain_last(1).commit()


@pytest.mark.parametrize("moved_on", [False, True], ids=["fast forward", "applied again"])
@pytest.mark.parametrize("by_wap_id", [False, True])
def test_it_is_refused_after_the_first_one_has_expired(table, staged, moved_on, by_wap_id):
    if moved_on:
        table.append(rows(2))
    publish(table, staged, by_wap_id)
    commit_and_expire(table)
    before = ids(table)
    assert before.count(3) == 1
    with pytest.raises(ValidationError, match="published already, by a snapshot that has expired"):
        publish(table, staged, by_wap_id)
    assert ids(table) == before


def test_it_is_refused_also_if_its_rows_were_moved_by_a_compaction(table, staged):
    table.append(rows(2))
    publish(table, staged, by_wap_id=True)
    table.maintenance.rewrite_data_files(options={"rewrite-all": "true"})
    commit_and_expire(table)
    with pytest.raises(ValidationError, match="published already"):
        publish(table, staged, by_wap_id=True)


def test_what_other_writers_published_and_expired_is_known_by_its_files(table, staged):
    table.append(rows(2))
    publish(table, staged, by_wap_id=False)
    commit_and_expire(table)
    with table.transaction() as transaction:
        transaction.remove_properties("icecomb.published-snapshots")
    with pytest.raises(ValidationError, match="1 of the 1 files that it added are in the table"):
        publish(table, staged, by_wap_id=False)
    assert ids(table).count(3) == 1


def test_files_that_others_added_in_another_spelling_are_not_published_again(table, staged):
    found = table.snapshot_by_id(staged)
    (entry,) = (
        entry
        for manifest in read_manifests(table.io, found)
        if manifest.added_snapshot_id == staged
        for entry in read_manifest(table.io, manifest, spec=table.metadata.spec())
    )
    path = f"file:{entry.data_file.file_path}"
    table.commit(FastAppend(table.io).append_data_file(replace(entry.data_file, file_path=path)))
    with pytest.raises(ValidationError, match="1 of the 1 files that it added are in the table"):
        publish(table, staged, by_wap_id=False)
    assert ids(table) == [1, 3]


def test_what_waited_long_is_published_once(table, staged):
    """Ancestors of main expired meanwhile, and none of them was a publication."""
    commit_and_expire(table, 3)
    publish(table, staged, by_wap_id=True)
    assert ids(table).count(3) == 1
    with pytest.raises(ValidationError, match="already"):
        publish(table, staged, by_wap_id=True)


def test_what_was_rolled_back_may_be_published_again(table, staged):
    before = table.current_snapshot().snapshot_id
    table.append(rows(2))
    publish(table, staged, by_wap_id=True)
    table.manage_snapshots().rollback_to_snapshot(before).commit()
    assert ids(table) == [1]
    publish(table, staged, by_wap_id=True)
    assert ids(table) == [1, 3]


def test_another_load_of_the_same_id_is_refused_too(table, staged):
    table.append(rows(2))
    table.manage_snapshots().cherry_pick(staged).commit()
    table.append(rows(3), {"wap.id": "load"})
    again = [s.snapshot_id for s in table.snapshots() if s.summary.get("wap.id") == "load"][-1]
    table.manage_snapshots().create_tag(again, "again").commit()
    commit_and_expire(table)
    with pytest.raises(ValidationError, match="already"):
        table.manage_snapshots().cherry_pick(again).commit()


def test_the_note_has_only_snapshots_that_are_there(table, staged):
    table.append(rows(2))
    publish(table, staged, by_wap_id=True)
    assert table.properties["icecomb.published-snapshots"] == str(staged)
    table.manage_snapshots().remove_tag("audit").commit()
    commit_and_expire(table)
    table.append(rows(4), {"wap.id": "next"})
    table.append(rows(5))
    table.publish_changes("next")
    [found] = [s.snapshot_id for s in table.snapshots() if s.summary.get("wap.id") == "next"]
    assert table.properties["icecomb.published-snapshots"] == str(found)


def first_publication(table, staged):
    """What became of the staged snapshot, which others' rows came before; and the head before it."""
    table.append(rows(2))
    before = table.current_snapshot().snapshot_id
    publish(table, staged, by_wap_id=True)
    return table.current_snapshot().snapshot_id, before


def change(table, update):
    with table.manage_snapshots() as manage:
        update(manage)


def test_what_was_picked_from_a_publication_is_not_published_again(table, staged):
    published, before = first_publication(table, staged)
    change(table, lambda manage: manage.rollback_to_snapshot(before))
    table.append(rows(4))
    change(table, lambda manage: manage.cherry_pick(published))
    assert table.current_snapshot().summary["published-wap-id"] == "load"
    for by_wap_id in (False, True):
        with pytest.raises(ValidationError, match="picked already"):
            publish(table, staged, by_wap_id)
    assert ids(table) == [1, 2, 3, 4]


def test_a_publication_is_not_picked_beside_another_one_of_the_same(table, staged):
    published, before = first_publication(table, staged)
    change(table, lambda manage: manage.rollback_to_snapshot(before))
    table.append(rows(4))
    publish(table, staged, by_wap_id=True)
    with pytest.raises(ValidationError, match="picked already"):
        change(table, lambda manage: manage.cherry_pick(published))
    assert ids(table) == [1, 2, 3, 4]


def test_a_publication_is_not_picked_where_the_staged_snapshot_itself_is(table, staged):
    published, _ = first_publication(table, staged)
    change(table, lambda manage: manage.set_current_snapshot(staged))
    table.append(rows(4))
    with pytest.raises(ValidationError, match="picked already"):
        change(table, lambda manage: manage.cherry_pick(published))
    assert ids(table) == [1, 3, 4]


@pytest.mark.parametrize("kept", ["audit", None], ids=["staged one kept", "staged one expired"])
def test_a_publication_is_not_picked_after_another_one_has_expired(table, staged, kept):
    published, before = first_publication(table, staged)
    change(table, lambda manage: manage.create_tag(published, "first"))
    change(table, lambda manage: manage.rollback_to_snapshot(before))
    table.append(rows(4))
    publish(table, staged, by_wap_id=True)
    table.maintenance.rewrite_data_files(options={"rewrite-all": "true"})
    if kept is None:
        change(table, lambda manage: manage.remove_tag("audit"))
    commit_and_expire(table)
    assert (table.snapshot_by_id(staged) is None) is (kept is None)
    with pytest.raises(ValidationError, match="published already"):
        change(table, lambda manage: manage.cherry_pick(published))
    assert ids(table).count(3) == 1


def test_a_publication_is_not_picked_after_an_older_one_has_expired(table, staged):
    """`main` goes back to a line whose oldest snapshot is older than the publication."""
    _, before = first_publication(table, staged)
    table.maintenance.rewrite_data_files(options={"rewrite-all": "true"})
    table.append(rows(5))
    line = table.current_snapshot().snapshot_id
    change(table, lambda manage: manage.create_branch(line, "line"))
    change(table, lambda manage: manage.rollback_to_snapshot(before))
    table.append(rows(4))
    publish(table, staged, by_wap_id=True)
    second = table.current_snapshot().snapshot_id
    change(table, lambda manage: manage.create_tag(second, "second"))
    table.maintenance.expire_snapshots().older_than(FAR).retain_last(1).commit()
    change(table, lambda manage: manage.set_current_snapshot(line))
    with pytest.raises(ValidationError, match="published already"):
        change(table, lambda manage: manage.cherry_pick(second))
    assert ids(table) == [1, 2, 3, 5]


def test_what_a_branch_brought_is_not_published_after_it_has_expired(table, staged):
    change(table, lambda manage: manage.create_branch(staged, "work"))
    change(table, lambda manage: manage.fast_forward("main", "work"))
    table.maintenance.rewrite_data_files(options={"rewrite-all": "true"})
    commit_and_expire(table)
    with pytest.raises(ValidationError, match="published already"):
        publish(table, staged, by_wap_id=True)
    assert ids(table).count(3) == 1


def test_what_another_writer_published_is_noted_before_it_expires(table, staged):
    first_publication(table, staged)
    with table.transaction() as transaction:
        transaction.remove_properties("icecomb.published-snapshots")
    table.maintenance.rewrite_data_files(options={"rewrite-all": "true"})
    commit_and_expire(table)
    with pytest.raises(ValidationError, match="published already"):
        publish(table, staged, by_wap_id=True)
    assert ids(table).count(3) == 1


def test_an_expiration_notes_nothing_where_nothing_was_staged(table):
    table.append(rows(2))
    change(table, lambda manage: manage.create_tag(table.current_snapshot().snapshot_id, "kept"))
    commit_and_expire(table)
    assert "icecomb.published-snapshots" not in table.refresh().properties


@pytest.mark.parametrize("way", ["added to main", "published before", "in a rewritten manifest"])
def test_a_file_that_main_has_by_then_is_not_published_into_it(table, tmp_path, way):
    path = str(tmp_path / "given.parquet")
    pq.write_table(rows(7), path)
    table.add_files([path], {"wap.id": "first"})
    if way == "published before":
        table.add_files([path], {"wap.id": "second"})
        table.append(rows(2))
        table.publish_changes("second")
    else:
        table.append(rows(2))
        table.add_files([path])
    if way == "in a rewritten manifest":
        table.rewrite_manifests()
    table.append(rows(8))
    before = ids(table)
    with pytest.raises(ValidationError, match="1 of the 1 files that it added are in the table"):
        table.publish_changes("first")
    assert ids(table) == before
