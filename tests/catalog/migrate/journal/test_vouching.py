"""Journals that somebody else wrote, or exchanged: only the entry in the metastore vouches for one."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from icecomb.catalog import migrate
from icecomb.catalog.hive.thrift.entity import HivePartition, HiveTable, StorageDescriptor
from icecomb.catalog.hive.thrift.partitions import PartitionGrant
from icecomb.catalog.hive.thrift.thrift_codec import partition_to_json, table_to_json
from icecomb.catalog.migrate.choices import Choices
from icecomb.catalog.migrate.journal.entry import TableEntry
from icecomb.catalog.migrate.journal.journal import (
    FOLDER,
    Journal,
    Step,
    find_journals,
    start_journal,
)
from icecomb.catalog.migrate.reverting.finalizing import UnverifiedError
from icecomb.format.errors import CorruptFileError, IcecombError, MigrationError
from icecomb.format.property.table_property import FORMER_FOLDERS, GC_ENABLED, MIGRATION_DIGEST
from icecomb.format.storage.file_io import FileIO
from tests.catalog.numbered_rows import numbers

MADE = "vouched"
UNIQUE = "0a1b2c3d-0000-4000-8000-000000000000"
KEYS = {"k": "int"}
EVE = PartitionGrant(("1",), "", "eve", 1, "ALL", "root", 1, with_option=True, authorizer="SQL")


@pytest.fixture
def private(tmp_path: Path) -> Path:
    """A folder that is no business of whoever writes to a table's."""
    folder = tmp_path / "home" / ".ssh"
    folder.mkdir(parents=True)
    (folder / "id_rsa").write_text("secret")
    return folder


@pytest.fixture
def two(make_hive_table: Any) -> Any:
    parts = {(k,): numbers(int(k)) for k in "12"}
    return make_hive_table({"id": "bigint"}, KEYS, parts)


def plant(table: Any, old: HiveTable, partitions: list[HivePartition]) -> Journal:
    """What a stranger writes into a table's folder; of the newest time."""
    journal = start_journal(FileIO(), f"file:{table.folder}", old, partitions, Choices())
    newer = Path(journal.location.removeprefix("file:"))
    newer = newer.rename(newer.with_name("29991231T000000.000000Z-00000000"))
    *_, planted = find_journals(FileIO(), f"file:{table.folder}")
    assert planted.location == f"file:{newer}"
    folder = f"file:{table.folder}/metadata"
    planted.record(Step.WRITING, folder=folder, existing=[], unique=UNIQUE)
    return planted


def prepared(journal: Journal, table: Any, **more: Any) -> None:
    uuid = table.entry.parameters.get("uuid", UNIQUE)
    location = table.entry.metadata_location or f"file:{table.folder}/metadata/1.metadata.json"
    facts = {"uuid": uuid, "snapshot-id": 1, "rows": 1, "files": 1, "partitions": 1, **more}
    journal.record(Step.PREPARED, **{"metadata-location": location, **facts})


def as_copy(table: Any, journal: Journal) -> None:
    """Leave only a journal's copy beside a table's folder."""
    place = Path(journal.location.removeprefix("file:"))
    beside = table.folder.parent / "_icecomb_journals" / table.folder.name
    shutil.rmtree(beside, ignore_errors=True)
    shutil.copytree(place, beside / place.name)
    shutil.rmtree(table.folder / FOLDER)


def native_journal(catalog: Any, name: str, folder: Path) -> Journal:
    """A journal for a table that Iceberg always had."""
    entry = catalog.client.table(*name.split("."))
    storage = replace(
        entry.storage,
        input_format="org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
        output_format="org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
        serde="org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
    )
    old = replace(entry, storage=storage, parameters={}, wire=None)
    journal = start_journal(FileIO(), f"file:{folder}", old, [], Choices())
    place = f"file:{folder}/metadata"
    journal.record(Step.WRITING, folder=place, existing=[], unique=UNIQUE)
    snapshot = catalog.load_table(name).current_snapshot().snapshot_id
    facts = {"uuid": entry.parameters["uuid"], "snapshot-id": snapshot, "rows": 1, "files": 1}
    location = {"metadata-location": entry.metadata_location}
    journal.record(Step.PREPARED, **location, **facts, partitions=0)
    journal.record(Step.SWAPPED)
    journal.record(Step.CLEANED)
    return journal


def elsewhere(partition: HivePartition, folder: Path) -> HivePartition:
    storage = replace(partition.storage, location=f"file:{folder}")
    return replace(partition, values=("9",), storage=storage, wire=None)


def refused(table: Any, private: Path, verb: Callable[..., Any], **options: Any) -> IcecombError:
    before = table.state
    with pytest.raises((MigrationError, CorruptFileError)) as caught:
        verb(table.catalog, table.name, **options)
    assert table.state == before
    assert (private / "id_rsa").read_text() == "secret"
    return caught.value


REVERT = {"dry_run": False, "allow_data_loss": True}


class TestNeverMigrated:
    """A Hive table, and a journal that says it was migrated."""

    def test_a_begun_revert_moves_no_files_of_others(self, two: Any, private: Path) -> None:
        entry, (one, _) = two.state
        journal = plant(two, entry, [one, elsewhere(one, private)])
        journal.record(Step.REVERTING, added=[f"file:{private}/id_rsa"], pointer=None)
        error = refused(two, private, migrate.revert, **REVERT)
        assert "id_rsa" in error.message or str(private) in error.message
        assert "--trust-journal" in (error.hint or "")
        assert journal.location in str(error)

    def test_a_begun_revert_moves_no_files_of_partitions_elsewhere(
        self, make_hive_table: Any, private: Path
    ) -> None:
        """Who may write to the table's folder need not be able to read theirs."""
        parts = {("1",): numbers(1)}
        table = make_hive_table({"id": "bigint"}, KEYS, parts, folders=[str(private)])
        journal = plant(table, *table.state)
        journal.record(Step.REVERTING, added=[f"file:{private}/part-0.parquet"], pointer=None)
        error = refused(table, private, migrate.revert, **REVERT)
        assert "--trust-journal" in (error.hint or "")
        assert (private / "part-0.parquet").exists()

    def test_an_overwritten_entry_gets_no_partitions_of_others(
        self, two: Any, private: Path
    ) -> None:
        entry, (one, _) = two.state
        journal = plant(two, entry, [one, elsewhere(one, private)])
        prepared(journal, two)
        journal.record(Step.SWAPPED)
        journal.note_grants([EVE])
        refused(two, private, migrate.revert, **REVERT)
        assert two.catalog.client.grants.of(*two.name.split(".")) == []

    def test_an_overwritten_entry_gets_no_privileges_that_nothing_confirms(self, two: Any) -> None:
        entry, partitions = two.state
        journal = plant(two, entry, partitions)
        prepared(journal, two)
        journal.record(Step.SWAPPED)
        journal.note_grants([EVE])
        said = migrate.revert(two.catalog, two.name).unconfirmed
        assert "privileges on partitions" in said
        migrate.revert(two.catalog, two.name, dry_run=False, allow_data_loss=True)
        assert two.state == (entry, partitions)
        assert two.catalog.client.grants.of(*two.name.split(".")) == []

    def test_the_remains_of_a_crashed_apply_are_removed_as_before(
        self, two: Any, private: Path
    ) -> None:
        entry, (one, _) = two.state
        plant(two, replace(entry, owner="eve"), [elsewhere(one, private)])
        metadata = two.folder / "metadata"
        metadata.mkdir()
        (metadata / f"00000-{UNIQUE}.metadata.json").write_text("{}")
        (metadata / "theirs.json").write_text("{}")
        assert migrate.revert(two.catalog, two.name, dry_run=False).done
        assert [one.name for one in metadata.iterdir()] == ["theirs.json"]
        assert two.entry == entry
        assert (private / "id_rsa").exists()

    @pytest.mark.parametrize("copied", [False, True], ids=["beside its files", "as a copy"])
    @pytest.mark.parametrize("keys", [{}, KEYS], ids=["whole", "partitioned"])
    def test_metadata_of_others_moves_no_files(
        self, make_hive_table: Any, private: Path, keys: dict[str, str], *, copied: bool
    ) -> None:
        """Its lists may name the rows of the Hive table as files that were added since."""
        parts = {("1",): numbers(1)} if keys else None
        table = make_hive_table({"id": "bigint"}, keys, parts, rows=None if keys else numbers(1))
        journal = plant(table, *table.state)
        prepared(journal, table, **{"metadata-location": f"file:{private}/1.metadata.json"})
        journal.record(Step.SWAPPED)
        if copied:
            as_copy(table, journal)
        error = refused(table, private, migrate.revert, **REVERT)
        assert f"{private}/1.metadata.json" in error.message
        assert table.files()

    @pytest.mark.parametrize("keys", [{}, KEYS], ids=["whole", "partitioned"])
    def test_files_that_were_added_to_it_are_moved_for_who_looked(
        self, make_hive_table: Any, private: Path, keys: dict[str, str]
    ) -> None:
        parts = {("1",): numbers(1)} if keys else None
        table = make_hive_table({"id": "bigint"}, keys, parts, rows=None if keys else numbers(1))
        folder = next(iter(table.files())).rpartition("/")[0]
        named = Path(folder) / f"00000-0-{UNIQUE}-0-00001.parquet"
        Path(next(iter(table.files()))).rename(named)
        journal = plant(table, *table.state)
        prepared(journal, table)
        journal.record(Step.SWAPPED)
        error = refused(table, private, migrate.revert, **REVERT)
        assert "--trust-journal" in (error.hint or "")
        assert str(named) in error.message
        assert named.exists()

    @pytest.mark.parametrize("copied", [False, True], ids=["beside its files", "as a copy"])
    def test_a_begun_revert_moves_no_files_that_nothing_confirms(
        self, make_hive_table: Any, private: Path, *, copied: bool
    ) -> None:
        table = make_hive_table({"id": "bigint"}, rows=numbers(1))
        journal = plant(table, *table.state)
        added = [f"file:{one}" for one in table.files()]
        journal.record(Step.REVERTING, added=added, pointer=None)
        if copied:
            as_copy(table, journal)
        error = refused(table, private, migrate.revert, **REVERT)
        assert "--trust-journal" in (error.hint or "")
        assert table.files()

    def test_an_overwritten_entry_keeps_files_in_a_folder_called_like_that_of_metadata(
        self, make_hive_table: Any
    ) -> None:
        table = make_hive_table({"id": "bigint"}, rows=numbers(1))
        rows = table.folder / "metadata" / "part-0.avro"
        rows.parent.mkdir()
        rows.write_bytes(b"rows")
        journal = plant(table, *table.state)
        prepared(journal, table)
        journal.record(Step.SWAPPED)
        migrate.revert(table.catalog, table.name, **REVERT)
        assert rows.read_bytes() == b"rows"

    def test_a_table_of_iceberg_has_no_journal(self, catalog: Any, tmp_path: Path) -> None:
        """Whoever may write beside its folder may write one there."""
        name = f"{MADE}.native"
        made = catalog.create_table(name, numbers(1).schema, location=f"file:{tmp_path}/native")
        made.append(numbers(1))
        entry = catalog.client.table(*name.split("."))
        for migrated in (False, True):
            if migrated:
                with catalog.load_table(name).transaction() as change:
                    change.set_properties({"migrated": "true"})
            planted = native_journal(catalog, name, tmp_path / "native")
            before = catalog.client.table(*name.split("."))
            for verb, options in (
                (migrate.apply, {}),
                (migrate.revert, REVERT),
                (migrate.finalize, {"unverified": True}),
            ):
                with pytest.raises(IcecombError) as caught:
                    verb(catalog, name, **options)
                if migrated:
                    assert "--trust-journal" in (caught.value.hint or "")
            assert catalog.client.table(*name.split(".")) == before
            assert planted.step(Step.REVERTING) is None
        catalog.drop_table(name)
        assert entry.is_iceberg

    def test_the_journal_of_a_folder_that_metadata_names_is_not_believed(
        self, make_hive_table: Any, private: Path
    ) -> None:
        table = make_hive_table({"id": "bigint"}, rows=numbers(1))
        other = make_hive_table({"id": "bigint"}, rows=numbers(2))
        old = table.entry
        migrate.apply(table.catalog, table.name)
        migrate.apply(other.catalog, other.name)
        table.forget_journal()
        for folder in (table.folder, other.folder):
            shutil.rmtree(folder / FOLDER)
            shutil.rmtree(folder.parent / "_icecomb_journals" / folder.name)
        pointer = Path((table.entry.metadata_location or "").removeprefix("file:"))
        pointer.write_text(
            json.dumps({**json.loads(pointer.read_text()), "location": f"file:{other.folder}"})
        )
        there = sorted((other.folder / "metadata").iterdir())
        journal = plant(other, replace(old, wire=None), [])
        snapshot = table.catalog.load_table(table.name).current_snapshot().snapshot_id
        place = f"file:{other.folder}/metadata/{pointer.name}"
        uuid = table.entry.parameters["uuid"]
        prepared(
            journal, other, **{"metadata-location": place, "uuid": uuid, "snapshot-id": snapshot}
        )
        journal.record(Step.SWAPPED)
        journal.record(Step.CLEANED)
        error = refused(table, private, migrate.revert, **REVERT)
        assert "--trust-journal" in (error.hint or "")
        assert table.entry.is_iceberg
        assert sorted((other.folder / "metadata").iterdir()) == there


def exchange(table: Any, name: str, change: Callable[[Any], Any]) -> None:
    """Change a file of both copies of a journal."""
    found = [*table.folder.rglob(name), *table.folder.parent.glob(f"_icecomb_journals/*/*/{name}")]
    assert len(found) == 2
    for each in found:
        each.write_text(json.dumps(change(json.loads(each.read_text()))))


def forged(change: Callable[[HiveTable], HiveTable], table: Any) -> Callable[[Any], Any]:
    old = replace(table.entry, wire=None)
    return lambda body: {**body, "table": table_to_json(change(old))}


class TestMigrated:
    """An Iceberg table that a migration made, and its journal changed by somebody since."""

    @pytest.mark.parametrize(
        "change",
        [
            lambda old: replace(old, owner="eve"),
            lambda old: replace(old, storage=replace(old.storage, location="file:/home/admin")),
            lambda old: replace(old, parameters={**old.parameters, "storage_handler": "eve.Code"}),
            lambda old: replace(old, storage=replace(old.storage, columns=())),
        ],
        ids=["owner", "location", "parameters", "columns"],
    )
    def test_an_exchanged_entry_is_not_restored(
        self, two: Any, private: Path, change: Callable[[HiveTable], HiveTable]
    ) -> None:
        changed = forged(change, two)
        migrate.apply(two.catalog, two.name)
        exchange(two, "journal.json", changed)
        (journal,) = find_journals(FileIO(), f"file:{two.folder}")

        def with_digest(told: Any) -> Any:
            return {**told, "files": {**told["files"], "journal.json": journal.body}}

        for also in (None, with_digest):
            if also is not None:
                exchange(two, "digests.json", also)
            for verb, options in (
                (migrate.revert, REVERT),
                (migrate.finalize, {"unverified": True}),
            ):
                error = refused(two, private, verb, **options)
                assert "is not the journal" in error.message
                assert "--trust-journal" in (error.hint or "")
            assert migrate.status(two.catalog, two.name)["outcome"] == "blocked"

    @pytest.mark.parametrize(
        "name", ["partitions-00000.json", "files-00000.parquet", "step-prepared.json"]
    )
    def test_an_exchanged_page_is_not_believed(self, two: Any, private: Path, name: str) -> None:
        _, (one, _) = two.state
        page = {"partitions": [partition_to_json(elsewhere(one, private))]}
        migrate.apply(two.catalog, two.name)
        for each in (two.folder, two.folder.parent / "_icecomb_journals"):
            for file in each.rglob(name):
                if name.endswith("parquet"):
                    file.write_bytes(file.read_bytes() + b" ")
                else:
                    file.write_text(json.dumps({**json.loads(file.read_text()), **page}))
        for verb, options in ((migrate.revert, REVERT), (migrate.finalize, {"unverified": True})):
            error = refused(two, private, verb, **options)
            assert name in error.message

    @pytest.mark.parametrize("change", ["gone", "forged", "more"])
    def test_partitions_that_hive_did_not_drop_are_restored_whatever_the_journal_lists(
        self, two: Any, private: Path, change: str
    ) -> None:
        before = two.state
        migrate.apply(two.catalog, two.name)
        (journal,) = find_journals(FileIO(), f"file:{two.folder}")
        if change == "more":
            journal.note_taken([elsewhere(before[1][0], private)])
        for each in (two.folder, two.folder.parent / "_icecomb_journals"):
            for file in each.rglob("taken-*.json"):
                if change == "gone":
                    file.unlink()
                elif change == "forged":
                    file.write_text(json.dumps({"values": []}))
        if change != "more":
            error = refused(two, private, migrate.revert, **REVERT)
            assert "taken-00000.json" in error.message
            return
        migrate.revert(two.catalog, two.name, dry_run=False)
        assert two.state == before

    def test_a_step_that_says_finalized_is_not_believed(self, two: Any, private: Path) -> None:
        migrate.apply(two.catalog, two.name)
        migrate.verify(two.catalog, two.name)
        (journal,) = find_journals(FileIO(), f"file:{two.folder}")
        journal.record(Step.FINALIZED)
        said = migrate.status(two.catalog, two.name)
        assert said["outcome"] == "verified"
        assert "its entry does not" in said["state"]
        assert "finalized" not in said["steps"]
        # nor undone: what a true one gave up may be gone
        assert "no way back" in refused(two, private, migrate.revert, **REVERT).message
        migrate.finalize(two.catalog, two.name)
        assert migrate.status(two.catalog, two.name)["outcome"] == "finalized"

    def test_a_second_journal_is_none_beside_the_true_one(self, two: Any, private: Path) -> None:
        before = two.state
        migrate.apply(two.catalog, two.name)
        _, (one, *_) = before
        journal = plant(two, replace(before[0], owner="eve"), [elsewhere(one, private)])
        prepared(journal, two)
        journal.record(Step.SWAPPED)
        journal.record(Step.CLEANED)
        assert not migrate.revert(two.catalog, two.name).loses_data
        assert migrate.revert(two.catalog, two.name, dry_run=False).done
        assert two.state == before

    def test_privileges_that_somebody_adds_to_a_journal_are_not_granted(self, two: Any) -> None:
        before = two.state
        migrate.apply(two.catalog, two.name)
        (journal,) = find_journals(FileIO(), f"file:{two.folder}")
        journal.note_grants([EVE])
        migrate.revert(two.catalog, two.name, dry_run=False)
        assert two.state == before
        assert two.catalog.client.grants.of(*two.name.split(".")) == []

    def test_pages_and_attempts_that_somebody_adds_do_not_count(
        self, two: Any, private: Path
    ) -> None:
        before = two.state
        migrate.apply(two.catalog, two.name)
        (journal,) = find_journals(FileIO(), f"file:{two.folder}")
        journal.record(Step.WRITING, folder=f"file:{private}", existing=[], unique=UNIQUE)
        journal.create("files-00001.parquet", b"none")
        migrate.revert(two.catalog, two.name, dry_run=False)
        assert two.state == before

    def test_a_revert_that_was_killed_right_after_the_conversion_back_is_vouched_for(
        self, two: Any, private: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before = two.state
        changed = forged(lambda old: replace(old, owner="eve"), two)
        migrate.apply(two.catalog, two.name)

        def killed(*_: Any) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(TableEntry, "tidy", killed)
            with pytest.raises(KeyboardInterrupt):
                migrate.revert(two.catalog, two.name, dry_run=False)
        files = {path: path.read_bytes() for path in two.folder.parent.rglob("journal.json")}
        exchange(two, "journal.json", changed)
        refused(two, private, migrate.revert, **REVERT)
        for path, data in files.items():
            path.write_bytes(data)
        assert migrate.revert(two.catalog, two.name, dry_run=False).done
        assert two.state == before

    @pytest.mark.parametrize("far", [False, True], ids=["own folders", "elsewhere"])
    def test_no_metadata_says_that_files_of_hive_were_added_since(
        self, make_hive_table: Any, tmp_path: Path, *, far: bool
    ) -> None:
        folders = [str(tmp_path / "far" / "1")] if far else None
        table = make_hive_table({"id": "bigint"}, KEYS, {("1",): numbers(1)}, folders=folders)
        before, (one,) = table.state, table.partitions
        (place,) = Path((one.storage.location or "").removeprefix("file:")).iterdir()
        migrate.apply(table.catalog, table.name)
        table.catalog.load_table(table.name).append(
            pa.table({"id": [2], "k": pa.array([1], pa.int32())})
        )
        pointer = Path((table.entry.metadata_location or "").removeprefix("file:"))
        body = json.loads(pointer.read_text())
        first = next(each for each in body["snapshots"] if "parent-snapshot-id" not in each)
        del first["manifest-list"]
        first["manifests"] = []
        pointer.write_text(json.dumps(body))
        assert migrate.revert(table.catalog, table.name, **REVERT).done
        assert place.exists()
        assert table.state == before

    def test_metadata_does_not_set_what_vouches(self, two: Any) -> None:
        migrate.apply(two.catalog, two.name)
        digest = two.entry.parameters[MIGRATION_DIGEST]
        path = Path((two.entry.metadata_location or "").removeprefix("file:"))
        body = json.loads(path.read_text())
        body["properties"][MIGRATION_DIGEST] = "theirs"
        path.write_text(json.dumps(body))
        with two.catalog.load_table(two.name).transaction() as change:
            change.set_properties({"mine": "x"})
        with two.catalog.load_table(two.name).transaction() as change:
            change.remove_properties(MIGRATION_DIGEST)
        assert two.entry.parameters[MIGRATION_DIGEST] == digest
        assert not migrate.revert(two.catalog, two.name).unconfirmed

    @pytest.mark.parametrize("step", [Step.VERIFIED, Step.FINALIZED])
    def test_only_what_the_entry_shows_counts_as_verified(self, two: Any, step: Step) -> None:
        migrate.apply(two.catalog, two.name)
        (journal,) = find_journals(FileIO(), f"file:{two.folder}")
        journal.record(step, rows=2, files=2)
        assert migrate.status(two.catalog, two.name)["outcome"] != "verified"
        with pytest.raises(UnverifiedError):
            migrate.finalize(two.catalog, two.name)
        assert not GC_ENABLED.of(two.catalog.load_table(two.name).properties)
        assert migrate.verify(two.catalog, two.name).difference_count == 0
        after = two.entry
        assert migrate.verify(two.catalog, two.name).difference_count == 0
        assert two.entry == after
        two.catalog.load_table(two.name).append(
            pa.table({"id": [7], "k": pa.array([1], pa.int32())})
        )
        migrate.finalize(two.catalog, two.name)
        assert GC_ENABLED.of(two.catalog.load_table(two.name).properties)

    def test_a_file_in_the_way_is_no_reason_to_delete_one(self, two: Any) -> None:
        migrate.apply(two.catalog, two.name)
        pointer = Path((two.entry.metadata_location or "").removeprefix("file:"))
        (journal,) = find_journals(FileIO(), f"file:{two.folder}")
        aside = Path(journal.location.removeprefix("file:")) / "metadata"
        aside.mkdir()
        (aside / pointer.name).write_bytes(bytes(pointer.stat().st_size))
        with pytest.raises(IcecombError):
            migrate.revert(two.catalog, two.name, dry_run=False)
        assert pointer.exists()
        (aside / pointer.name).unlink()
        (aside / pointer.name).symlink_to(pointer)
        with pytest.raises(IcecombError):
            migrate.revert(two.catalog, two.name, dry_run=False)
        assert pointer.exists()
        (aside / pointer.name).unlink()
        assert migrate.revert(two.catalog, two.name, dry_run=False).done
        assert (aside / pointer.name).exists()


class TestOlderVersions:
    """Migrations whose entry confirms nothing, because the version was older or somebody made the table anew."""

    def test_what_the_metastore_shows_is_compared(self, two: Any) -> None:
        before = two.state
        migrate.apply(two.catalog, two.name)
        two.forget_journal()
        assert migrate.apply(two.catalog, two.name).already
        assert migrate.verify(two.catalog, two.name).difference_count == 0
        migrate.finalize(two.catalog, two.name, dry_run=True)
        found = migrate.revert(two.catalog, two.name)
        assert "columns" in found.unconfirmed
        assert found.to_json()["unconfirmed"] == found.unconfirmed
        assert migrate.revert(two.catalog, two.name, dry_run=False).done
        assert two.state == before

    def test_a_revert_that_was_killed_goes_on_where_only_parameters_differ(
        self, two: Any, private: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before = two.state
        columns = forged(lambda old: replace(old, storage=replace(old.storage, columns=())), two)
        true = forged(lambda old: old, two)
        migrate.apply(two.catalog, two.name)
        two.forget_journal()

        def killed(*_: Any) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(TableEntry, "tidy", killed)
            with pytest.raises(KeyboardInterrupt):
                migrate.revert(two.catalog, two.name, dry_run=False)
        exchange(two, "journal.json", columns)
        assert "columns" in refused(two, private, migrate.revert, **REVERT).message
        exchange(two, "journal.json", true)
        assert migrate.revert(two.catalog, two.name, dry_run=False).done
        assert two.state == before

    @pytest.mark.parametrize(
        ("change", "said"),
        [
            (lambda old: replace(old, owner="eve"), "eve"),
            (
                lambda old: replace(old, storage=replace(old.storage, location="file:/home/admin")),
                "/home/admin",
            ),
            (
                lambda old: replace(
                    old, parameters={**old.parameters, "storage_handler": "eve.Code"}
                ),
                "eve.Code",
            ),
        ],
    )
    def test_another_owner_location_or_class_is_refused(
        self, two: Any, private: Path, change: Callable[[HiveTable], HiveTable], said: str
    ) -> None:
        changed = forged(change, two)
        migrate.apply(two.catalog, two.name)
        two.forget_journal()
        exchange(two, "journal.json", changed)
        for verb, options in ((migrate.revert, REVERT), (migrate.finalize, {"unverified": True})):
            error = refused(two, private, verb, **options)
            assert said in error.message
            assert "--trust-journal" in (error.hint or "")

    def test_partitions_elsewhere_are_for_the_administrator_to_look_at(
        self, make_hive_table: Any, tmp_path: Path, run: Any
    ) -> None:
        folders = [str(tmp_path / "other" / k) for k in "ab"]
        parts = {("1",): numbers(1), ("2",): numbers(2)}
        table = make_hive_table({"id": "bigint"}, KEYS, parts, folders=folders)
        before = table.state
        migrate.apply(table.catalog, table.name)
        table.forget_journal()
        for verb, options in (
            (migrate.revert, REVERT),
            (migrate.finalize, {"unverified": True}),
            (migrate.apply, {}),
        ):
            with pytest.raises(MigrationError, match="2 partitions") as caught:
                verb(table.catalog, table.name, **options)
            assert "--trust-journal" in (caught.value.hint or "")
        code, _, said = run("revert", table.name, "--yes")
        assert code == 1
        assert "--trust-journal" in said
        assert migrate.apply(table.catalog, table.name, trust_journal=True).already
        code, _, said = run("revert", table.name, "--yes", "--trust-journal")
        assert code == 0, said
        assert table.state == before

    def test_finalize_keeps_folders_as_the_tables_own_that_are_confirmed(
        self, make_hive_table: Any, tmp_path: Path
    ) -> None:
        folders = [str(tmp_path / "far" / k) for k in "a"]
        table = make_hive_table({"id": "bigint"}, KEYS, {("1",): numbers(1)}, folders=folders)
        migrate.apply(table.catalog, table.name)
        migrate.finalize(table.catalog, table.name, unverified=True)
        kept = FORMER_FOLDERS.of(table.catalog.load_table(table.name).metadata.properties)
        assert kept == (f"file:{folders[0]}",)

    def test_privileges_are_granted_again_to_who_looked(self, two: Any) -> None:
        name = two.name.split(".")
        two.catalog.client.grants.add(*name, [EVE])
        there = two.catalog.client.grants.of(*name)
        assert there
        for trust in (False, True):
            migrate.apply(two.catalog, two.name)
            two.forget_journal()
            migrate.revert(two.catalog, two.name, dry_run=False, trust_journal=trust)
            assert two.catalog.client.grants.of(*name) == (there if trust else [])
            if not trust:
                two.catalog.client.grants.add(*name, [EVE])


def test_more_values_than_any_journal_has_are_not_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    io = FileIO()
    start_journal(io, f"{tmp_path}/t", HiveTable("db", "t"), [], Choices())
    monkeypatch.setenv("ICECOMB_MAX_JSON_VALUES", "3")
    with pytest.raises(CorruptFileError, match="more values than the limit"):
        find_journals(io, f"{tmp_path}/t")


def test_what_was_compared_is_not_exchanged_afterwards(tmp_path: Path) -> None:
    io = FileIO()
    start_journal(
        io, f"{tmp_path}/t", HiveTable("db", "t"), [HivePartition("db", "t", ("1",))], Choices()
    )
    (found,) = find_journals(io, f"{tmp_path}/t")
    assert [one.values for one in found.partitions()] == [("1",)]
    page = Path(found.location) / "partitions-00000.json"
    page.write_text(page.read_text().replace("1", "2"))
    with pytest.raises(CorruptFileError, match="is not what it was"):
        list(found.partitions())
    page.unlink()
    with pytest.raises(CorruptFileError, match="is gone"):
        list(found.partitions())


def test_a_digest_confirms_one_journal_in_its_folder(tmp_path: Path) -> None:
    journal = start_journal(
        FileIO(),
        f"{tmp_path}/t",
        HiveTable("db", "t", storage=StorageDescriptor(location=f"{tmp_path}/t")),
        [HivePartition("db", "t", ("1",))],
        Choices(),
    )
    digest = journal.seal()
    (found,) = find_journals(FileIO(), f"{tmp_path}/t")
    assert not found.digests
    assert found.confirmed("0" * 64) is None
    confirmed = found.confirmed(digest)
    assert confirmed is not None
    assert [one.values for one in confirmed.partitions()] == [("1",)]
    other = Path(journal.location).with_name("29991231T000000.000000Z-00000000")
    Path(journal.location).rename(other)
    *_, moved = find_journals(FileIO(), f"{tmp_path}/t")
    assert moved.confirmed(digest) is None
    assert FOLDER in moved.location


@pytest.mark.full("a second Spark commits, too")
def test_what_iceberg_java_and_statements_do_to_an_entry_keeps_what_vouches(
    two: Any, iceberg_java: Any
) -> None:
    before = two.state
    migrate.apply(two.catalog, two.name)
    digest = two.entry.parameters[MIGRATION_DIGEST]
    for catalog in ("ice", "spark_catalog"):
        iceberg_java.sql(f"INSERT INTO {catalog}.{two.name} (id, k) VALUES (7, 7)")
        iceberg_java.sql(f"ALTER TABLE {catalog}.{two.name} SET TBLPROPERTIES ('mine' = 'x')")
        iceberg_java.sql(f"ALTER TABLE {catalog}.{two.name} UNSET TBLPROPERTIES ('mine')")
        iceberg_java.sql(f"ALTER TABLE {catalog}.{two.name} ADD COLUMNS ({catalog} string)")
        assert two.entry.parameters[MIGRATION_DIGEST] == digest
    iceberg_java.sql(f"REPLACE TABLE ice.{two.name} USING iceberg AS SELECT 1 AS other")
    assert two.entry.parameters.get(MIGRATION_DIGEST) == digest
    migrate.revert(two.catalog, two.name, dry_run=False, allow_data_loss=True)
    assert two.state == before
