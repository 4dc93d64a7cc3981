"""The way back of a migrated table: what is refused to keep it, and what is said once it is lost."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hmsclient.genthrift.hive_metastore import ttypes

from icecomb.catalog import migrate
from icecomb.catalog.hive.thrift.entity import FieldSchema, HivePartition, HiveTable
from icecomb.catalog.hive.thrift.partitions import PartitionGrant
from icecomb.catalog.migrate.journal.journal import COPIES, FOLDER
from icecomb.format.errors import MigrationError, NoSuchSnapshotError, ValidationError
from tests.catalog.migrate.conftest import PARQUET, MadeTable
from tests.catalog.numbered_rows import numbers
from tests.rings import sampled


@pytest.fixture
def migrated(make_hive_table: Any) -> Any:
    table = make_hive_table({"id": "bigint"}, rows=numbers(1, 2))
    migrate.apply(table.catalog, table.name)
    return table


def local(location: str) -> Path:
    return Path(location.removeprefix("file://").removeprefix("file:"))


def files(table: Any) -> list[Path]:
    return sorted(path for path in table.folder.rglob("*") if path.is_file())


def update(table: Any) -> None:
    with table.update_properties() as change:
        change.set("gc.enabled", "true")


def remove(table: Any) -> None:
    with table.update_properties() as change:
        change.remove("gc.enabled")


def transaction(table: Any) -> None:
    with table.transaction() as change:
        change.append(numbers(9))
        change.set_properties({"gc.enabled": "TRUE"})


def replace_table(table: Any) -> None:
    given = {"gc.enabled": "true"}
    with table.catalog.replace_table_transaction(
        table.name(), table.schema(), properties=given
    ) as change:
        change.append(numbers(9))


@pytest.mark.parametrize("change", sampled([update, replace_table, remove, transaction], keep=2))
def test_files_of_the_hive_table_may_not_be_deleted_before_finalize(
    migrated: Any, change: Callable[[Any], None]
) -> None:
    loaded = migrated.catalog.load_table(migrated.name)
    before = loaded.metadata_location, files(migrated)
    with pytest.raises(ValidationError, match="was migrated") as refused:
        change(loaded)
    assert f"icecomb migrate finalize {migrated.name}" in str(refused.value)
    now = migrated.catalog.load_table(migrated.name)
    assert (now.metadata_location, files(migrated)) == before
    with now.update_properties() as other:
        other.set("gc.enabled", "FALSE").set("team", "y")
    migrate.finalize(migrated.catalog, migrated.name, unverified=True)
    with migrated.catalog.load_table(migrated.name).update_properties() as other:
        other.set("gc.enabled", "true")


def test_commands_refused_by_gc_enabled_name_finalize(migrated: Any, icecomb: Any) -> None:
    name = migrated.name
    for words in (
        ("properties", name, "--set", "gc.enabled=true"),
        ("maintain", "expire-snapshots", name),
        ("maintain", "remove-orphan-files", name),
        ("drop", name, "--purge", "--yes"),
    ):
        code, _, err = icecomb(*words)
        assert code == 1
        assert "icecomb migrate finalize" in err
        assert "Set gc.enabled" not in err
    assert icecomb("migrate", "finalize", name, "--yes", "--unverified")[0] == 0
    assert icecomb("maintain", "expire-snapshots", name)[0] == 0


def test_status_says_when_another_engine_took_the_way_back(
    migrated: Any, pyiceberg: Any, run: Any
) -> None:
    assert migrate.verify(migrated.catalog, migrated.name).difference_count == 0
    files = migrated.files()
    first = migrated.catalog.load_table(migrated.name)
    snapshot = first.current_snapshot()
    first.overwrite(numbers(3))
    assert migrate.status(migrated.catalog, migrated.name)["outcome"] == "verified"
    other = pyiceberg.load_table(migrated.name)
    with other.transaction() as change:
        change.set_properties({"gc.enabled": "true"})
    code, out, _ = run("status", migrated.name, form="json")
    assert code == 3
    assert "a revert may soon be impossible: gc.enabled is true" in json.loads(out)["state"]
    # what Iceberg Java's expiration deletes, the files last
    other.refresh().maintenance.expire_snapshots().by_ids([snapshot.snapshot_id]).commit()
    assert "may soon" in migrate.status(migrated.catalog, migrated.name)["state"]
    for path in files:
        Path(path).unlink()
    found = migrate.status(migrated.catalog, migrated.name)
    assert found["outcome"] == "blocked"
    assert found["way-back"].startswith("a revert would not bring all rows back: 1 files of")
    local(snapshot.manifest_list).unlink()
    found = migrate.status(migrated.catalog, migrated.name)
    assert found["state"].startswith("verified; a revert is not possible any more: ")
    code, out, _ = run("status", migrated.name, f"{migrated.name}*", form="json")
    assert (code, json.loads(out)["summary"]) == (3, {"blocked": 1})
    with pytest.raises(NoSuchSnapshotError, match="icecomb migrate status"):
        migrate.verify(migrated.catalog, migrated.name)
    code, _, err = run("revert", migrated.name)
    assert (code, f"icecomb migrate finalize {migrated.name}" in err) == (1, True)
    migrate.finalize(migrated.catalog, migrated.name)
    assert migrate.status(migrated.catalog, migrated.name)["state"] == "finalized"
    assert migrated.rows() == [{"id": 3}]


def test_a_table_whose_journal_was_removed_is_told_and_finalized(migrated: Any, run: Any) -> None:
    shutil.rmtree(migrated.folder / FOLDER)
    shutil.rmtree(migrated.folder.parent / COPIES / migrated.folder.name)
    found = migrate.status(migrated.catalog, migrated.name)
    assert found["outcome"] == "blocked"
    assert "not possible any more: its journal is gone" in found["state"]
    assert run("finalize", migrated.name)[0] == 0
    assert run("finalize", migrated.name, "--yes")[0] == 3
    assert run("finalize", migrated.name, "--yes", "--unverified")[0] == 0
    loaded = migrated.catalog.load_table(migrated.name)
    assert "gc.enabled" not in loaded.properties
    assert migrate.status(migrated.catalog, migrated.name)["outcome"] == "none"


def privileges(client: Any, database: str, name: str, value: str, column: str = "") -> set[str]:
    """What the metastore answers to a user who asks for her own privileges on a partition."""
    kind = ttypes.HiveObjectType.COLUMN if column else ttypes.HiveObjectType.PARTITION
    place = ttypes.HiveObjectRef(kind, database, name, [value], column or None)
    found = client.grants._calls.read("list_privileges", "ann", ttypes.PrincipalType.USER, place)
    return {
        f"{one.grantInfo.privilege} by {one.grantInfo.grantor}"
        + (" with option" if one.grantInfo.grantOption else "")
        for one in found
    }


def grants_come_back(catalog: Any, table: Any) -> None:
    client, (database, name) = catalog.client, table.name.split(".")
    made = PartitionGrant(("1",), "", "ann", 1, "SELECT", "bob", 1, with_option=True)
    column = replace(made, values=("2",), column="id", with_option=False)
    role = replace(made, principal_type=2, principal="analysts")
    client.grants._calls.write("create_role", ttypes.Role("analysts", 0, "bob"))
    client.grants.add(database, name, [made, column, role])
    asked = [("1",), ("2", "id"), ("2",)]
    expected = [{"SELECT by bob with option"}, {"SELECT by bob"}, set()]
    assert [privileges(client, database, name, *one) for one in asked] == expected
    migrate.apply(catalog, table.name)
    assert client.grants.of(database, name) == []
    client.grants._calls.write("drop_role", "analysts")
    assert migrate.revert(catalog, table.name, dry_run=False).done
    assert [privileges(client, database, name, *one) for one in asked] == expected
    assert {one.principal for one in client.grants.of(database, name)} == {"ann"}


def test_privileges_on_partitions_and_their_columns_come_back(make_hive_table: Any) -> None:
    content = {("1",): numbers(1), ("2",): numbers(2)}
    table = make_hive_table({"id": "bigint"}, {"k": "int"}, content)
    grants_come_back(table.catalog, table)


@pytest.mark.full("needs Hive 3 and 4")
@pytest.mark.parametrize("version", ["3.1.3", "4.0.1"])
def test_privileges_come_back_on_other_metastores_too(
    hive_catalogs: dict[str, Any], version: str, tmp_path: Path
) -> None:
    catalog = hive_catalogs[version]
    whole = replace(PARQUET, columns=(FieldSchema("id", "bigint"),), location=f"file:{tmp_path}/t")
    keys = (FieldSchema("k", "int"),)
    old = HiveTable("default", "granted", storage=whole, partition_keys=keys)
    catalog.client.create_table(replace(old, table_type="EXTERNAL_TABLE"))
    for k in "12":
        (tmp_path / "t" / k).mkdir(parents=True)
        pq.write_table(numbers(int(k)), tmp_path / "t" / k / "000000_0")
        place = replace(whole, location=f"file:{tmp_path}/t/{k}")
        catalog.client.partitions.add([HivePartition("default", "granted", (k,), storage=place)])
    try:
        grants_come_back(catalog, MadeTable(catalog, old.full_name, tmp_path / "t"))
    finally:
        catalog.client.drop_table("default", "granted")


def rename_as_hive_4(table: Any, new: str) -> None:
    """What Hive 4 does to a table that it made external itself: it moves the location, not the files."""
    database, _, old = table.name.partition(".")
    entry = table.entry
    moved = replace(entry.storage, location=f"{entry.storage.location}_moved")
    table.catalog.client.alter_table(
        database, old, replace(entry, name=new, storage=moved, wire=None)
    )


def goes_there_and_back(table: Any, new: str, icecomb: Any) -> None:
    """Every step under the new name, though the entry's location holds nothing."""
    name = f"{table.name.partition('.')[0]}.{new}"
    outcome = lambda: migrate.status(table.catalog, name)["outcome"]  # noqa: E731
    assert not local(table.catalog.client.table(*name.split(".")).storage.location).exists()
    assert outcome() == "migrated"
    assert migrate.verify(table.catalog, name).difference_count == 0
    assert outcome() == "verified"
    assert migrate.apply(table.catalog, name).already
    migrate.finalize(table.catalog, name, dry_run=True)
    assert icecomb("migrate", "finalize", name)[0] == 0
    late = table.folder / "p0" / "late.parquet"
    pq.write_table(numbers(7), late)
    assert "late.parquet" in icecomb("doctor", name)[1]
    late.unlink()
    assert migrate.revert(table.catalog, name, dry_run=False).done
    assert outcome() == "reverted"


def test_a_table_that_the_server_moved_by_renaming_it_keeps_its_way_back(
    make_hive_table: Any, icecomb: Any
) -> None:
    content = {("1",): numbers(1), ("2",): numbers(2)}
    table = make_hive_table({"id": "bigint"}, {"k": "int"}, content)
    entry, partitions = table.state
    migrate.apply(table.catalog, table.name)
    new = f"{entry.name}_new"
    rename_as_hive_4(table, new)
    # Its old name and folder are given to another Hive table.
    table.catalog.client.create_table(replace(entry, table_type="EXTERNAL_TABLE", wire=None))
    with pytest.raises(MigrationError, match="has the folder of"):
        migrate.apply(table.catalog, table.name)
    table.catalog.client.drop_table(entry.database, entry.name)
    goes_there_and_back(table, new, icecomb)
    now = table.catalog.client.table(entry.database, new)
    assert now == replace(entry, name=new)
    table.name = now.full_name
    assert table.partitions == [replace(one, table=new) for one in partitions]


@pytest.mark.full("needs Hive 4")
def test_a_table_renamed_on_hive_4_keeps_its_way_back(
    hive_catalogs: dict[str, Any], tmp_path: Path, icecomb: Any
) -> None:
    catalog = hive_catalogs["4.0.1"]
    client, name = catalog.client, "way_back"
    whole = replace(PARQUET, columns=(FieldSchema("id", "bigint"),))
    client.create_table(
        HiveTable(
            "default",
            name,
            storage=whole,
            partition_keys=(FieldSchema("k", "int"),),
            table_type="MANAGED_TABLE",
        )
    )
    entry = client.table("default", name)
    assert entry.parameters["TRANSLATED_TO_EXTERNAL"] == "TRUE"
    folder = local(entry.storage.location)
    (folder / "p0").mkdir(parents=True)
    pq.write_table(numbers(1), folder / "p0" / "000000_0")
    place = replace(whole, location=f"{entry.storage.location}/p0")
    client.partitions.add([HivePartition("default", name, ("1",), storage=place)])
    table = MadeTable(catalog, f"default.{name}", folder)
    before = client.table("default", name)
    migrate.apply(catalog, table.name)
    catalog.rename_table(table.name, f"{table.name}_new")
    try:
        goes_there_and_back(table, f"{name}_new", partial(icecomb, uri=client.uri))
        assert client.table("default", f"{name}_new").storage == before.storage
    finally:
        client.drop_table("default", f"{name}_new")
