"""Old copies of a migrated table's entry that others write back, as Impala's catalogd does: nothing is lost in silence."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog, migrate
from icecomb.catalog.hive.thrift.entity import HiveTable
from icecomb.catalog.migrate.applying import hive_parts
from icecomb.catalog.migrate.choices import Choices
from icecomb.catalog.migrate.journal.entry import TableEntry
from icecomb.catalog.migrate.journal.journal import FOLDER, Journal, Step, start_journal
from icecomb.catalog.migrate.journal.overwritten_entry import find_overwritten
from icecomb.catalog.migrate.reverting.reversal import RevertBlockedError
from icecomb.format.errors import CommitFailedError, CorruptFileError, MigrationError
from icecomb.format.storage.file_io import FileIO
from tests.catalog.numbered_rows import ids, numbers

OVERWRITTEN = "overwrote its entry with an old copy of the Hive table's"
MADE = "overwritten"


def write_back(table: Any, entry: HiveTable) -> None:
    """Send an entry that was read before, with a change of one's own, without lock and expectation."""
    copy = replace(entry, parameters={**entry.parameters, "seen": "yes"}, wire=None)
    table.catalog.client.alter_table(*table.name.split("."), copy)
    assert not table.entry.is_iceberg


@pytest.fixture
def three(make_hive_table: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A table of three partitions, whose entries are dropped and given back one by one."""
    monkeypatch.setattr(hive_parts, "PAGE", 1)
    parts = {(k,): numbers(int(k)) for k in "123"}
    return make_hive_table({"id": "bigint"}, {"k": "int"}, parts)


def test_apply_does_not_start_over_with_the_partitions_that_are_left(
    three: Any, proxied: Any, proxy: Any, icecomb: Any
) -> None:
    before, partitions = three.state
    proxy.after("drop_partitions_req", lambda: write_back(three, before))
    with pytest.raises(MigrationError, match=OVERWRITTEN) as caught:
        migrate.apply(proxied, three.name)
    assert f"icecomb migrate revert {three.name} restores" in (caught.value.hint or "")
    assert len(three.partitions) == 2
    # a job that runs again every night
    with pytest.raises(MigrationError, match=OVERWRITTEN):
        migrate.apply(three.catalog, three.name)
    for verb in (migrate.verify, migrate.finalize):
        with pytest.raises(MigrationError, match=OVERWRITTEN):
            verb(three.catalog, three.name)
    # as do those who would take what is left for the table
    (blocked,) = migrate.plan(three.catalog, three.name).blockers
    assert blocked.code == "overwritten-entry"
    with pytest.raises(MigrationError, match=OVERWRITTEN):
        migrate.snapshot(three.catalog, three.name, f"{three.name}_new")
    other = three.catalog.create_table(f"{three.name}_other", numbers(1).schema)
    code, _, said = icecomb("add-files", ".".join(other.name()), "--from", three.name)
    assert code == 1
    assert "an old copy" in said
    found = migrate.status(three.catalog, three.name)
    assert found["overwritten-pointer"] in caught.value.message
    assert found["state"].endswith("an old copy of the Hive table's entry: run revert")
    assert not migrate.revert(three.catalog, three.name).loses_data
    assert migrate.revert(three.catalog, three.name, dry_run=False).done
    assert three.partitions == partitions
    assert three.entry.parameters["seen"] == "yes"
    assert migrate.status(three.catalog, three.name)["state"] == "reverted"
    assert migrate.apply(three.catalog, three.name).partitions == 3
    assert ids(three) == [1, 2, 3]
    assert migrate.verify(three.catalog, three.name).difference_count == 0


def test_an_old_copy_after_apply_was_killed_is_no_reason_to_start_over(
    three: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, partitions = three.state
    drop, dropped = TableEntry.drop_partitions, []

    def killed(self: TableEntry, names: Any) -> None:
        if dropped:
            raise KeyboardInterrupt
        dropped.extend(names)
        drop(self, names)

    with monkeypatch.context() as patch:
        patch.setattr(TableEntry, "drop_partitions", killed)
        with pytest.raises(KeyboardInterrupt):
            migrate.apply(three.catalog, three.name)
    write_back(three, before)
    with pytest.raises(MigrationError, match=OVERWRITTEN):
        migrate.apply(three.catalog, three.name)
    assert len(three.partitions) == 2
    migrate.revert(three.catalog, three.name, dry_run=False)
    assert three.partitions == partitions


def test_what_hive_does_to_partitions_meanwhile_stays_when_the_rest_is_given_back(
    three: Any, proxied: Any, proxy: Any
) -> None:
    before, (one, two, other) = three.state
    client, place = three.catalog.client, three.name.split(".")
    proxy.after("drop_partitions_req", lambda: write_back(three, before))
    with pytest.raises(MigrationError, match=OVERWRITTEN):
        migrate.apply(proxied, three.name)
    said = {**two.parameters, "rows": "4"}
    client.partitions.alter(*place, [replace(two, parameters=said, wire=None)])
    client.partitions.drop(*place, ["k=3"])
    migrate.revert(three.catalog, three.name, dry_run=False)
    assert [part.values for part in three.partitions] == [("1",), ("2",)]
    assert three.partitions[0] == one
    assert three.partitions[1].parameters["rows"] == "4"
    assert other not in three.partitions


def test_an_old_copy_while_partitions_are_given_back_loses_none_of_them(
    three: Any, proxied: Any, proxy: Any
) -> None:
    before, partitions = three.state
    migrate.apply(three.catalog, three.name)
    proxy.after("add_partitions_req", lambda: write_back(three, before))
    with pytest.raises(CommitFailedError, match="somebody else meanwhile"):
        migrate.revert(proxied, three.name, dry_run=False)
    assert len(three.partitions) == 1
    assert migrate.status(three.catalog, three.name)["state"] == "reverting: run revert again"
    with pytest.raises(MigrationError, match="is being reverted"):
        migrate.apply(three.catalog, three.name)
    migrate.revert(three.catalog, three.name, dry_run=False)
    assert three.partitions == partitions


def test_an_old_copy_keeps_its_keys_where_the_metastore_does_not_check(
    three: Any, metastore: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes back right before the keys are taken away."""
    before, partitions = three.state
    place = {"uri": metastore.uri, "warehouse": str(metastore.warehouse)}
    blind = load_catalog("blind", **place, **{"hive.check-and-put": "false"})
    take_away = TableEntry.take_keys_away

    def late(*arguments: Any) -> None:
        write_back(three, before)
        take_away(*arguments)

    monkeypatch.setattr(TableEntry, "take_keys_away", late)
    with pytest.raises(MigrationError, match=OVERWRITTEN):
        migrate.apply(blind, three.name)
    blind.close()
    assert three.entry.partition_keys == before.partition_keys
    migrate.revert(three.catalog, three.name, dry_run=False)
    assert three.partitions == partitions


def test_commits_of_a_table_whose_entry_was_overwritten_are_told_and_can_be_reached(
    make_hive_table: Any,
) -> None:
    table = make_hive_table({"id": "bigint"}, rows=numbers(1))
    before = table.entry
    migrate.apply(table.catalog, table.name)
    table.catalog.load_table(table.name).append(numbers(2))
    pointer = table.entry.metadata_location
    write_back(table, before)
    assert migrate.status(table.catalog, table.name)["overwritten-pointer"] == pointer
    with pytest.raises(MigrationError, match=OVERWRITTEN) as caught:
        migrate.apply(table.catalog, table.name)
    assert caught.value.message.endswith(f"it pointed at {pointer}")
    with pytest.raises(RevertBlockedError, match="1 snapshots made since") as blocked:
        migrate.revert(table.catalog, table.name, dry_run=False)
    assert (blocked.value.plan.rows_then, blocked.value.plan.rows_now) == (1, 2)
    copy = f"{table.name}_copy"
    assert table.catalog.register_table(copy, pointer).scan().to_arrow().num_rows == 2
    table.catalog.drop_table(copy)
    losing = {"dry_run": False, "allow_data_loss": True}
    with pytest.raises(MigrationError, match="1 files would be moved out") as unvouched:
        migrate.revert(table.catalog, table.name, **losing)
    assert "--trust-journal" in (unvouched.value.hint or "")
    migrate.revert(table.catalog, table.name, **losing, trust_journal=True)
    assert not (table.folder / "metadata").exists()
    assert set(table.files()) == {str(table.folder / "part-0.parquet")}
    assert migrate.apply(table.catalog, table.name).rows == 1


def test_after_finalize_the_way_on_is_to_register_the_pointer(make_hive_table: Any) -> None:
    table = make_hive_table({"id": "bigint"}, rows=numbers(1))
    before = table.entry
    migrate.apply(table.catalog, table.name)
    migrate.finalize(table.catalog, table.name, unverified=True)
    pointer = table.entry.metadata_location
    write_back(table, before)
    with pytest.raises(MigrationError, match=OVERWRITTEN) as caught:
        migrate.apply(table.catalog, table.name)
    assert f"icecomb register {table.name} {pointer}" in (caught.value.hint or "")


def test_a_plan_says_that_a_journal_cannot_be_read(make_hive_table: Any) -> None:
    """Whether the table was migrated before is unknown then."""
    table = make_hive_table({"id": "bigint"}, rows=numbers(1))
    damaged = table.folder / FOLDER / "20261128T120000.000000Z-0a1b2c3d" / "journal.json"
    damaged.parent.mkdir(parents=True)
    damaged.write_text("{")
    (blocked,) = migrate.plan(table.catalog, table.name).blockers
    assert blocked.code == "journal"
    assert "is not JSON" in blocked.message
    with pytest.raises(CorruptFileError, match="is not JSON"):
        migrate.apply(table.catalog, table.name)


@pytest.fixture
def journal(tmp_path: Any) -> Journal:
    old = HiveTable("db", "t", create_time=1)
    made = start_journal(FileIO(), str(tmp_path), old, [], Choices())
    location = {"metadata-location": f"{tmp_path}/metadata/1.json"}
    made.record(Step.PREPARED, uuid=str(uuid4()), **location, partitions=0, files=0, rows=0)
    return made


def test_only_what_was_turned_and_not_turned_back_was_overwritten(journal: Journal) -> None:
    old, io = journal.table, FileIO()
    assert find_overwritten(io, old, journal) is None
    journal.record(Step.SWAPPED)
    found = find_overwritten(io, replace(old, parameters={"seen": "yes"}), journal)
    assert found is not None
    assert found.pointer is None
    assert "cannot be read" in found.error.message
    for now in (
        replace(old, parameters={"table_type": "ICEBERG"}),
        replace(old, parameters={"metadata_location": journal.marker}),
        replace(old, create_time=2),  # it was dropped, and made anew
    ):
        assert find_overwritten(io, now, journal) is None
    journal.record(Step.RETURNED)
    assert find_overwritten(io, old, journal) is None


def test_a_table_made_in_the_folder_of_a_dropped_one_is_not_taken_over_without_its_commits(
    make_hive_table: Any,
) -> None:
    table = make_hive_table({"id": "bigint"}, {"k": "int"}, {("1",): numbers(1)})
    catalog, name, before = table.catalog, table.name, table.entry

    def make_again() -> None:
        time.sleep(1.1)  # a metastore notes the second in which an entry was made
        catalog.client.create_table(replace(before, wire=None))

    migrate.apply(catalog, name)
    catalog.drop_table(name)
    make_again()
    assert not migrate.plan(catalog, name).blockers
    migrate.apply(catalog, name)
    catalog.load_table(name).append(pa.table({"id": [2], "k": pa.array([1], pa.int32())}))
    pointer = catalog.load_table(name).metadata_location
    catalog.drop_table(name)
    make_again()
    (blocked,) = migrate.plan(catalog, name).blockers
    assert blocked.code == "dropped-commits"
    assert pointer in blocked.message
    with pytest.raises(MigrationError, match="is not in this one"):
        migrate.apply(catalog, name)
    assert not table.entry.is_iceberg
    lost = catalog.register_table(f"{name}_dropped", pointer)
    assert lost.scan().to_arrow()["id"].to_pylist() == [2]
    catalog.drop_table(f"{name}_dropped")
    accepted = Choices(accept=("dropped-commits",))
    assert not migrate.plan(catalog, name, accepted).blockers
    migrate.apply(catalog, name, accepted)
