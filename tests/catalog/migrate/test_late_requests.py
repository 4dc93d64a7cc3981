"""Requests of a migration whose answer is lost, and which the metastore carries out later."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icecomb.catalog import load_catalog, migrate
from icecomb.catalog.commit import commit_status
from icecomb.catalog.migrate.applying.hive_parts import HiveParts
from icecomb.catalog.migrate.journal.folder_journals import FolderJournals
from icecomb.catalog.migrate.journal.journal import Step
from icecomb.format.errors import (
    CommitStateUnknownError,
    ConfigurationError,
    MigrationError,
)
from tests.catalog.numbered_rows import ids, numbers

ALTER = "alter_table_with_environment_context"
QUICK = {"commit.status-check.min-wait-ms": "5", "commit.status-check.num-retries": "1"}


def delay_alter(proxy: Any, count: int) -> None:
    """The alter after ``count`` others arrives late."""
    if count:
        proxy.before(ALTER, lambda: delay_alter(proxy, count - 1))
    else:
        proxy.fail(ALTER, "late")


@pytest.fixture
def blind(metastore: Any, proxy: Any) -> Iterator[Any]:
    """A catalog that tells the metastore nothing of what it expects, as if that were Hive 3.1.3."""
    found = load_catalog(
        "blind",
        uri=proxy.uri,
        warehouse=str(metastore.warehouse),
        **{"hive.check-and-put": "false"},
    )
    yield found
    found.close()


def test_a_turn_that_arrives_after_the_next_one_changes_nothing(
    make_hive_table: Any, proxied: Any, proxy: Any
) -> None:
    table = make_hive_table({"id": "bigint"}, rows=numbers(1), parameters=QUICK)
    proxied.client.server_version()
    _know(proxied)
    proxy.fail(ALTER, "late")
    with pytest.raises(CommitStateUnknownError):
        migrate.apply(proxied, table.name)
    migrate.apply(table.catalog, table.name)
    table.catalog.load_table(table.name).append(numbers(2))
    assert proxy.deliver() == 1
    assert ids(table) == [1, 2]
    migrate.revert(table.catalog, table.name, dry_run=False, allow_data_loss=True)
    assert not table.entry.is_iceberg


def test_a_lost_turn_and_a_metastore_that_stays_away_delete_nothing(
    make_hive_table: Any, proxied: Any, proxy: Any
) -> None:
    table = make_hive_table({"id": "bigint"}, rows=numbers(1), parameters=QUICK)
    _know(proxied)
    port = proxy.target
    with socket.create_server(("127.0.0.1", 0)) as closed:
        nowhere = closed.getsockname()[1]

    def vanish() -> None:
        proxy.target = nowhere

    proxy.fail(ALTER, "late")
    proxy.before(ALTER, vanish)
    with pytest.raises(CommitStateUnknownError):
        migrate.apply(proxied, table.name)
    proxy.target = port
    assert proxy.deliver() == 1
    assert table.entry.is_iceberg
    assert ids(table) == [1]
    table.break_locks()
    assert migrate.apply(table.catalog, table.name).rows == 1


def test_a_given_up_turn_that_arrives_late_changes_nothing(
    make_hive_table: Any, proxied: Any, proxy: Any
) -> None:
    table = make_hive_table({"id": "bigint"}, rows=numbers(1), parameters=QUICK)
    _know(proxied)
    proxy.fail(ALTER, "late")
    with pytest.raises(CommitStateUnknownError):
        migrate.apply(proxied, table.name)
    assert migrate.revert(table.catalog, table.name, dry_run=False).done
    assert proxy.deliver() == 1
    assert not table.entry.is_iceberg
    assert not (table.folder / "metadata").exists()


def test_the_last_alter_of_a_revert_that_arrives_late_takes_no_row_away(
    make_hive_table: Any, proxied: Any, proxy: Any
) -> None:
    table = make_hive_table({"id": "bigint"}, rows=numbers(1), parameters=QUICK)
    before = table.state
    migrate.apply(table.catalog, table.name)
    _know(proxied)
    # before it: the old columns, and the conversion
    delay_alter(proxy, 2)
    with pytest.raises(CommitStateUnknownError, match="marker"):
        migrate.revert(proxied, table.name, dry_run=False)
    with pytest.raises(MigrationError, match="is being reverted"):
        migrate.apply(table.catalog, table.name)
    assert migrate.revert(table.catalog, table.name, dry_run=False).done
    assert table.state == before
    migrate.apply(table.catalog, table.name)
    table.catalog.load_table(table.name).append(numbers(2))
    assert proxy.deliver() == 1
    assert ids(table) == [1, 2]


def test_a_dropped_partition_that_nobody_answered_for_blocks_going_back_for_an_hour(
    make_hive_table: Any, proxied: Any, proxy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make_hive_table({"id": "bigint"}, {"k": "int"}, {("1",): numbers(1)}, parameters=QUICK)
    before = table.state
    proxy.fail("drop_partitions_req", "late")
    with pytest.raises(CommitStateUnknownError, match="partitions' entries"):
        migrate.apply(proxied, table.name)
    migrate.apply(table.catalog, table.name)
    with pytest.raises(MigrationError, match="cannot be reverted yet"):
        migrate.revert(table.catalog, table.name, dry_run=False)
    proxy.deliver()
    assert ids(table) == [1]
    monkeypatch.setattr(commit_status, "OLD_MS", -1)
    migrate.revert(table.catalog, table.name, dry_run=False)
    assert table.state == before


def test_others_commit_while_partitions_are_dropped(
    make_hive_table: Any, proxied: Any, proxy: Any
) -> None:
    parts = {("1",): numbers(1), ("2",): numbers(2)}
    table = make_hive_table({"id": "bigint"}, {"k": "int"}, parts, parameters=QUICK)

    def commit() -> None:
        loaded = table.catalog.load_table(table.name)
        loaded.append(pa.table({"id": pa.array([3], pa.int64()), "k": pa.array([1], pa.int32())}))

    proxy.after("drop_partitions_req", lambda: proxy.after("unlock", commit))
    assert migrate.apply(proxied, table.name).rows == 2
    assert ids(table) == [1, 2, 3]
    assert table.entry.partition_keys == ()


@pytest.mark.parametrize("added", ["a partition", "another folder"])
def test_a_partition_that_hive_adds_after_the_turn_is_not_dropped_unread(
    make_hive_table: Any, proxied: Any, proxy: Any, added: str
) -> None:
    table = make_hive_table({"id": "bigint"}, {"k": "int"}, {("1",): numbers(1)}, parameters=QUICK)
    (one,) = table.partitions
    late = table.folder / "late"
    late.mkdir()

    def add() -> None:
        pq.write_table(numbers(2), late / "part-1.parquet")
        client = table.catalog.client
        storage = replace(one.storage, location=f"file:{late}")
        if added == "a partition":
            client.partitions.add([replace(one, values=("2",), storage=storage, wire=None)])
        else:
            said = {**one.parameters, "transient_lastDdlTime": "2000000000"}
            moved = replace(one, storage=storage, parameters=said, wire=None)
            client.partitions.alter("made", table.name.split(".")[1], [moved])

    _know(proxied)
    proxy.after(ALTER, add)
    with pytest.raises(MigrationError, match="after the conversion, which are not in it"):
        migrate.apply(proxied, table.name)
    assert ids(table) == [1]
    assert [p.storage.location for p in table.partitions][-1] == f"file:{late}"
    with pytest.raises(MigrationError, match="after the conversion"):
        migrate.apply(table.catalog, table.name)
    where = {"k": 2 if added == "a partition" else 1}
    loaded = table.catalog.load_table(table.name)
    loaded.add_files([f"file:{late}/part-1.parquet"], partition=where)
    assert migrate.apply(table.catalog, table.name).rows == 1
    assert ids(table) == [1, 2]
    assert table.entry.partition_keys == ()


def test_a_partition_that_hive_moved_after_the_turn_is_not_given_its_old_folder_back(
    make_hive_table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = {(k,): numbers(int(k)) for k in ("1", "2")}
    table = make_hive_table({"id": "bigint"}, {"k": "int"}, parts)
    before = table.state
    with monkeypatch.context() as patch:
        patch.setattr(HiveParts, "take_away", _interrupted)
        with pytest.raises(KeyboardInterrupt):
            migrate.apply(table.catalog, table.name)
    _, two = table.partitions
    late = table.folder / "late"
    late.mkdir()
    pq.write_table(numbers(3), late / "part-1.parquet")
    client, place = table.catalog.client, table.name.split(".")
    moved = replace(two, storage=replace(two.storage, location=f"file:{late}"), wire=None)
    client.partitions.alter(*place, [moved])
    with pytest.raises(MigrationError, match="gave partition 2 the folder"):
        migrate.revert(table.catalog, table.name, dry_run=False)
    assert [p.storage.location for p in table.partitions][-1] == f"file:{late}"
    (late / "part-1.parquet").rename(table.folder / "p1" / "part-1.parquet")
    client.partitions.alter(*place, [replace(two, wire=None)])
    migrate.revert(table.catalog, table.name, dry_run=False)
    assert table.state == before


def test_a_partition_without_a_folder_that_comes_after_the_turn_has_no_rows_to_lose(
    make_hive_table: Any, proxied: Any, proxy: Any
) -> None:
    table = make_hive_table({"id": "bigint"}, {"k": "int"}, {("1",): numbers(1)}, parameters=QUICK)
    (one,) = table.partitions

    def unsettle() -> None:
        homeless = replace(one, storage=replace(one.storage, location=None), wire=None)
        table.catalog.client.partitions.alter(*table.name.split("."), [homeless])
        assert [p.storage.location for p in table.partitions] == [None]

    _know(proxied)
    proxy.after(ALTER, unsettle)
    assert migrate.apply(proxied, table.name).rows == 1
    assert ids(table) == [1]
    assert table.partitions == []


def test_a_metastore_that_does_not_check_makes_the_next_apply_wait(
    make_hive_table: Any, blind: Any, proxy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make_hive_table({"id": "bigint"}, rows=numbers(1), parameters=QUICK)
    proxy.fail(ALTER, "late")
    with pytest.raises(CommitStateUnknownError):
        migrate.apply(blind, table.name)
    for verb in (
        lambda: migrate.apply(blind, table.name),
        lambda: migrate.revert(blind, table.name, dry_run=False),
    ):
        with pytest.raises(CommitStateUnknownError, match="does not check what it replaces"):
            verb()
    proxy.deliver()
    assert ids(table) == [1]
    journal = FolderJournals(table.catalog, table.entry).live
    assert journal is not None
    assert journal.step(Step.SWAPPED) is None
    monkeypatch.setattr(commit_status, "OLD_MS", -1)
    assert migrate.apply(blind, table.name).rows == 1


def test_a_table_of_lock_free_mode_is_refused_where_the_metastore_does_not_check(
    make_hive_table: Any, catalog: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from icecomb.catalog.hive import entry_change

    table = make_hive_table(
        {"id": "bigint"}, rows=numbers(1), parameters={"engine.hive.lock-enabled": "false"}
    )
    before = table.state
    catalog.client.calls.clear()
    migrate.apply(catalog, table.name)
    migrate.revert(catalog, table.name, dry_run=False)
    assert "lock" not in catalog.client.calls
    assert table.state == before
    monkeypatch.setattr(entry_change, "value_check", lambda *_: entry_change.ValueCheck.IGNORED)
    with pytest.raises(ConfigurationError, match="does not check what it replaces"):
        migrate.apply(catalog, table.name)
    assert table.state == before
    assert not (table.folder / "metadata").exists()


def _know(catalog: Any) -> None:
    """The server is found out about by an alter of its own: before the one that is meant."""
    assert catalog.rejects_stale_swap("made.t", expectation_sent=True)


def _interrupted(_: Any) -> None:
    raise KeyboardInterrupt
