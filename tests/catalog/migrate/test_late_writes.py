"""What Hive's writers did after the conversion, whatever became of a table meanwhile: everybody tells of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icecomb.catalog import migrate
from icecomb.catalog.hive.thrift.entity import (
    FieldSchema,
    HivePartition,
    HiveTable,
    StorageDescriptor,
)
from icecomb.catalog.migrate.applying import hive_parts
from icecomb.catalog.migrate.choices import Choices
from icecomb.catalog.migrate.journal.entry import TableEntry
from icecomb.catalog.migrate.journal.journal import Step, start_journal
from icecomb.catalog.migrate.journal.overwritten_entry import RestoredEntries, folders_of
from icecomb.catalog.migrate.reverting.present_state import examine_migration
from icecomb.format.errors import MigrationError
from icecomb.format.property.table_property import FOLDER_PATHS, FORMER_FOLDERS
from icecomb.format.storage.file_io import FileIO
from tests.catalog.migrate.conftest import PARQUET, MadeTable
from tests.catalog.numbered_rows import ids, numbers
from tests.rings import sampled

MADE = "late"
ALTER = "alter_table_with_environment_context"


def write_over(file: Path, *rows: int) -> None:
    """Do as Hive, which moves a file of the same name to the place of another one."""
    file.unlink()
    pq.write_table(numbers(*rows), file)


@pytest.fixture
def two(make_hive_table: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A table of two partitions, whose entries are dropped one by one."""
    monkeypatch.setattr(hive_parts, "PAGE", 1)
    return make_hive_table({"id": "bigint"}, {"k": "int"}, {(k,): numbers(int(k)) for k in "12"})


def told_by_all(table: Any, what: str) -> None:
    found = migrate.verify(table.catalog, table.name)
    assert [one for one in found.differences if what in one] != []
    assert what in str(migrate.status(table.catalog, table.name)["late-writes"])
    assert any(what in one.message for one in examine_migration(table.catalog, table.entry))
    with pytest.raises(MigrationError, match=f"{what}|has no finished migration"):
        migrate.finalize(table.catalog, table.name, unverified=True)


@pytest.mark.parametrize("turn", sampled(["first", "second"], keep=1))
def test_a_partition_that_hive_adds_while_the_keys_are_taken_away_is_told(
    two: Any, proxied: Any, proxy: Any, turn: str
) -> None:
    """The metastore accepts it, though all partitions are dropped by then."""
    new = two.folder / "k=3"
    new.mkdir()
    pq.write_table(numbers(3), new / "000000_0")
    storage = replace(two.partitions[0].storage, location=f"file:{new}")
    added = replace(two.partitions[0], values=("3",), storage=storage, wire=None)

    def add() -> None:
        two.catalog.client.partitions.add([added])

    def begin() -> None:
        ahead = add if turn == "first" else lambda: proxy.before(ALTER, add)
        proxy.before(ALTER, ahead)

    proxy.after("drop_partitions_req", lambda: proxy.after("drop_partitions_req", begin))
    with pytest.raises(MigrationError, match=f"{new}/000000_0"):
        migrate.apply(proxied, two.name)
    told_by_all(two, f"{new}/000000_0")
    two.catalog.load_table(two.name).add_files([f"file:{new}/000000_0"], partition={"k": "3"})
    migrate.apply(two.catalog, two.name)
    assert ids(two) == [1, 2, 3]
    assert migrate.verify(two.catalog, two.name).difference_count == 0


def test_a_file_that_was_taken_in_and_is_replaced_is_told(two: Any) -> None:
    migrate.apply(two.catalog, two.name)
    file = two.folder / "p0" / "000000_0"
    pq.write_table(numbers(7), file)
    migrate.apply(two.catalog, two.name)
    assert migrate.verify(two.catalog, two.name).difference_count == 0
    write_over(file, 8)
    told_by_all(two, str(file))
    with pytest.raises(MigrationError, match="replaced or removed 1"):
        migrate.apply(two.catalog, two.name)


def test_a_file_that_was_taken_in_and_is_removed_is_told(two: Any) -> None:
    migrate.apply(two.catalog, two.name)
    file = two.folder / "p0" / "000000_0"
    pq.write_table(numbers(7), file)
    migrate.apply(two.catalog, two.name)
    file.unlink()
    told_by_all(two, str(file))


def test_a_file_that_is_written_over_one_that_the_table_has_no_more_is_told(two: Any) -> None:
    """As after a compaction: the old file is still there, and Hive takes its name."""
    migrate.apply(two.catalog, two.name)
    two.catalog.load_table(two.name).delete("k = 1")
    file = two.folder / "p0" / "part-0.parquet"
    write_over(file, 7)
    told_by_all(two, str(file))
    # its rows are copied, and it is moved away
    two.catalog.load_table(two.name).append(
        pa.table({"id": pq.ParquetFile(file).read()["id"], "k": pa.array([1], pa.int32())})
    )
    file.unlink()
    assert migrate.apply(two.catalog, two.name).already
    assert ids(two) == [2, 7]


ACCURATE = {"COLUMN_STATS_ACCURATE": '{"BASIC_STATS":"true"}', "numRows": "1"}


def test_hive_does_not_count_by_statistics_of_folders_that_it_wrote_to_meanwhile(two: Any) -> None:
    """Hive answers ``count(*)`` from an entry that says that its statistics are accurate."""
    client, place = two.catalog.client, two.name.split(".")
    analyzed = [
        replace(one, parameters={**one.parameters, **ACCURATE}, wire=None) for one in two.partitions
    ]
    client.partitions.alter(*place, analyzed)
    before = two.partitions
    migrate.apply(two.catalog, two.name)
    pq.write_table(numbers(7), two.folder / "p0" / "000000_0")
    migrate.apply(two.catalog, two.name)
    migrate.revert(two.catalog, two.name, dry_run=False)
    first, second = two.partitions
    assert "COLUMN_STATS_ACCURATE" not in first.parameters
    assert second == before[1]
    assert replace(first, parameters={}) == replace(before[0], parameters={})


def test_statistics_of_changed_folders_are_not_called_accurate_any_more(tmp_path: Path) -> None:
    storage = StorageDescriptor(location="hdfs://a/t/k=1/")
    others = replace(storage, location="hdfs://a/t/k=2")
    old = HiveTable("d", "t", storage=replace(storage, location="hdfs://a/t"), parameters=ACCURATE)
    parted = replace(old, partition_keys=(FieldSchema("k", "int"),))
    homes = {"1": storage, "2": others}
    partitions = [
        HivePartition("d", "t", (k,), storage=home, parameters=ACCURATE)
        for k, home in homes.items()
    ]
    changed = folders_of(["hdfs://a/t/k=1/below/000000_0"])
    assert {"hdfs://a/t", "hdfs://a/t/k=1", "hdfs://a/t/k=1/below"} <= set(changed)

    def restored(table: HiveTable, *facts: str) -> RestoredEntries:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        journal = start_journal(FileIO(), str(folder), table, partitions, Choices())
        journal.record(Step.REVERTING, pointer="p", added=[], changed=list(facts))
        return RestoredEntries(journal)

    doubted = {"numRows": "1"}
    assert restored(old, *changed).table == replace(old, parameters=doubted)
    assert restored(old).table == old
    assert restored(parted, *changed).table == parted
    assert [one.parameters for one in restored(parted, *changed).partitions()] == [
        doubted,
        ACCURATE,
    ]
    assert list(restored(parted).partitions()) == partitions


def test_a_revert_says_which_files_hive_replaced(two: Any, run: Any) -> None:
    migrate.apply(two.catalog, two.name)
    file = two.folder / "p0" / "part-0.parquet"
    write_over(file, 7)
    plan = migrate.revert(two.catalog, two.name)
    assert plan.replaced_files == (f"file:{file}",)
    assert "Hive replaced 1 files since" in plan.summary
    assert plan.to_json()["replaced-files"] == [f"file:{file}"]
    code, out, _ = run("revert", two.name)
    assert (code, str(file) in out) == (0, True)
    # what Hive overwrites empties the folder of metadata, too
    for one in (two.folder / "metadata").iterdir():
        one.unlink()
    assert migrate.revert(two.catalog, two.name).replaced_files == (f"file:{file}",)


@pytest.mark.slow("reads and lists a finalized table by five commands")
def test_what_hive_brings_after_the_table_was_finalized_is_told(
    two: Any, run: Any, icecomb: Any
) -> None:
    """A writer that began before the conversion may end as late as that."""
    migrate.apply(two.catalog, two.name)
    migrate.verify(two.catalog, two.name)
    migrate.finalize(two.catalog, two.name)
    assert icecomb("doctor", two.name)[0] == 0
    file = two.folder / "p0" / "000000_0"
    pq.write_table(numbers(7), file)
    code, out, _ = run("status", two.name)
    assert (code, "finalized, 1 files differ since" in out, str(file) in out) == (3, True, True)
    code, out, _ = icecomb("doctor", two.name)
    assert (code, str(file) in out, "add_files" in out) == (3, True, True)
    two.catalog.load_table(two.name).add_files([f"file:{file}"], partition={"k": "1"})
    assert run("status", two.name)[0] == 0
    write_over(two.folder / "p1" / "part-0.parquet", 9)
    [finding] = examine_migration(two.catalog, two.entry)
    assert finding.remedy == "Restore them from a backup."


@pytest.mark.full("needs Hive 3 and 4")
@pytest.mark.parametrize("version", ["3.1.3", "4.0.1"])
def test_such_a_partition_is_told_on_other_metastores_too(
    hive_catalogs: dict[str, Any], version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = hive_catalogs[version]
    client, whole = catalog.client, replace(PARQUET, columns=(FieldSchema("id", "bigint"),))
    places = {k: tmp_path / "t" / f"k={k}" for k in "13"}
    for k, place in places.items():
        place.mkdir(parents=True)
        pq.write_table(numbers(int(k)), place / "000000_0")
    old = HiveTable(
        "default",
        "key_window",
        storage=replace(whole, location=f"file:{tmp_path}/t"),
        partition_keys=(FieldSchema("k", "int"),),
        table_type="MANAGED_TABLE",
    )
    client.create_table(old)
    table = MadeTable(catalog, old.full_name, tmp_path / "t")
    one, three = (
        HivePartition(
            "default", "key_window", (k,), storage=replace(whole, location=f"file:{place}")
        )
        for k, place in places.items()
    )
    client.partitions.add([one])
    take_away = TableEntry.take_keys_away

    def late(self: Any, *arguments: Any) -> None:
        client.partitions.add([three])
        take_away(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(TableEntry, "take_keys_away", late)
        with pytest.raises(MigrationError, match="k=3/000000_0"):
            migrate.apply(catalog, table.name)
    told_by_all(table, "k=3/000000_0")
    catalog.load_table(table.name).add_files([f"file:{places['3']}/000000_0"], partition={"k": "3"})
    migrate.apply(catalog, table.name)
    assert ids(table) == [1, 3]
    migrate.revert(catalog, table.name, dry_run=False, allow_data_loss=True)
    assert ("1",) in [found.values for found in table.partitions]
    client.drop_table("default", "key_window")


def test_files_in_a_folder_that_any_property_names_are_not_hives(two: Any) -> None:
    migrate.apply(two.catalog, two.name)
    folder = two.folder / "p0" / "ours"
    folder.mkdir()
    pq.write_table(numbers(3), folder / "of-a-failed-commit.parquet")
    assert migrate.status(two.catalog, two.name).get("late-writes")
    table = two.catalog.load_table(two.name)
    for name in FOLDER_PATHS:
        with table.transaction() as change:
            change.set_properties({name.key: f"file:{folder}"})
        assert not migrate.status(two.catalog, two.name).get("late-writes")
        with table.transaction() as change:
            change.set_properties({name.key: f"file:{two.folder}/"})
        assert migrate.status(two.catalog, two.name).get("late-writes")
        with table.transaction() as change:
            change.remove_properties(name.key)


def test_partitions_elsewhere_are_the_tables_own_once_there_is_no_way_back(
    two: Any, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "archive" / "k=2"
    (two.folder / "p1").rename(tmp_path / "p1")
    elsewhere.parent.mkdir()
    (tmp_path / "p1").rename(elsewhere)
    second = two.partitions[1]
    moved = replace(second, storage=replace(second.storage, location=f"file:{elsewhere}"))
    two.catalog.client.partitions.alter(*two.name.split("."), [moved])
    migrate.apply(two.catalog, two.name)
    migrate.finalize(two.catalog, two.name, unverified=True)
    table = two.catalog.load_table(two.name)
    assert FORMER_FOLDERS.of(table.properties) == (f"file:{elsewhere}",)
    table.overwrite(pa.table({"id": [7], "k": pa.array([7], pa.int32())}))
    done = table.maintenance.expire_snapshots().older_than(1 << 60).commit()
    assert done.deleted_data_files_count == 2
    assert not [*elsewhere.iterdir()]
