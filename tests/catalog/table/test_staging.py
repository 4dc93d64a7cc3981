"""Write, audit, publish; and rewritten manifests, both through a table of a catalog."""

from __future__ import annotations

import pyarrow as pa
import pytest

from icecomb.format.errors import NoSuchSnapshotError, ValidationError
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import LongType, NestedField

SCHEMA = Schema((NestedField(1, "id", LongType()),))
ENABLED = {"write.wap.enabled": "true"}


@pytest.fixture
def table(lake):
    table = lake.create_table(("db", "t"), SCHEMA, properties=ENABLED)
    table.append(rows(1, 2))
    return table


def rows(*ids):
    return pa.table({"id": pa.array(ids, pa.int64())})


def ids(table, snapshot_id=None):
    return sorted(table.scan(snapshot_id=snapshot_id).to_arrow()["id"].to_pylist())


def newest(table):
    return table.snapshots()[-1]


def test_a_staged_append_is_not_read_until_it_is_published(table):
    table.append(rows(3), {"wap.id": "load-1"})
    staged = newest(table)
    assert ids(table) == [1, 2]
    assert ids(table, staged.snapshot_id) == [1, 2, 3]
    assert staged.summary["wap.id"] == "load-1"
    assert len(table.refs()) == 1
    assert len(table.history()) == 1
    table.publish_changes("load-1")
    assert ids(table) == [1, 2, 3]
    # nothing was in between: main goes to the staged snapshot itself
    assert table.current_snapshot().snapshot_id == staged.snapshot_id


def test_a_staged_append_is_published_on_top_of_what_came_in_between(table):
    table.append(rows(3), {"wap.id": "load-1"})
    staged = newest(table)
    table.append(rows(4))
    table.publish_changes("load-1")
    assert ids(table) == [1, 2, 3, 4]
    summary = table.current_snapshot().summary
    assert summary["published-wap-id"] == "load-1"
    assert summary["source-snapshot-id"] == str(staged.snapshot_id)
    assert summary["total-records"] == "4"
    assert "wap.id" not in summary


@pytest.mark.parametrize("between", [False, True], ids=["moved", "applied again"])
def test_nothing_is_published_twice(table, between):
    table.append(rows(3), {"wap.id": "load-1"})
    if between:
        table.append(rows(4))
    table.publish_changes("load-1")
    before = table.metadata_location
    with pytest.raises(ValidationError, match="already"):
        table.publish_changes("load-1")
    assert table.refresh().metadata_location == before


@pytest.mark.parametrize("published_first", [True, False])
def test_a_load_that_was_staged_twice_is_published_once(table, published_first):
    table.append(rows(3), {"wap.id": "load-1"})
    if published_first:
        table.publish_changes("load-1")
    table.append(rows(3), {"wap.id": "load-1"})
    again = newest(table).snapshot_id
    with pytest.raises(ValidationError, match=f"2 snapshots were staged.*{again}"):
        table.publish_changes("load-1")
    if not published_first:
        with table.manage_snapshots() as manage:
            manage.cherry_pick(table.snapshots()[-2].snapshot_id)
    with (
        pytest.raises(ValidationError, match="'load-1' was published already"),
        table.manage_snapshots() as manage,
    ):
        manage.cherry_pick(again)
    assert ids(table) == [1, 2, 3]


def test_what_was_not_staged_cannot_be_published(table):
    with pytest.raises(NoSuchSnapshotError, match="Nothing was staged"):
        table.publish_changes("x")


def test_deletes_and_overwrites_are_staged_too(table):
    table.delete("id = 1", {"wap.id": "delete"})
    assert ids(table) == [1, 2]
    assert ids(table, newest(table).snapshot_id) == [2]
    table.overwrite(rows(9), snapshot_properties={"wap.id": "overwrite"})
    assert ids(table) == [1, 2]
    assert ids(table, newest(table).snapshot_id) == [9]
    table.publish_changes("overwrite")
    assert ids(table) == [9]
    with pytest.raises(ValidationError, match="it is not an append"):
        table.publish_changes("delete")
    assert ids(table) == [9]


def test_the_first_rows_of_a_table_can_be_staged(lake):
    table = lake.create_table(("db", "empty"), SCHEMA, properties=ENABLED)
    table.append(rows(1), {"wap.id": "first"})
    assert table.current_snapshot() is None
    assert ids(table) == []
    table.publish_changes("first")
    assert ids(table) == [1]


@pytest.mark.parametrize("properties", [{}, {"write.wap.enabled": "false"}])
def test_nothing_is_staged_in_a_table_that_does_not_allow_it(lake, properties):
    table = lake.create_table(("db", "plain"), SCHEMA, properties=properties)
    table.append(rows(1), {"wap.id": "load-1"})
    assert ids(table) == [1]
    assert table.current_snapshot().summary["wap.id"] == "load-1"


def test_a_table_reads_the_same_after_its_manifests_were_rewritten(table):
    for n in (3, 4, 5):
        table.append(rows(n))
    table.delete("id = 3")
    before = ids(table)
    table.rewrite_manifests(snapshot_properties={"why": "many"})
    snapshot = table.current_snapshot()
    assert len(read_manifests(table.io, snapshot)) == 1
    assert (snapshot.summary["operation"], snapshot.summary["why"]) == ("replace", "many")
    assert ids(table) == before == [1, 2, 4, 5]
    location = table.metadata_location
    table.rewrite_manifests()
    assert table.metadata_location == location


def test_the_choice_of_manifests_and_their_clusters_are_passed_on(table):
    for n in (3, 4, 5):
        table.append(rows(n))
    newest_number = table.current_snapshot().sequence_number
    table.rewrite_manifests(
        rewrite_if=lambda manifest: manifest.sequence_number < newest_number,
        cluster_by=lambda file: file.record_count,
    )
    manifests = read_manifests(table.io, table.current_snapshot())
    assert sorted(m.existing_files_count for m in manifests) == [0, 1, 2]
    assert ids(table) == [1, 2, 3, 4, 5]


def test_transactions_rewrite_and_publish_with_other_changes(table):
    table.append(rows(3), {"wap.id": "load-1"})
    with table.transaction() as change:
        change.append(rows(4))
        change.publish_changes("load-1")
        change.rewrite_manifests()
    assert ids(table) == [1, 2, 3, 4]
    assert len(read_manifests(table.io, table.current_snapshot())) == 1
    operations = [snapshot.operation for snapshot in table.snapshots()]
    assert operations == ["append", "append", "append", "append", "replace"]


def make_required(table, name="id"):
    with table.update_schema(allow_incompatible_changes=True) as update:
        update.update_column(name, required=True)


@pytest.mark.parametrize("in_between", [False, True])
def test_a_staged_null_is_not_published_into_a_column_that_became_required(table, in_between):
    table.append(rows(3, None), {"wap.id": "load-1"})
    table.append(rows(4), {"wap.id": "load-2"})
    table.append(rows(5), {"wap.id": "load-3"})
    make_required(table)
    if in_between:
        table.append(rows(6))
    staged = next(s for s in table.snapshots() if s.summary.get("wap.id") == "load-1")
    for publish in (
        lambda: table.publish_changes("load-1"),
        lambda: table.manage_snapshots().cherry_pick(staged.snapshot_id),
        lambda: table.manage_snapshots().set_current_snapshot(staged.snapshot_id).commit(),
    ):
        with pytest.raises(ValidationError, match="column 'id' is required now"):
            publish()
    table.publish_changes("load-2")
    table.publish_changes("load-3")
    assert ids(table) == [1, 2, 4, 5, *([6] if in_between else [])]


@pytest.mark.parametrize("later", ["append", "rewrite"])
def test_nulls_of_a_branch_whose_append_has_expired_are_not_merged_either(table, later):
    table.append(rows(3, None), branch="audit")
    if later == "append":
        table.append(rows(4), branch="audit")
    else:
        options = {"rewrite-all": "true"}
        table.maintenance.rewrite_data_files(branch="audit", options=options)
    table.append(rows(5), branch="clean")
    table.append(rows(6), branch="clean")
    table.append(rows(7))
    table.refresh().expire_snapshots().older_than(1 << 52).retain_last(1).commit()
    make_required(table.refresh())
    for name in ("audit", "clean"):
        head = table.refs()[name].snapshot_id
        assert not table.metadata.has_snapshot(table.snapshot_by_id(head).parent_snapshot_id)
    with pytest.raises(ValidationError, match="column 'id' is required now"):
        table.manage_snapshots().set_current_snapshot(ref_name="audit")
    table.manage_snapshots().set_current_snapshot(ref_name="clean").commit()
    assert ids(table) == [1, 2, 5, 6]


def test_a_branch_with_nulls_or_without_a_column_that_became_required_is_not_merged(table):
    with table.manage_snapshots() as manage:
        manage.create_branch(table.current_snapshot().snapshot_id, "audit")
        manage.create_branch(table.current_snapshot().snapshot_id, "clean")
    table.append(rows(3, None), branch="audit")
    table.delete("id = 3", branch="audit")
    table.append(rows(4), branch="clean")
    make_required(table)
    with pytest.raises(ValidationError, match="column 'id' is required now"):
        table.manage_snapshots().fast_forward("main", "audit")
    with pytest.raises(ValidationError, match="column 'id' is required now"):
        table.manage_snapshots().set_current_snapshot(ref_name="audit")
    with table.update_schema(allow_incompatible_changes=True) as update:
        update.add_column("day", "long", required=True)
    with pytest.raises(ValidationError, match="no column 'day', which is required now"):
        table.manage_snapshots().fast_forward("main", "clean")
    with table.update_schema() as update:
        update.make_column_optional("day")
    with table.manage_snapshots() as manage:
        manage.fast_forward("main", "clean")
    assert ids(table) == [1, 2, 4]


def pair(number, value):
    return pa.table({"id": pa.array([number], pa.int64()), "v": pa.array([value], pa.int64())})


@pytest.mark.parametrize("evolved", [False, True])
def test_a_replaced_partition_that_others_added_to_is_not_published(table, evolved):
    """Whatever partitions the table has by then: the row is of the one that is replaced."""
    with table.update_schema() as change:
        change.add_column("v", LongType())
    with table.update_spec() as change:
        change.add_field("id", "identity")
    table.overwrite(pair(1, 1))
    table.dynamic_partition_overwrite(pair(1, 10), {"wap.id": "replaced"})
    table.dynamic_partition_overwrite(pair(2, 20), {"wap.id": "other"})
    if evolved:
        with table.update_spec() as change:
            change.add_field("v", "bucket[4]")
    table.append(pair(1, 99))
    with pytest.raises(ValidationError, match="conflicting files that can contain"):
        table.publish_changes("replaced")
    table.publish_changes("other")
    assert ids(table) == [1, 1, 2]
