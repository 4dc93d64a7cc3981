"""Schema, partitioning, properties and snapshots of tables change by context managers."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest

from icecomb.format.errors import (
    CommitFailedError,
    CommitStateUnknownError,
    SchemaError,
    ValidationError,
)
from icecomb.format.operation.append import FastAppend
from icecomb.format.spec.types import DoubleType, LongType, StringType

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int32()), "s": ["a", "b", "c"], "x": [1.0, 2.0, 3.0]})


@pytest.fixture
def table(lake):
    table = lake.create_table("db.t", ROWS.schema)
    table.append(ROWS)
    return table


def files(table):
    root = Path(table.location().removeprefix("file:"))
    return {p.name for p in root.rglob("*") if p.is_file() and not p.name.startswith(".")}


def data_files(table):
    found = {name for name in files(table) if name.endswith(".parquet")}
    return {name for name in found if not name.startswith("icecomb-gc-")}


def test_a_schema_evolves_and_old_rows_follow(lake, table):
    with table.update_schema() as update:
        update.add_column("city", StringType(), "where").rename_column("s", "name")
        update.update_column("id", LongType()).move_first("x").delete_column("x")
    assert [f.name for f in table.schema().fields] == ["id", "name", "city"]
    new = pa.table({"id": [4], "name": ["d"], "city": ["Paris"]})
    table.append(new)
    found = lake.load_table("db.t").scan().to_arrow().sort_by("id").to_pydict()
    assert found == {
        "id": [1, 2, 3, 4],
        "name": ["a", "b", "c", "d"],
        "city": [None, None, None, "Paris"],
    }


def test_nothing_is_committed_when_the_block_fails_or_changes_nothing(table):
    before = table.metadata_location
    with suppress(ZeroDivisionError), table.update_schema() as update:
        update.add_column("city", StringType())
        raise ZeroDivisionError
    with suppress(SchemaError), table.update_schema() as update:
        update.add_column("city", StringType())
        update.add_column("ID", StringType())
    for change in (
        table.update_schema,
        table.update_spec,
        table.update_sort_order,
        table.update_properties,
    ):
        with change():
            pass
    assert table.refresh().metadata_location == before


def test_partitioning_evolves_and_both_layouts_are_read(lake, table):
    with table.update_spec() as update:
        update.add_field("id", "bucket[4]").add_identity("s")
    table.append(ROWS)
    with table.update_spec() as update:
        update.remove_field("id_bucket_4")
    table.append(ROWS)
    assert [f.name for f in table.spec().fields] == ["s"]
    assert len(table.specs()) == 3
    loaded = lake.load_table("db.t")
    assert loaded.scan("s = 'b'").to_arrow().to_pydict()["id"] == [2, 2, 2]
    with pytest.raises(SchemaError, match="partition field 's' needs it"):
        table.update_schema().delete_column("s").commit()


def test_the_sort_order_and_properties_change(lake, table):
    with table.update_sort_order() as update:
        update.asc("s").desc("id")
    with table.update_properties() as update:
        update.set("owner", "me").set("color", "red")
    with table.update_properties() as update:
        update.remove("color")
    loaded = lake.load_table("db.t")
    assert [f.source_id for f in loaded.sort_order().fields] == [2, 1]
    assert loaded.properties["owner"] == "me"
    assert "color" not in loaded.properties


def test_branches_tags_and_rollback(lake, table):
    first = table.current_snapshot().snapshot_id
    table.append(ROWS)
    table.manage_snapshots().create_tag(first, "one").create_branch(first, "dev").commit()
    table.append(ROWS, branch="dev")
    assert table.scan().use_ref("dev").to_arrow().num_rows == 6
    with table.manage_snapshots() as manage:
        manage.rollback_to_snapshot(first).fast_forward("main", "dev")
    loaded = lake.load_table("db.t")
    assert loaded.current_snapshot() == loaded.snapshot_by_name("dev")
    assert loaded.snapshot_by_name("one").snapshot_id == first


def test_changes_by_two_writers_are_both_kept(lake, table):
    other = lake.load_table("db.t")
    update = table.update_schema().add_column("mine", LongType())
    other.append(ROWS)
    with other.update_schema() as theirs:
        theirs.add_column("theirs", LongType())
    update.commit()
    assert [f.name for f in table.schema().fields] == ["id", "s", "x", "theirs", "mine"]
    assert table.scan().to_arrow().num_rows == 6


def test_a_change_that_contradicts_another_writers_is_refused(lake, table):
    first = table.current_snapshot().snapshot_id
    table.append(ROWS)
    other = lake.load_table("db.t")
    update = table.update_schema().add_column("city", LongType())
    rollback = table.manage_snapshots().rollback_to_snapshot(first)
    with other.update_schema() as theirs:
        theirs.add_column("City", StringType())
    other.append(ROWS.select(["id"]))
    with pytest.raises(SchemaError, match="'City' already"):
        update.commit()
    with pytest.raises(CommitFailedError, match="was moved"):
        rollback.commit()
    assert lake.load_table("db.t").metadata == other.metadata


def test_a_change_that_is_none_on_a_stale_state_is_looked_at_on_the_newest(lake, table):
    stale = lake.load_table("db.t")
    with table.update_properties() as update:
        update.set("owner", "them")
    with stale.update_properties() as update:
        update.remove("owner")
    assert "owner" not in lake.load_table("db.t").properties
    table.append(ROWS)
    with pytest.raises(CommitFailedError, match="was moved"):
        stale.manage_snapshots().set_current_snapshot(stale.current_snapshot().snapshot_id).commit()
    stale.update_schema().commit()
    assert stale.metadata == lake.load_table("db.t").metadata


def test_a_change_says_that_nothing_has_happened_before_its_commit(table):
    table.append(ROWS)
    changes = {
        "UpdateSchema": table.update_schema(),
        "UpdateSpec": table.update_spec(),
        "UpdateSortOrder": table.update_sort_order(),
        "UpdateProperties": table.update_properties(),
        "ManageSnapshots": table.manage_snapshots(),
        "ExpireSnapshots": table.expire_snapshots(),
    }
    for name, change in changes.items():
        assert repr(change) == f"<{name}: nothing has happened before commit()>"
        change.commit()
        assert repr(change) == f"<{name}: committed, or refused>"
    merge = table.merge(ROWS, on=ROWS.column_names[:1]).when_not_matched_insert_all()
    assert repr(merge) == "<Merge: nothing has happened before execute()>"
    merge.execute()
    assert repr(merge) == "<Merge: executed, or refused>"


def test_expired_snapshots_go_with_their_files(lake, table):
    table.append(ROWS)
    table.overwrite(ROWS)
    assert len(data_files(table)) == 3
    future = int(time.time() * 1000) + 1
    with table.expire_snapshots(dry_run=True) as expire:
        expire.older_than(future)
    planned = expire.result
    assert len(data_files(table)) == 3
    assert len(planned.files.data_files) == 2
    with table.expire_snapshots() as expire:
        expire.older_than(future)
    assert expire.result == planned
    assert len(data_files(table)) == 1
    loaded = lake.load_table("db.t")
    assert len(loaded.snapshots()) == 1
    assert loaded.scan().to_arrow().num_rows == 3


def test_no_file_is_deleted_unless_the_expiration_is_proven(table, monkeypatch):
    table.append(ROWS)
    table.overwrite(ROWS)
    before = data_files(table)
    for error in (CommitFailedError, CommitStateUnknownError):

        def fail(*_, error=error):
            raise error("no")

        with monkeypatch.context() as patch:
            patch.setattr("icecomb.catalog.commit.commit.settle", fail)
            patch.setattr("icecomb.catalog.commit.commit.RetrySettings.pause", lambda *_: 0)
            expire = table.expire_snapshots().older_than(int(time.time() * 1000) + 1)
            with pytest.raises(error):
                expire.commit()
        assert data_files(table) == before
        assert expire.result is None


@pytest.mark.parametrize("inside", [True, False])
def test_nothing_is_deleted_when_the_outcome_is_unknown(table, monkeypatch, inside):
    staged = FastAppend(table.io, stage_only=True)
    staged.append_data_file(next(iter(table.scan().plan_files())).file)
    table.commit(staged)
    table.append(ROWS)

    def fail(*_):
        raise CommitStateUnknownError("who knows")

    monkeypatch.setattr("icecomb.catalog.commit.commit.settle", fail)

    def pick():
        with table.manage_snapshots() as manage:
            manage.cherry_pick(staged.snapshot_id)
            if inside:
                manage.commit()

    def append():
        with table.transaction() as transaction:
            transaction.append(ROWS)
            if inside:
                transaction.commit_transaction()

    for change, kinds in ((pick, {"avro"}), (append, {"avro", "parquet"})):
        before = files(table)
        with pytest.raises(CommitStateUnknownError):
            change()
        assert {name.rpartition(".")[2] for name in files(table) - before} >= kinds


def test_a_change_is_committed_once(table):
    with table.update_properties() as update:
        update.set("owner", "me")
        update.commit()
    with table.transaction() as transaction:
        transaction.set_properties(color="red")
        transaction.commit_transaction()
    assert (table.properties["owner"], table.properties["color"]) == ("me", "red")
    with pytest.raises(ValidationError, match="already"):
        update.commit()


def test_a_transaction_is_seen_whole_or_not_at_all(lake, table):
    with table.transaction() as transaction:
        with transaction.update_schema() as update:
            update.add_column("city", StringType())
        with transaction.update_spec() as update:
            update.add_identity("city")
        transaction.append(ROWS.append_column("city", pa.array(["A", "B", "A"])))
        transaction.append(ROWS.select(["id"]))
        transaction.set_properties(owner="me").remove_properties("absent")
        with transaction.manage_snapshots() as manage:
            manage.create_tag(transaction.metadata.current_snapshot_id, "done")
        assert lake.load_table("db.t").metadata == table.metadata
    loaded = lake.load_table("db.t")
    assert loaded.metadata == table.metadata
    assert len(loaded.metadata.metadata_log) == 2
    assert loaded.scan("city = 'A'").to_arrow().num_rows == 2
    assert loaded.scan().to_arrow().num_rows == 9
    assert loaded.snapshot_by_name("done") == loaded.current_snapshot()
    assert len(loaded.snapshots()) == 3
    assert len(loaded.history()) == 2
    assert loaded.properties["owner"] == "me"


def test_a_transaction_is_made_again_on_what_others_committed(lake, table):
    other = lake.load_table("db.t")
    with table.transaction() as transaction:
        with transaction.update_schema() as update:
            update.add_column("city", StringType())
        transaction.append(ROWS.append_column("city", pa.array(["A", "B", "C"])))
        transaction.append(ROWS)
        other.append(ROWS)
        with other.update_properties() as update:
            update.set("owner", "them")
    loaded = lake.load_table("db.t")
    assert loaded.properties["owner"] == "them"
    assert loaded.scan().to_arrow().num_rows == 12
    assert loaded.scan("city = 'B'").to_arrow().num_rows == 1
    with table.transaction() as transaction:
        with transaction.update_schema() as update:
            update.add_column("mine", StringType())
        with other.update_schema() as update:
            update.add_column("theirs", LongType())
    assert [f.name for f in table.schema().fields][-2:] == ["theirs", "mine"]


@pytest.mark.parametrize("kind", ["column", "spec", "order"])
def test_files_written_with_ids_that_others_took_are_not_committed(lake, table, kind):
    def change(target, column, source):
        if kind == "column":
            with target.update_schema() as update:
                update.add_column(column, StringType())
        elif kind == "spec":
            with target.update_spec() as update:
                update.add_field(source, "bucket[4]")
        else:
            with target.update_sort_order() as update:
                update.asc(source)

    other = lake.load_table("db.t")
    transaction = table.transaction()
    change(transaction, "mine", "id")
    transaction.append(ROWS)
    change(other, "theirs", "s")
    with pytest.raises(CommitFailedError):
        transaction.commit_transaction()
    assert len(data_files(table)) == 1
    assert lake.load_table("db.t").scan().to_arrow().num_rows == 3


def test_a_transaction_that_fails_leaves_no_file(lake, table):
    before = files(table)
    with suppress(ZeroDivisionError), table.transaction() as transaction:
        transaction.append(ROWS)
        with transaction.update_schema() as update:
            update.add_column("city", StringType())
        transaction.append(ROWS)
        raise ZeroDivisionError
    assert files(table) == before
    other = lake.load_table("db.t")
    transaction = table.transaction()
    transaction.append(ROWS)
    with transaction.update_schema() as update:
        update.add_column("city", StringType())
    with other.update_schema() as update:
        update.add_column("city", LongType())
    with pytest.raises(SchemaError):
        transaction.commit_transaction()
    assert {name for name in files(table) - before if not name.endswith(".json")} == set()
    with pytest.raises(ValidationError, match="over"):
        transaction.append(ROWS)
    with pytest.raises(ValidationError, match="over"):
        transaction.commit_transaction()


def test_a_refused_change_leaves_the_transaction_as_it_was(table):
    with table.transaction() as transaction:
        with suppress(SchemaError), transaction.update_schema() as update:
            update.add_column("S", StringType())
        with transaction.update_schema() as update:
            update.add_column("city", StringType())
    assert [f.name for f in table.schema().fields] == ["id", "s", "x", "city"]


def test_rows_are_deleted_and_replaced_within_a_transaction(lake, table):
    with table.transaction() as transaction:
        transaction.delete("id = 1")
        transaction.append(ROWS)
        transaction.overwrite(ROWS.slice(0, 1), "id = 3")
    found = lake.load_table("db.t").scan().to_arrow().to_pydict()["id"]
    assert sorted(found) == [1, 1, 2, 2]


def test_rows_changed_twice_are_not_changed_again_on_rows_of_others(lake, table):
    other = lake.load_table("db.t")
    before_rows = table.scan().to_arrow().num_rows
    transaction = table.transaction()
    transaction.append(ROWS)
    transaction.delete("id = 1")
    other.append(ROWS)
    before = files(table)
    with pytest.raises(CommitFailedError, match="changed"):
        transaction.commit_transaction()
    assert files(table) < before
    assert lake.load_table("db.t").scan().to_arrow().num_rows == 2 * before_rows


def test_snapshots_expire_within_a_transaction(table):
    table.overwrite(ROWS)
    with table.transaction() as transaction:
        transaction.append(ROWS)
        with transaction.expire_snapshots() as expire:
            expire.older_than(int(time.time() * 1000) + 60_000)
        assert len(data_files(table)) == 3
    assert len(data_files(table)) == 2
    assert len(table.snapshots()) == 1
    assert table.scan().to_arrow().num_rows == 6


def test_a_snapshot_that_expires_in_its_own_transaction_leaves_what_others_need(lake, table):
    with table.transaction() as transaction:
        transaction.append(ROWS)
        first = transaction.metadata.current_snapshot_id
        transaction.append(ROWS)
        with transaction.expire_snapshots() as expire:
            expire.by_id(first)
    assert first not in {snapshot.snapshot_id for snapshot in table.snapshots()}
    assert lake.load_table("db.t").scan().to_arrow().num_rows == 3 * ROWS.num_rows
    assert not [name for name in files(table) if f"snap-{first}-" in str(name)]


def test_a_table_is_upgraded_and_takes_deletes_then(lake):
    table = lake.create_table("db.old", ROWS.schema, properties={"format-version": "1"})
    table.append(ROWS)
    with table.transaction() as transaction:
        transaction.upgrade_table_version(2)
        transaction.append(ROWS)
    assert table.metadata.format_version == 2
    assert table.metadata.last_sequence_number == 1
    with table.update_schema() as update:
        update.update_column("x", doc="a number")
    assert table.schema().find_type("x") == DoubleType()
    assert lake.load_table("db.old").scan().to_arrow().num_rows == 6


def test_the_metastore_shows_the_evolved_columns(catalog, namespace):
    table = catalog.create_table(f"{namespace}.t", ROWS.schema)
    table.append(ROWS)
    with table.transaction() as transaction:
        with transaction.update_schema() as update:
            update.add_column("city", StringType(), "where").rename_column("s", "name")
            update.delete_column("x").update_column("id", LongType())
        with transaction.update_spec() as update:
            update.add_field("id", "bucket[2]")
        transaction.set_properties(owner_team="lake")
    shown = catalog.client.table(namespace, "t")
    columns = [(c.name, c.type, c.comment) for c in shown.storage.columns]
    assert [c[:2] for c in columns] == [("id", "bigint"), ("name", "string"), ("city", "string")]
    assert shown.parameters["owner_team"] == "lake"
    first = table.current_snapshot().snapshot_id
    table.append(pa.table({"id": [7], "name": ["g"], "city": ["Rome"]}))
    with table.manage_snapshots() as manage:
        manage.create_tag(first, "before")
    with table.expire_snapshots() as expire:
        expire.older_than(int(time.time() * 1000) + 1)
    assert expire.result.snapshot_ids == ()
    loaded = catalog.load_table(f"{namespace}.t")
    assert loaded.scan().use_ref("before").to_arrow().num_rows == 3
    assert loaded.scan().to_arrow().num_rows == 4
