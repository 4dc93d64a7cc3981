"""Orphan files of tables of a metastore: what other entries have in the folder stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from maintained_table import age

from icecomb.catalog import open_table
from icecomb.catalog.hive.thrift.entity import FieldSchema, HiveTable, StorageDescriptor
from icecomb.format.errors import ValidationError
from tests.catalog.numbered_rows import numbers
from tests.rings import sampled


def folder(table: Any) -> Path:
    return Path("/" + table.location().removeprefix("file:").lstrip("/"))


def left(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"left")
    return str(path)


@pytest.fixture
def table(catalog: Any, namespace: str) -> Any:
    made = catalog.create_table(f"{namespace}.orphans", numbers().schema)
    made.append(numbers(1))
    yield made
    catalog.drop_table(made.name())


def hive_table(catalog: Any, namespace: str, name: str, location: str) -> None:
    storage = StorageDescriptor(columns=(FieldSchema("a", "int"),), location=location)
    catalog.client.create_table(
        HiveTable(
            namespace,
            name,
            storage=storage,
            table_type="EXTERNAL_TABLE",
            parameters={"EXTERNAL": "TRUE"},
        )
    )


def test_orphans_go_and_old_metadata_files_of_the_log_stay(table: Any) -> None:
    for value in range(2, 5):
        table.append(numbers(value))
    orphan = left(folder(table) / "data" / "left.parquet")
    age(folder(table))
    done = table.maintenance.remove_orphan_files(dry_run=False)
    assert [
        path.removeprefix("file:").replace("//", "/") for path in done.orphan_file_location
    ] == [orphan]
    assert not Path(orphan).exists()
    assert table.refresh().scan().to_arrow().num_rows == 4
    assert all(Path(folder(table) / "metadata").glob("*.metadata.json"))
    assert len(list((folder(table) / "metadata").glob("*.metadata.json"))) == 5


@pytest.mark.parametrize("spelled", sampled(["file:{}", "file://{}", "{}"], keep=1))
def test_the_rows_of_a_hive_table_further_down_stay(
    table: Any, catalog: Any, namespace: str, spelled: str
) -> None:
    theirs = left(folder(table) / "below" / "000000_0")
    hive_table(catalog, namespace, "below", spelled.format(folder(table) / "below"))
    try:
        age(folder(table))
        done = table.maintenance.remove_orphan_files(dry_run=False)
        assert done.orphan_file_location == ()
        assert list(done.other_tables.values()) == [f"table {namespace}.below"]
        assert Path(theirs).exists()
    finally:
        catalog.client.drop_table(namespace, "below")


def test_a_hive_table_with_the_same_folder_is_refused(
    table: Any, catalog: Any, namespace: str
) -> None:
    theirs = left(folder(table) / "000000_0")
    hive_table(catalog, namespace, "same", f"file:{folder(table)}/")
    try:
        age(folder(table))
        with pytest.raises(
            ValidationError, match=rf"folder is also that of table {namespace}\.same"
        ):
            table.maintenance.remove_orphan_files(dry_run=False)
        assert Path(theirs).exists()
    finally:
        catalog.client.drop_table(namespace, "same")


def test_the_files_of_a_table_that_names_the_folder_for_its_data_stay(
    table: Any, catalog: Any, namespace: str, tmp_path: Path
) -> None:
    """Wherever its own folder is: in a common one its files are no orphans of another table."""
    common = tmp_path / "common"
    other = catalog.create_table(
        f"{namespace}.elsewhere",
        numbers().schema,
        properties={"write.data.path": f"file:{common}/data"},
    )
    try:
        other.append(numbers(8))
        orphan = left(common / "data" / "left.parquet")
        age(common)
        for root in (common / "data", common):
            done = table.maintenance.remove_orphan_files(location=f"file:{root}", dry_run=True)
            assert [path.removeprefix("file:") for path in done.orphan_file_location] == [orphan]
    finally:
        catalog.drop_table(f"{namespace}.elsewhere")


def test_the_files_of_an_iceberg_table_with_the_same_folder_stay(
    table: Any, catalog: Any, namespace: str
) -> None:
    other = catalog.create_table(
        f"{namespace}.twin", numbers().schema, location=table.location(), properties={}
    )
    try:
        other.append(numbers(8))
        orphan = left(folder(table) / "data" / "left.parquet")
        age(folder(table))
        for one in (table, other):
            done = one.maintenance.remove_orphan_files(dry_run=False)
            assert len(done.orphan_file_location) == (one is table)
        assert not Path(orphan).exists()
        assert table.refresh().scan().to_arrow()["id"].to_pylist() == [1]
        assert other.refresh().scan().to_arrow()["id"].to_pylist() == [8]
    finally:
        catalog.drop_table(other.name())


def test_a_file_system_table_that_was_registered_keeps_what_it_wrote_since(
    catalog: Any, namespace: str, tmp_path: Path
) -> None:
    from icecomb.catalog import load_catalog

    lake = load_catalog("lake", type="hadoop", warehouse=f"file:{tmp_path}")
    lake.create_namespace("db")
    numbered = lake.create_table("db.t", numbers().schema)
    numbered.append(numbers(1))
    registered = catalog.register_table(f"{namespace}.registered", numbered.metadata_location)
    try:
        numbered.append(numbers(2))
        age(tmp_path)
        with pytest.raises(ValidationError, match="but its folder has"):
            registered.maintenance.remove_orphan_files(dry_run=False)
        registered.append(numbers(3))
        age(tmp_path)
        done = registered.maintenance.remove_orphan_files(dry_run=False)
        assert done.orphan_file_location == ()
        assert numbered.refresh().scan().to_arrow().num_rows == 2
        assert registered.refresh().scan().to_arrow().num_rows == 2
    finally:
        catalog.drop_table(registered.name())


def test_a_table_that_knows_the_folder_by_a_mount_point_is_noticed(
    table: Any, catalog: Any, namespace: str, tmp_path: Path
) -> None:
    mount = tmp_path / "mount"
    mount.symlink_to(folder(table))
    other = catalog.register_table(f"{namespace}.mounted", table.metadata_location)
    with other.transaction() as change:
        change.update_location(str(mount))
    other.append(numbers(2))
    other.append(numbers(3))
    catalog.drop_table(other.name())  # another metastore has it, and its machines the mount point
    mount.unlink()
    age(folder(table))
    with pytest.raises(ValidationError, match=r"outside of .* that are called the same"):
        table.maintenance.remove_orphan_files(dry_run=False)
    mount.symlink_to(folder(table))
    assert open_table(other.metadata_location).scan().count() == 3


def test_a_younger_commit_that_failed_hides_no_file_of_another_table(
    table: Any, catalog: Any, namespace: str
) -> None:
    name = f"{namespace}.other"
    made = catalog.create_table(name, numbers().schema, location=table.location())
    made.append(numbers(2))
    base, commits = made.metadata_location, []
    for value in (3, 4):
        catalog.drop_table(name)
        other = catalog.register_table(name, base)
        other.append(numbers(value))
        commits.append(other.metadata_location)
    catalog.drop_table(name)
    age(folder(table))
    table.maintenance.remove_orphan_files(dry_run=False)
    for location in commits:
        assert open_table(location).scan().count() == 2


def test_a_page_that_a_proxy_answers_once_makes_no_rubbish_of_a_neighbor(
    catalog: Any, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from icecomb.catalog import load_catalog

    lake = load_catalog("lake", type="hadoop", warehouse=f"file:{tmp_path}")
    lake.create_namespace("db")
    numbered = lake.create_table("db.t", numbers().schema)
    numbered.append(numbers(1))
    registered = catalog.register_table(f"{namespace}.beside", numbered.metadata_location)
    registered.append(numbers(2))
    numbered.append(numbers(3))
    age(tmp_path)
    asked: set[str] = set()
    read = type(registered.io).read

    def first_a_page(io: Any, location: str, *args: Any, **options: Any) -> bytes:
        if location.endswith(".metadata.json") and location not in asked:
            asked.add(location)
            return b"<html>log in</html>"
        return read(io, location, *args, **options)

    try:
        monkeypatch.setattr(type(registered.io), "read", first_a_page)
        done = registered.maintenance.remove_orphan_files(dry_run=False)
        monkeypatch.undo()
        assert (done.orphan_file_location, bool(asked)) == ((), True)
        assert numbered.refresh().scan().to_arrow().num_rows == 2
    finally:
        catalog.drop_table(registered.name())
