"""Tables that appear, or become another one, together with their first changes."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable

from icecomb.catalog.commit.pointer import Unknown
from icecomb.catalog.hadoop.pointer import HadoopPointer
from icecomb.format.errors import (
    CommitFailedError,
    CommitStateUnknownError,
    ConflictError,
    NoSuchTableError,
    TableAlreadyExistsError,
    ValidationError,
)
from icecomb.format.rows.write.data_writer import write_data
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.sort import NullOrder, SortDirection, SortField, SortOrder
from icecomb.format.spec.transform import parse_transform
from icecomb.format.spec.types import LongType, NestedField, StringType

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "s": ["a", "b", "c"]})
NEW_SCHEMA = Schema(
    (
        NestedField(1, "n", LongType()),
        NestedField(2, "s", StringType()),
        NestedField(3, "id", LongType()),
    )
)
NEW_ROWS = pa.table(
    {"n": pa.array([7, 8], pa.int64()), "s": ["x", "y"], "id": pa.array([4, 5], pa.int64())}
)


def spec(source_id, transform, name):
    return PartitionSpec(0, (PartitionField(source_id, 1000, parse_transform(transform), name),))


def by(source_id):
    field = SortField(
        source_id, parse_transform("identity"), SortDirection.ASC, NullOrder.NULLS_FIRST
    )
    return SortOrder(1, (field,))


def fields(schema):
    return [(f.field_id, f.name) for f in schema.fields]


def files(folder):
    return sorted(
        str(path.relative_to(folder))
        for path in Path(folder).rglob("*")
        if path.is_file() and not path.name.startswith(".")
    )


@pytest.fixture
def orders(lake):
    """A partitioned table with one snapshot, a tag on it, and a property."""
    table = lake.create_table(
        "db.t",
        ROWS.schema,
        partition_spec=spec(2, "identity", "s"),
        properties={"a": "1", "b": "1"},
    )
    table.append(ROWS)
    with table.manage_snapshots() as manage:
        manage.create_tag(table.current_snapshot().snapshot_id, "before")
    return table


def test_a_table_appears_together_with_its_rows_in_one_commit(lake, tmp_path):
    with lake.create_table_transaction("db.t", ROWS.schema) as new:
        new.append(ROWS)
        with new.update_schema() as update:
            update.add_column("note", StringType())
        new.append(ROWS)
        new.set_properties(owner="me")
        assert not lake.table_exists("db.t")
        assert lake.list_tables("db") == []
    table = lake.load_table("db.t")
    assert table.scan().to_arrow().num_rows == 6
    assert table.schema().find_field("note").field_id == 3
    assert table.properties["owner"] == "me"
    assert [path for path in files(tmp_path / "lake/db/t") if path.endswith(".json")] == [
        "metadata/v1.metadata.json"
    ]
    # the first snapshot was never the table's state
    assert [entry.snapshot_id for entry in table.history()] == [
        table.current_snapshot().snapshot_id
    ]
    peer = StaticTable.from_metadata(table.metadata_location)
    assert peer.scan().to_arrow().num_rows == 6


def test_a_creation_without_changes_makes_an_empty_table(lake):
    table = lake.create_table_transaction("db.t", ROWS.schema).commit_transaction()
    assert table.metadata == lake.load_table("db.t").metadata
    assert table.current_snapshot() is None
    table.append(ROWS)
    assert lake.load_table("db.t").scan().to_arrow().num_rows == 3


def test_an_aborted_creation_leaves_nothing_behind(lake, tmp_path):
    def fail():
        with lake.create_table_transaction(
            "db.t", ROWS.schema, partition_spec=spec(2, "identity", "s")
        ) as new:
            new.append(ROWS)
            assert files(tmp_path)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert list((tmp_path / "lake/db").iterdir()) == []
    assert lake.list_namespaces("db") == []


def test_the_second_of_two_creations_fails_and_removes_only_its_own_files(lake, tmp_path):
    late = lake.create_table_transaction("db.t", ROWS.schema)
    late.append(ROWS)
    with lake.create_table_transaction("db.t", NEW_SCHEMA) as first:
        first.append(NEW_ROWS)
    with pytest.raises(TableAlreadyExistsError):
        late.commit_transaction()
    table = lake.load_table("db.t")
    assert fields(table.schema()) == [(1, "n"), (2, "s"), (3, "id")]
    assert table.scan().to_arrow().num_rows == 2
    # hint, metadata, manifest list, manifest and one data file of the winner
    assert len(files(tmp_path / "lake/db/t")) == 5
    with pytest.raises(ValidationError):
        late.append(ROWS)


def test_of_many_creations_at_once_one_wins_with_all_its_rows(lake):
    start = threading.Barrier(4, timeout=240)
    schema = pa.schema([("id", pa.int64())])
    begun = {n: lake.create_table_transaction("db.t", schema) for n in range(1, 5)}

    def create(number):
        try:
            with begun[number] as new:
                new.append(pa.table({"id": pa.array([number] * number, pa.int64())}))
                start.wait()
        except TableAlreadyExistsError:
            return None
        except Exception:
            start.abort()
            raise
        return number

    with ThreadPoolExecutor(4) as pool:
        creations = [pool.submit(create, number) for number in range(1, 5)]
    # who fails is shown before those who only waited for it
    failed = [creation.exception() for creation in creations]
    assert [e for e in failed if not isinstance(e, threading.BrokenBarrierError | None)] == []
    won = [number for creation in creations if (number := creation.result()) is not None]
    assert len(won) == 1
    assert lake.load_table("db.t").scan().to_arrow()["id"].to_pylist() == won * won[0]


def test_nothing_is_deleted_while_it_is_unknown_whether_the_table_was_made(
    lake, tmp_path, monkeypatch
):
    def swap(self, expected, new):
        return Unknown("the answer was lost", None, OSError("lost"))

    new = lake.create_table_transaction("db.t", ROWS.schema)
    new.append(ROWS)
    before = files(tmp_path)
    monkeypatch.setattr(HadoopPointer, "swap", swap)
    with pytest.raises(CommitStateUnknownError):
        new.commit_transaction()
    assert files(tmp_path) == before


def test_a_taken_name_is_refused_before_anything_is_written(lake, orders, tmp_path):
    before = files(tmp_path)
    with pytest.raises(TableAlreadyExistsError):
        lake.create_table_transaction("db.t", ROWS.schema)
    assert files(tmp_path) == before


def test_a_replaced_table_keeps_ids_by_name_history_tags_and_properties(lake, orders):
    old = orders.current_snapshot().snapshot_id
    uuid = orders.metadata.table_uuid
    table = lake.replace_table("db.t", NEW_SCHEMA, properties={"b": "2", "format-version": "2"})
    assert fields(table.schema()) == [(3, "n"), (2, "s"), (1, "id")]
    assert table.schema().schema_id == 1
    assert table.metadata.last_column_id == 3
    assert table.current_snapshot() is None
    assert list(table.refs()) == ["before"]
    assert [entry.snapshot_id for entry in table.history()] == [old]
    assert table.metadata.table_uuid == uuid
    assert table.location() == orders.location()
    assert (table.properties["a"], table.properties["b"]) == ("1", "2")
    assert "format-version" not in table.properties
    assert table.spec().fields == ()
    assert table.spec().spec_id == 1
    assert table.scan().to_arrow().num_rows == 0
    assert table.scan(snapshot_id=old).to_arrow().sort_by("id").to_pydict() == ROWS.to_pydict()


def test_pyiceberg_reads_a_replaced_table_and_its_past(lake, orders):
    old = orders.current_snapshot().snapshot_id
    with lake.replace_table_transaction("db.t", NEW_SCHEMA) as new:
        new.append(NEW_ROWS)
    table = lake.load_table("db.t")
    assert table.current_snapshot().parent_snapshot_id is None
    peer = StaticTable.from_metadata(table.metadata_location)
    assert fields(peer.schema()) == [(3, "n"), (2, "s"), (1, "id")]
    assert peer.scan().to_arrow().sort_by("n").to_pydict() == NEW_ROWS.to_pydict()
    assert peer.scan(snapshot_id=old).to_arrow().sort_by("id").to_pydict() == ROWS.to_pydict()
    assert [entry.snapshot_id for entry in peer.history()] == [
        old,
        table.current_snapshot().snapshot_id,
    ]
    assert peer.snapshot_by_name("before").snapshot_id == old


def test_a_partition_field_of_the_same_values_keeps_its_id(lake, orders):
    table = lake.replace_table("db.t", NEW_SCHEMA, partition_spec=spec(2, "bucket[4]", "part"))
    assert [(f.source_id, f.field_id) for f in table.spec().fields] == [(2, 1001)]
    table = lake.replace_table("db.t", NEW_SCHEMA, partition_spec=spec(2, "identity", "other"))
    assert [(f.name, f.field_id) for f in table.spec().fields] == [("other", 1000)]
    assert table.spec().spec_id == 2
    table = lake.replace_table("db.t", NEW_SCHEMA, partition_spec=spec(2, "identity", "s"))
    assert table.spec().spec_id == 0
    assert len(table.specs()) == 3


def test_version_1_keeps_the_places_of_old_partition_fields(lake):
    lake.create_table(
        "db.t",
        ROWS.schema,
        partition_spec=spec(2, "identity", "s"),
        properties={"format-version": "1"},
    )
    table = lake.replace_table("db.t", NEW_SCHEMA, partition_spec=spec(3, "bucket[4]", "part"))
    assert [(f.source_id, f.field_id, str(f.transform)) for f in table.spec().fields] == [
        (2, 1000, "void"),
        (1, 1001, "bucket[4]"),
    ]
    assert table.metadata.format_version == 1
    table.append(NEW_ROWS)
    peer = StaticTable.from_metadata(table.metadata_location)
    assert peer.scan().to_arrow().sort_by("n").to_pydict() == NEW_ROWS.to_pydict()


def test_a_sort_order_is_replaced_and_found_again(lake, orders):
    table = lake.replace_table("db.t", NEW_SCHEMA, sort_order=by(3))
    assert table.sort_order().order_id == 1
    assert table.sort_order().fields[0].source_id == 1
    assert lake.replace_table("db.t", NEW_SCHEMA).sort_order().order_id == 0
    assert lake.replace_table("db.t", NEW_SCHEMA, sort_order=by(3)).sort_order().order_id == 1


def test_an_old_spec_does_not_come_back_over_a_column_of_another_type(lake):
    lake.create_table("db.t", ROWS.schema, partition_spec=spec(1, "truncate[10]", "part"))
    flags = pa.schema([("id", pa.bool_())])
    before = lake.load_pointer("db.t")
    with pytest.raises(ValidationError, match="truncate"):
        lake.replace_table("db.t", flags, partition_spec=spec(1, "truncate[10]", "part"))
    assert lake.load_pointer("db.t") == before


def test_an_aborted_replacement_leaves_the_table_and_its_files_as_they_were(lake, orders, tmp_path):
    before = files(tmp_path)

    def fail():
        with lake.replace_table_transaction("db.t", NEW_SCHEMA) as new:
            new.append(NEW_ROWS)
            assert files(tmp_path) != before
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert files(tmp_path) == before
    assert lake.load_table("db.t").metadata == orders.metadata


def test_a_replacement_wins_over_a_commit_that_was_first_and_keeps_it_in_the_history(lake, orders):
    with lake.replace_table_transaction("db.t", NEW_SCHEMA) as new:
        new.append(NEW_ROWS)
        orders.append(ROWS)
    table = lake.load_table("db.t")
    assert table.scan().to_arrow().sort_by("n").to_pydict() == NEW_ROWS.to_pydict()
    assert table.snapshot_by_id(orders.current_snapshot().snapshot_id) is not None
    assert [entry.snapshot_id for entry in table.history()] == [
        *(entry.snapshot_id for entry in orders.history()),
        table.current_snapshot().snapshot_id,
    ]


def test_a_replacement_by_rows_of_the_table_itself_gives_up_where_others_were_first(
    lake, orders, tmp_path
):
    data = tmp_path / "lake/db" / "t" / "data"
    new = lake.replace_table_transaction("db.t", NEW_SCHEMA)
    new.rely_on(orders.current_snapshot().snapshot_id).append(NEW_ROWS)
    orders.append(ROWS)
    written = len(files(data))
    with pytest.raises(ConflictError, match="Run the statement again"):
        new.commit_transaction()
    assert lake.load_table("db.t").metadata == orders.metadata
    assert len(files(data)) == written - 1
    new = lake.replace_table_transaction("db.t", NEW_SCHEMA)
    new.rely_on(orders.current_snapshot().snapshot_id).append(NEW_ROWS)
    with orders.update_properties() as update:
        update.set("c", "1")
    table = new.commit_transaction()
    assert table.scan().to_arrow().sort_by("n").to_pydict() == NEW_ROWS.to_pydict()
    assert table.properties["c"] == "1"


def test_a_replacement_gives_up_when_others_took_the_ids_of_its_files(lake, orders, tmp_path):
    new = lake.replace_table_transaction("db.t", NEW_SCHEMA)
    new.append(NEW_ROWS)
    with orders.update_schema() as update:
        update.add_column("theirs", StringType())
    with pytest.raises(CommitFailedError):
        new.commit_transaction()
    assert lake.load_table("db.t").metadata == orders.metadata
    assert orders.scan().to_arrow().num_rows == 3
    # without files there is nothing that the new ids could contradict
    assert fields(lake.replace_table("db.t", NEW_SCHEMA).schema()) == [
        (4, "n"),
        (2, "s"),
        (1, "id"),
    ]


def test_a_file_system_table_cannot_be_replaced_elsewhere(lake, orders, tmp_path):
    with pytest.raises(ValidationError, match="stays in its folder"):
        lake.replace_table("db.t", NEW_SCHEMA, location=str(tmp_path / "elsewhere"))
    assert lake.replace_table("db.t", NEW_SCHEMA, location=orders.location()).location() == (
        orders.location()
    )


def test_only_an_existing_table_is_replaced_unless_it_may_be_created(lake):
    with pytest.raises(NoSuchTableError):
        lake.replace_table("db.t", ROWS.schema)
    assert fields(lake.create_or_replace_table("db.t", ROWS.schema).schema()) == [
        (1, "id"),
        (2, "s"),
    ]
    with lake.create_or_replace_table_transaction("db.t", NEW_SCHEMA) as new:
        new.append(NEW_ROWS)
    assert fields(lake.load_table("db.t").schema()) == [(3, "n"), (2, "s"), (1, "id")]


def test_a_metastore_table_is_created_and_replaced_with_its_rows(
    catalog, namespace, pyiceberg, tmp_path
):
    name = f"{namespace}.t"
    late = catalog.create_table_transaction(name, ROWS.schema, location=str(tmp_path / "late"))
    late.append(ROWS)
    with catalog.create_table_transaction(name, ROWS.schema) as new:
        new.append(ROWS)
        assert not catalog.table_exists(name)
    with pytest.raises(TableAlreadyExistsError):
        late.commit_transaction()
    assert files(tmp_path) == []
    old = catalog.load_table(name).current_snapshot().snapshot_id

    elsewhere = str(tmp_path / "new")
    with catalog.replace_table_transaction(name, NEW_SCHEMA, location=elsewhere) as new:
        new.append(NEW_ROWS)
    peer = pyiceberg.load_table((namespace, "t"))
    assert peer.location() == elsewhere
    assert fields(peer.schema()) == [(3, "n"), (2, "s"), (1, "id")]
    assert peer.scan().to_arrow().sort_by("n").to_pydict() == NEW_ROWS.to_pydict()
    assert peer.scan(snapshot_id=old).to_arrow().sort_by("id").to_pydict() == ROWS.to_pydict()
    entry = catalog.client.table(namespace, "t")
    assert entry.storage.location.removeprefix("file:") == elsewhere
    assert [column.name for column in entry.storage.columns] == ["n", "s", "id"]


def test_files_given_to_an_abandoned_transaction_are_deleted_with_it(lake, tmp_path):
    new = lake.create_table_transaction("db.new", ROWS.schema)
    given = write_data(new.io, new.metadata, ROWS)
    new.append_data_files(given, {"source": "elsewhere"})
    assert new.metadata.current_snapshot().summary["source"] == "elsewhere"
    assert Path(given[0].file_path.removeprefix("file:")).exists()
    new.abandon()
    new.abandon()
    assert files(tmp_path / "lake/db") == []
    assert lake.list_namespaces("db") == []
    with pytest.raises(ValidationError, match="over"):
        new.commit_transaction()


def test_files_given_to_a_transaction_are_committed_with_the_table(lake):
    new = lake.create_table_transaction("db.new", ROWS.schema)
    new.append_data_files(write_data(new.io, new.metadata, ROWS), {"source": "elsewhere"})
    table = new.commit_transaction()
    new.abandon()
    assert lake.load_table("db.new").scan().to_arrow()["id"].to_pylist() == [1, 2, 3]
    assert table.current_snapshot().summary["source"] == "elsewhere"
