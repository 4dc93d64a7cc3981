"""Partitions that Hive drops while a migration takes all of them away: they are told by name, and stay dropped."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any

import pytest

from icecomb.catalog import migrate
from icecomb.catalog.migrate.applying import hive_parts
from icecomb.catalog.migrate.journal.entry import TableEntry
from icecomb.catalog.migrate.journal.journal import FOLDER
from icecomb.format.errors import MigrationError
from tests.catalog.numbered_rows import ids, numbers

DROPPED = "Hive dropped 1 partitions after the conversion, whose rows are still in it: k={}\\n"
MADE = "dropped"


@pytest.fixture
def interrupted(
    make_hive_table: Any, proxied: Any, proxy: Any, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Any]:
    """Begins to migrate a table of three partitions, of which Hive drops the third one meanwhile."""
    monkeypatch.setattr(hive_parts, "PAGE", 1)

    def begin(*, with_files: bool = False, kind: str = "int", third: str = "3") -> Any:
        parts = {(k,): numbers(at) for at, k in enumerate(("1", "2", third), 1)}
        table = make_hive_table({"id": "bigint"}, {"k": kind}, parts)
        table.before = table.partitions

        def drop() -> None:
            table.catalog.client.partitions.drop(*table.name.split("."), [f"k={third}"])
            if with_files:  # as of a managed table, where that began before the conversion
                shutil.rmtree(table.folder / "p2")

        proxy.after("drop_partitions_req", drop)
        with pytest.raises(MigrationError, match=DROPPED.format(third)):
            migrate.apply(proxied, table.name)
        return table

    return begin


def test_a_partition_that_hive_drops_is_told_until_its_rows_are_gone(
    interrupted: Callable[..., Any],
) -> None:
    table = interrupted(with_files=True)
    with pytest.raises(MigrationError, match=DROPPED.format(3)):
        migrate.apply(table.catalog, table.name)
    found = migrate.verify(table.catalog, table.name)
    assert found.differences == [
        "k=3: Hive dropped it after the conversion, its rows are in Iceberg's"
    ]
    assert migrate.status(table.catalog, table.name)["state"].endswith("run apply again")
    table.catalog.load_table(table.name).delete("k = 3")
    assert migrate.apply(table.catalog, table.name).partitions == 3
    assert ids(table) == [1, 2]
    assert migrate.verify(table.catalog, table.name).difference_count == 0
    # what Hive dropped stays so, and what its files did is nobody's loss
    plan = migrate.revert(table.catalog, table.name)
    assert (plan.dropped_partitions, plan.partitions, plan.missing_files) == (("k=3",), 2, ())
    assert plan.to_json()["dropped-partitions"] == ["k=3"]
    done = migrate.revert(table.catalog, table.name, dry_run=False, allow_data_loss=True)
    assert "2 partitions, without 1 that Hive dropped" in done.summary
    assert table.partitions == table.before[:2]


def test_a_dropped_partition_of_nan_is_told_too(interrupted: Callable[..., Any]) -> None:
    table = interrupted(kind="double", third="NaN")
    assert migrate.verify(table.catalog, table.name).differences == [
        "k=NaN: Hive dropped it after the conversion, its rows are in Iceberg's"
    ]


def test_a_partition_that_hive_has_again_is_kept_with_its_rows(
    interrupted: Callable[..., Any],
) -> None:
    table = interrupted()
    table.catalog.client.partitions.add(table.before[2:])
    assert migrate.apply(table.catalog, table.name).rows == 3
    assert ids(table) == [1, 2, 3]
    assert migrate.verify(table.catalog, table.name).difference_count == 0
    migrate.revert(table.catalog, table.name, dry_run=False)
    assert table.partitions == table.before


def test_a_revert_in_the_middle_leaves_it_dropped(interrupted: Callable[..., Any]) -> None:
    table = interrupted(with_files=True)
    plan = migrate.revert(table.catalog, table.name)
    assert (plan.dropped_partitions, plan.loses_data) == (("k=3",), False)
    assert migrate.revert(table.catalog, table.name, dry_run=False).done
    assert table.partitions == table.before[:2]


def test_a_migration_that_an_older_version_began_takes_nothing_for_dropped(
    make_hive_table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its journal does not say what it took away."""
    monkeypatch.setattr(hive_parts, "PAGE", 1)
    parts = {(k,): numbers(int(k)) for k in "12"}
    table = make_hive_table({"id": "bigint"}, {"k": "int"}, parts)
    before = table.state
    drop, taken = TableEntry.drop_partitions, []

    def killed(self: TableEntry, names: Any) -> None:
        drop(self, names)
        taken.extend(names)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(TableEntry, "drop_partitions", killed)
        with pytest.raises(KeyboardInterrupt):
            migrate.apply(table.catalog, table.name)
    assert taken == ["k=1"]
    (file,) = (table.folder / FOLDER).rglob("journal.json")
    file.write_text(file.read_text().replace('"version": 2', '"version": 1'))
    for note in file.parent.glob("taken-*"):
        note.unlink()
    table.forget_journal()
    assert migrate.revert(table.catalog, table.name).dropped_partitions == ()
    assert migrate.apply(table.catalog, table.name).rows == 2
    assert migrate.verify(table.catalog, table.name).difference_count == 0
    migrate.revert(table.catalog, table.name, dry_run=False)
    assert table.state == before
