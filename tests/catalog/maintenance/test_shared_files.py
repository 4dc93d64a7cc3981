"""Files that two tables of one folder have: what expires or purges one of them leaves what the other needs."""

from __future__ import annotations

import itertools
import os
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog, open_table
from icecomb.catalog.hive.thrift.entity import HiveTable, StorageDescriptor
from icecomb.format.errors import FileIOError, ValidationError
from icecomb.format.operation.expiry.expire import ExpireSnapshots
from tests.format.operation.expiry.test_expire import DAY_MS, IO, NOW, Story

_NUMBERS = itertools.count()
FUTURE = int(time.time() * 1000) + DAY_MS


@pytest.fixture
def table(catalog: Any) -> Any:
    """Two snapshots, of which the second has other rows than the first."""
    if not catalog.namespace_exists("sharing"):
        catalog.create_namespace("sharing")
    name = f"sharing.t{next(_NUMBERS)}"
    made = catalog.create_table(name, pa.schema([("id", pa.int64())]))
    made.append(pa.table({"id": [1]}))
    return made


def files(table: Any) -> set[Path]:
    return set(Path(f"{table.location().removeprefix('file:')}/data").rglob("*.parquet"))


def test_two_entries_on_one_metadata_file_are_purged_one_after_the_other(table: Any) -> None:
    catalog, copy = table.catalog, f"{'.'.join(table.name())}_copy"
    catalog.register_table(copy, table.metadata_location)
    there = files(table)
    catalog.purge_table(table.name())
    assert files(table) == there
    assert catalog.load_table(copy).scan().to_arrow()["id"].to_pylist() == [1]
    catalog.purge_table(copy)
    assert files(table) == set()


def test_a_purge_leaves_what_a_table_of_another_namespace_needs(table: Any) -> None:
    catalog = table.catalog
    if not catalog.namespace_exists("elsewhere"):
        catalog.create_namespace("elsewhere")
    copy = f"elsewhere.{table.name()[1]}"
    catalog.register_table(copy, table.metadata_location)
    there = files(table)
    catalog.purge_table(table.name())
    assert files(table) == there
    assert catalog.load_table(copy).scan().to_arrow()["id"].to_pylist() == [1]
    catalog.purge_table(copy)
    assert files(table) == set()


def test_what_a_copy_of_the_table_needs_does_not_expire(table: Any) -> None:
    catalog, copy = table.catalog, f"{'.'.join(table.name())}_copy"
    catalog.register_table(copy, table.metadata_location)
    first = files(table)
    table.overwrite(pa.table({"id": [2]}))
    with table.expire_snapshots(dry_run=True) as expire:
        expire.older_than(FUTURE)
    assert expire.result.files.files == ()
    with table.expire_snapshots() as expire:
        expire.older_than(FUTURE)
    assert expire.result.files.data_files == ()
    assert first < files(table)
    assert catalog.load_table(copy).scan().to_arrow()["id"].to_pylist() == [1]
    catalog.drop_table(copy)


@pytest.mark.parametrize("moved", ["table", "copy"])
def test_a_copy_that_has_another_location_by_now_keeps_its_files(
    table: Any, tmp_path: Path, moved: str
) -> None:
    catalog, name = table.catalog, f"{'.'.join(table.name())}_copy"
    copy = catalog.register_table(name, table.metadata_location)
    with (table if moved == "table" else copy).transaction() as change:
        change.update_location(str(tmp_path / "moved"))
    table.overwrite(pa.table({"id": [2]}))
    table.maintenance.expire_snapshots().older_than(FUTURE).retain_last(1).commit()
    assert catalog.load_table(name).scan().to_arrow()["id"].to_pylist() == [1]
    table.maintenance.remove_orphan_files(older_than=FUTURE, any_age=True, dry_run=False)
    assert catalog.load_table(name).scan().to_arrow()["id"].to_pylist() == [1]
    catalog.purge_table(table.name())
    assert catalog.load_table(name).scan().to_arrow()["id"].to_pylist() == [1]


def test_a_file_system_table_that_rests_keeps_what_it_needs(table: Any, tmp_path: Path) -> None:
    lake = load_catalog("lake", type="hadoop", warehouse=str(tmp_path))
    lake.create_namespace("db")
    resting = lake.create_table("db.t", pa.schema([("id", pa.int64())]))
    resting.append(pa.table({"id": [1]}))
    for path in (tmp_path / "db/t").rglob("*"):
        os.utime(path, (time.time() - 7 * 86_400,) * 2)
    name = f"{'.'.join(table.name())}_resting"
    twin = table.catalog.register_table(name, resting.metadata_location)
    with twin.update_properties() as update:
        update.set("write.metadata.previous-versions-max", "1")
    twin.overwrite(pa.table({"id": [2]}))
    twin.append(pa.table({"id": [3]}))
    twin.maintenance.expire_snapshots().older_than(FUTURE).retain_last(1).commit()
    table.catalog.purge_table(name)
    assert lake.load_table("db.t").scan().to_arrow()["id"].to_pylist() == [1]


def test_nothing_is_purged_whose_metadata_could_not_be_read_before(
    table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog, there = table.catalog, files(table)
    remove = type(catalog.entries).remove

    def mended(*given: Any) -> Any:
        metadata.rename(place)
        return remove(*given)

    place = Path(table.metadata_location.removeprefix("file:"))
    metadata = place.rename(place.with_name("aside"))
    monkeypatch.setattr(type(catalog.entries), "remove", mended)
    catalog.purge_table(table.name())
    assert files(table) == there


def test_the_folder_of_a_hive_table_is_no_place_to_delete_files_in(table: Any) -> None:
    catalog, name = table.catalog, table.name()[1]
    storage = StorageDescriptor(location=table.location())
    twin = HiveTable("sharing", f"{name}_hive", storage=storage, table_type="EXTERNAL_TABLE")
    catalog.client.create_table(replace(twin, parameters={"EXTERNAL": "TRUE"}))
    table.overwrite(pa.table({"id": [2]}))
    there = files(table)
    shared = f"is that of table sharing.{name}_hive as well"
    with (
        pytest.raises(FileIOError, match=shared),
        table.maintenance.expire_snapshots() as expire,
    ):
        expire.older_than(FUTURE)
    with pytest.raises(ValidationError, match=shared):
        catalog.purge_table(table.name())
    assert files(table) == there
    assert catalog.load_table(table.name()).scan().count() == 1
    catalog.client.drop_table("sharing", f"{name}_hive")
    catalog.purge_table(table.name())
    assert files(table) == set()


def test_others_are_asked_about_the_files_that_would_go(tmp_path: Path) -> None:
    story = Story(tmp_path, 4)
    story.append("a", "b")
    other = story.metadata
    story.delete("a")
    story.append("c")
    expire = ExpireSnapshots(story.metadata, IO, folders=story.folders, dry_run=True)
    expire.older_than(NOW + DAY_MS).commit()
    assert [Path(one).name for one in expire.result.files.data_files] == ["a"]
    asked = ExpireSnapshots(
        story.metadata,
        IO,
        folders=story.folders,
        dry_run=True,
        others=lambda: [(other, "1.metadata.json")],
    )
    asked.older_than(NOW + DAY_MS).commit()
    assert asked.result.files.data_files == ()
    assert len(asked.result.files.files) < len(expire.result.files.files)


class TestASecondMetastore:
    """The same metadata in another metastore: the table has the same uuid, but no entry here."""

    @pytest.fixture
    def elsewhere(self, table: Any) -> Any:
        """The metadata file of the other metastore's table, which went on by two commits."""
        catalog, copy = table.catalog, f"{'.'.join(table.name())}_elsewhere"
        other = catalog.register_table(copy, table.metadata_location)
        other.append(pa.table({"id": [2]}))
        other.append(pa.table({"id": [3]}))
        catalog.drop_table(copy)
        return lambda: sorted(
            open_table(other.metadata_location).scan().to_arrow()["id"].to_pylist()
        )

    def test_its_files_are_no_orphans(self, table: Any, elsewhere: Any) -> None:
        for value in range(4, 8):
            table.append(pa.table({"id": [value]}))
        done = table.maintenance.remove_orphan_files(older_than=FUTURE, any_age=True, dry_run=False)
        assert set(done.other_tables.values()) == {"the metadata of another table"}
        assert elsewhere() == [1, 2, 3]

    def test_what_it_needs_does_not_expire(self, table: Any, elsewhere: Any) -> None:
        table.overwrite(pa.table({"id": [8]}))
        table.maintenance.expire_snapshots().older_than(FUTURE).retain_last(1).commit()
        assert elsewhere() == [1, 2, 3]

    def test_a_purge_leaves_what_it_needs(self, table: Any, elsewhere: Any) -> None:
        table.append(pa.table({"id": [8]}))
        table.catalog.purge_table(table.name())
        assert elsewhere() == [1, 2, 3]

    def test_a_copied_folder_that_was_registered_deletes_nothing_of_the_original(
        self, table: Any, tmp_path: Path
    ) -> None:
        catalog, copy = table.catalog, f"{'.'.join(table.name())}_copied"
        place = table.metadata_location.removeprefix("file:")
        target = tmp_path / "copied" / "metadata" / Path(place).name
        shutil.copytree(Path(place).parents[1], tmp_path / "copied")
        original, location = catalog.load_table(table.name()), table.metadata_location
        catalog.drop_table(original.name())  # it is in another metastore
        other = catalog.register_table(copy, str(target))
        with pytest.raises(ValidationError, match="its metadata file is not there"):
            other.maintenance.remove_orphan_files(older_than=FUTURE, any_age=True, dry_run=False)
        other.overwrite(pa.table({"id": [8]}))
        other.maintenance.expire_snapshots().older_than(FUTURE).retain_last(1).commit()
        other.maintenance.remove_orphan_files(older_than=FUTURE, any_age=True, dry_run=False)
        catalog.purge_table(copy)
        assert open_table(location).scan().to_arrow()["id"].to_pylist() == [1]
        catalog.register_table(table.name(), location)
