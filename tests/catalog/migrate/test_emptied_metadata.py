"""Migrated tables whose metadata somebody emptied: the journal alone is the way back."""

from __future__ import annotations

import shutil
import time
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icecomb.catalog import migrate
from icecomb.catalog.migrate.applying import hive_parts
from icecomb.catalog.migrate.journal.entry import TableEntry
from icecomb.catalog.migrate.reverting.reversal import RevertBlockedError
from icecomb.format.errors import MigrationError
from tests.catalog.numbered_rows import numbers

MADE = "emptied"


def overwrite(table: Any, *rows: int) -> None:
    """Hive empties the folder of an unpartitioned table, but for hidden names (Hive.replaceFiles)."""
    for path in table.folder.iterdir():
        if not path.name.startswith(("_", ".")):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    pq.write_table(numbers(*rows), table.folder / "000000_0")


def test_after_an_overwrite_in_flight_the_hive_table_comes_back_with_what_hive_wrote(
    make_hive_table: Any, run: Any, icecomb: Any
) -> None:
    table = make_hive_table({"id": "bigint"}, rows=numbers(1))
    before = table.entry
    migrate.apply(table.catalog, table.name)
    overwrite(table, 8, 9)
    code, out, _ = run("status", table.name)
    assert code == 3
    assert "an Iceberg table whose metadata is gone: run revert" in out
    code, out, _ = icecomb("doctor", table.name)
    assert code == 3
    assert f"icecomb migrate revert {table.name}" in out
    assert "icecomb drop" not in out
    for verb in (migrate.apply, migrate.verify, migrate.finalize):
        with pytest.raises(MigrationError, match=r"metadata\.json is gone") as caught:
            verb(table.catalog, table.name)
        assert f"icecomb migrate revert {table.name}" in (caught.value.hint or "")
    plan = migrate.revert(table.catalog, table.name)
    assert plan.missing_files == (f"file:{table.folder}/part-0.parquet",)
    assert (plan.loses_data, plan.metadata_gone) == (True, False)
    with pytest.raises(RevertBlockedError, match="1 files of the Hive table that are gone"):
        migrate.revert(table.catalog, table.name, dry_run=False)
    assert migrate.revert(table.catalog, table.name, dry_run=False, allow_data_loss=True).done
    assert table.entry == before
    assert migrate.apply(table.catalog, table.name).rows == 2


def test_partitions_come_back_though_commits_since_are_lost(make_hive_table: Any) -> None:
    parts = {(k,): numbers(int(k)) for k in "12"}
    table = make_hive_table({"id": "bigint"}, {"k": "int"}, parts)
    before = table.state
    migrate.apply(table.catalog, table.name)
    loaded = table.catalog.load_table(table.name)
    loaded.append(pa.table({"id": [9], "k": pa.array([1], pa.int32())}))
    shutil.rmtree(table.folder / "metadata")
    plan = migrate.revert(table.catalog, table.name)
    assert (plan.metadata_gone, plan.missing_files, plan.loses_data) == (True, (), True)
    assert "later commits" in plan.summary
    with pytest.raises(RevertBlockedError, match="later commits"):
        migrate.revert(table.catalog, table.name, dry_run=False)
    migrate.revert(table.catalog, table.name, dry_run=False, allow_data_loss=True)
    assert table.state == before


def test_a_table_half_taken_away_comes_back(
    make_hive_table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hive_parts, "PAGE", 1)
    parts = {(k,): numbers(int(k)) for k in "123"}
    table = make_hive_table({"id": "bigint"}, {"k": "int"}, parts)
    before = table.state
    drop = TableEntry.drop_partitions

    def killed(self: TableEntry, names: Any) -> None:
        drop(self, names)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(TableEntry, "drop_partitions", killed)
        with pytest.raises(KeyboardInterrupt):
            migrate.apply(table.catalog, table.name)
    shutil.rmtree(table.folder / "metadata")
    assert len(table.partitions) == 2
    assert not migrate.revert(table.catalog, table.name).loses_data
    migrate.revert(table.catalog, table.name, dry_run=False)
    assert table.state == before


def test_files_of_the_iceberg_table_are_set_aside_where_hive_would_read_them(
    make_hive_table: Any,
) -> None:
    table = make_hive_table({"id": "bigint"}, rows=numbers(1))
    migrate.apply(table.catalog, table.name)
    table.catalog.load_table(table.name).append(numbers(2))
    shutil.rmtree(table.folder / "metadata")
    migrate.revert(table.catalog, table.name, dry_run=False, allow_data_loss=True)
    assert set(table.files()) == {str(table.folder / "part-0.parquet")}


def test_a_second_revert_has_nothing_to_do(make_hive_table: Any, run: Any) -> None:
    table = make_hive_table({"id": "bigint"}, rows=numbers(1))
    assert run("revert", table.name)[0] == 1
    migrate.apply(table.catalog, table.name)
    assert run("revert", table.name, "--yes")[0] == 0
    before = table.state
    code, _, err = run("revert", table.name, "--yes")
    assert code == 0
    assert "nothing to do" in err
    assert migrate.revert(table.catalog, table.name).already
    assert table.state == before


def test_a_folder_that_spark_deleted_whole_leaves_a_second_copy_of_the_journal(
    make_hive_table: Any,
) -> None:
    """An overwrite of Spark's own files deletes hidden names as well (InsertIntoHadoopFsRelationCommand)."""
    table = make_hive_table({"id": "bigint"}, rows=numbers(1))
    before = table.entry
    migrate.apply(table.catalog, table.name)
    shutil.rmtree(table.folder)
    table.folder.mkdir()
    pq.write_table(numbers(8, 9), table.folder / "part-00000.parquet")
    assert migrate.status(table.catalog, table.name)["state"].endswith("is gone: run revert")
    migrate.revert(table.catalog, table.name, dry_run=False, allow_data_loss=True)
    assert table.entry == before
    assert migrate.revert(table.catalog, table.name).already
    assert migrate.apply(table.catalog, table.name).rows == 2


def test_the_copy_of_a_journal_goes_with_the_way_back(make_hive_table: Any) -> None:
    table = make_hive_table({"id": "bigint"}, rows=numbers(1))
    copies = table.folder.parent / "_icecomb_journals"
    migrate.apply(table.catalog, table.name)
    first, second = (sorted(one.rglob("*.json")) for one in (copies, table.folder))
    assert [one.name for one in first] == [
        one.name for one in second if "_icecomb_migration" in one.parts
    ]
    migrate.revert(table.catalog, table.name, dry_run=False)
    assert not copies.exists()
    migrate.apply(table.catalog, table.name)
    migrate.finalize(table.catalog, table.name, unverified=True)
    assert not copies.exists()


def test_the_copy_of_a_table_that_was_dropped_is_not_that_of_the_next_one(
    make_hive_table: Any,
) -> None:
    table = make_hive_table({"id": "bigint"}, rows=numbers(1))
    before = table.entry
    migrate.apply(table.catalog, table.name)
    table.catalog.drop_table(table.name)
    shutil.rmtree(table.folder)
    table.folder.mkdir()
    pq.write_table(numbers(5), table.folder / "part-0.parquet")
    while int(time.time()) <= before.create_time:  # which the metastore sets, in seconds
        time.sleep(0.05)
    table.catalog.client.create_table(replace(before, wire=None))
    assert migrate.status(table.catalog, table.name)["state"] == "never migrated by icecomb"
    assert migrate.apply(table.catalog, table.name).rows == 1
