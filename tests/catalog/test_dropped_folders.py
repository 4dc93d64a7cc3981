"""Dropping a table takes rows of no other table, wherever that one lies."""

from __future__ import annotations

import uuid

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog
from icecomb.catalog.hadoop.catalog import catalog_of
from icecomb.format.errors import FileIOError, ValidationError
from icecomb.format.storage.local import LocalFileSystem

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64())})


ON_HDFS = pytest.param(
    "hdfs", marks=[pytest.mark.jvm, pytest.mark.full("the same rules on another file system")]
)


@pytest.fixture(params=["local", ON_HDFS])
def folders(request, tmp_path):
    """A warehouse of file-system tables with one of three rows, ``db.t``."""
    if request.param == "hdfs":
        hdfs = request.getfixturevalue("hdfs")
        settings = {**hdfs.client_settings, "hdfs.user": "alice"}
        warehouse = f"{hdfs.uri}/warehouse/dropped/{uuid.uuid4().hex}"
    else:
        settings, warehouse = {}, f"file://{tmp_path}/folders"
    settings["own-folders.allowed-prefixes"] = f"{warehouse}/rows"
    catalog = load_catalog("folders", type="hadoop", warehouse=warehouse, **settings)
    catalog.create_namespace("db")
    catalog.create_table("db.t", ROWS.schema).append(ROWS)
    return catalog


def rows_of(catalog, name):
    return sorted(catalog.load_table(name).scan().to_arrow()["id"].to_pylist())


def files_below(catalog):
    return {status.location for status in catalog.io.list(catalog._root)}


def by_path(catalog, location):
    inner, name = catalog_of(location, catalog.properties)
    return inner, name


def refused(catalog, name, match):
    """Purging is refused for this reason, and all files are there still; gives the hint."""
    before = files_below(catalog)
    with pytest.raises(ValidationError, match=match) as caught:
        catalog.purge_table(name)
    assert "nothing was deleted" in caught.value.hint
    assert files_below(catalog) == before
    return caught.value.hint


@pytest.mark.parametrize("below", ["sub", "a/b", "data/sub", "metadata/sub"])
def test_a_table_below_another_one_keeps_its_rows(folders, below):
    table = folders.load_table("db.t")
    inner, name = by_path(folders, f"{table.location()}/{below}")
    inner.create_table(name, ROWS.schema).append(ROWS)
    hint = refused(folders, "db.t", rf"another table is in its folder: .*/{below}/metadata/")
    assert "drop or move that table first" in hint
    assert rows_of(inner, name) == [1, 2, 3]
    inner.purge_table(name)
    folders.purge_table("db.t")
    assert not folders.table_exists("db.t")


def test_the_table_below_is_dropped_and_the_one_above_it_stays(folders):
    inner, name = by_path(folders, f"{folders.load_table('db.t').location()}/sub")
    inner.create_table(name, ROWS.schema).append(ROWS)
    inner.purge_table(name)
    assert rows_of(folders, "db.t") == [1, 2, 3]


def test_a_registered_copy_is_dropped_without_the_rows_it_shares(folders):
    copy = folders.register_table("db.copy", folders.load_table("db.t").metadata_location)
    own = {"own-folders.allowed-prefixes": folders.load_table("db.t").location()}
    trusting = load_catalog("folders", **{**folders.properties, **own})
    trusting.load_table(copy.name()).append(ROWS)
    folders.purge_table("db.copy")
    assert folders.list_tables("db") == [("db", "t")]
    assert rows_of(folders, "db.t") == [1, 2, 3]


def test_files_of_nobody_knows_whom_are_left_alone(folders):
    place = folders.load_table("db.t").location()
    for name in ("year=2024/part-0.parquet", "year=2025/part-0.parquet"):
        folders.io.create(f"{place}/{name}", b"rows of a Hive table")
    hint = refused(folders, "db.t", r"files that are not its own: .*year=2024/part-0\.parquet, .*")
    assert "move them elsewhere" in hint
    folders.io.delete([f"{place}/year={year}/part-0.parquet" for year in (2024, 2025)])
    folders.purge_table("db.t")
    assert files_below(folders) == set()


def test_files_that_were_added_where_they_lay_are_the_tables(folders):
    table = folders.load_table("db.t")
    written = next(iter(table.scan().plan_files())).file.file_path
    place = f"{table.location()}/year=2024/part-0.parquet"
    folders.io.create(place, folders.io.read(written))
    folders.io.create(f"{table.location()}/_SUCCESS", b"")
    table.add_files([place])
    folders.purge_table("db.t")
    assert files_below(folders) == set()


@pytest.mark.parametrize("inside", [False, True])
def test_files_of_a_data_folder_of_its_own_go_with_the_table(folders, inside):
    root = folders.load_table("db.t").location() if inside else folders._root
    table = folders.load_table("db.t")
    with table.transaction() as transaction:
        transaction.set_properties({"write.data.path": f"{root}/rows"})
    table.append(ROWS)
    assert any("/rows/" in name for name in files_below(folders))
    folders.purge_table("db.t")
    assert files_below(folders) == set()


def test_what_a_killed_writer_of_java_left_is_no_other_table(folders):
    place = folders.load_table("db.t").location()
    folders.io.create(f"{place}/metadata/{uuid.uuid4()}.metadata.json", b"{}")
    folders.purge_table("db.t")
    assert files_below(folders) == set()


def test_each_file_is_asked_to_be_deleted_once_and_the_newest_version_last(tmp_path, monkeypatch):
    catalog = load_catalog("folders", type="hadoop", warehouse=str(tmp_path))
    table = catalog.create_table("t", ROWS.schema)
    table.append(ROWS)
    table.append(ROWS)
    expected = {str(path) for path in tmp_path.rglob("*") if path.is_file()}
    calls, listed = [], []
    delete, list_files = LocalFileSystem.delete, LocalFileSystem.list

    def watched(self, locations):
        calls.extend(locations)
        delete(self, locations)

    def watched_list(self, prefix):
        listed.append(prefix)
        return list_files(self, prefix)

    monkeypatch.setattr(LocalFileSystem, "delete", watched)
    monkeypatch.setattr(LocalFileSystem, "list", watched_list)
    catalog.purge_table("t")
    assert sorted(calls) == sorted(expected)
    assert calls[-1].endswith("/v3.metadata.json")
    assert listed == [f"{tmp_path}/t"]


def test_rows_elsewhere_that_cannot_be_deleted_are_told_and_the_others_go(tmp_path, monkeypatch):
    settings = {"own-folders.allowed-prefixes": str(tmp_path)}
    catalog = load_catalog("folders", type="hadoop", warehouse=str(tmp_path / "w"), **settings)
    table = catalog.create_table("t", ROWS.schema, properties={"write.data.path": f"{tmp_path}/d"})
    for _ in range(2):
        table.append(ROWS)
    kept = min((tmp_path / "d").iterdir())
    delete = LocalFileSystem.delete

    def failing(self, locations):
        delete(self, [name for name in locations if name != str(kept)])
        if str(kept) in locations:
            raise FileIOError("Cannot delete", hint="Try again", path=str(kept))

    monkeypatch.setattr(LocalFileSystem, "delete", failing)
    with pytest.raises(FileIOError, match="Cannot delete"):
        catalog.purge_table("t")
    assert list((tmp_path / "d").iterdir()) == [kept]
    assert catalog.load_table("t").metadata.table_uuid == table.metadata.table_uuid
    monkeypatch.undo()
    catalog.purge_table("t")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_folder_that_a_metastores_table_is_in_too_keeps_its_rows(tmp_path, catalog):
    folders = load_catalog("folders", type="hadoop", warehouse=tmp_path.as_uri())
    folders.create_namespace("db")
    table = folders.create_table("db.t", ROWS.schema)
    table.append(ROWS)
    namespace = f"n{uuid.uuid4().hex[:10]}"
    catalog.create_namespace(namespace)
    name = (namespace, "taken")
    taken = catalog.register_table(name, table.metadata_location)
    with pytest.raises(
        ValidationError, match=r"also those of a file-system table: .*/v2"
    ) as caught:
        catalog.purge_table(name)
    assert "Drop it without purging" in caught.value.hint
    taken.append(ROWS)
    with pytest.raises(ValidationError, match="also those of a file-system table"):
        catalog.purge_table(name)
    refused(
        folders, "db.t", r"also that of a table of another catalog: .*/00000-.*\.metadata\.json"
    )
    assert rows_of(catalog, name) == [1, 1, 2, 2, 3, 3]
    assert rows_of(folders, "db.t") == [1, 2, 3]
    for path in (tmp_path / "db" / "t" / "metadata").iterdir():
        if path.name.startswith("v"):
            path.unlink()
    catalog.purge_table(name)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    catalog.drop_namespace(namespace)


def test_tables_inside_the_folder_of_a_metastores_table_keep_their_rows(tmp_path, catalog):
    namespace = f"n{uuid.uuid4().hex[:10]}"
    catalog.create_namespace(namespace)
    outer = catalog.create_table((namespace, "outer"), ROWS.schema, location=f"{tmp_path}/t")
    outer.append(ROWS)
    inner = catalog.create_table((namespace, "inner"), ROWS.schema, location=f"{tmp_path}/t/sub")
    inner.append(ROWS)
    folder, name = catalog_of(f"{tmp_path}/t/folder", {})
    folder.create_table(name, ROWS.schema).append(ROWS)
    catalog.purge_table((namespace, "outer"))
    assert rows_of(catalog, (namespace, "inner")) == [1, 2, 3]
    assert rows_of(folder, name) == [1, 2, 3]
    catalog.purge_table((namespace, "inner"))
    catalog.drop_namespace(namespace)


def test_a_folder_around_a_metastores_table_is_not_dropped(tmp_path, catalog):
    namespace = f"n{uuid.uuid4().hex[:10]}"
    catalog.create_namespace(namespace)
    folders = load_catalog("folders", type="hadoop", warehouse=str(tmp_path))
    folders.create_table("t", ROWS.schema).append(ROWS)
    inner = catalog.create_table((namespace, "inner"), ROWS.schema, location=f"{tmp_path}/t/sub")
    inner.append(ROWS)
    refused(folders, "t", r"another table is in its folder: .*/sub/metadata/00000-")
    assert rows_of(catalog, (namespace, "inner")) == [1, 2, 3]
    catalog.purge_table((namespace, "inner"))
    folders.purge_table("t")
    catalog.drop_namespace(namespace)
