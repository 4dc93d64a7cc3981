"""The journal's files: each is written once, whatever repeats the requests or writes at the same time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from icecomb.catalog.hive.thrift.entity import HivePartition, HiveTable, StorageDescriptor
from icecomb.catalog.migrate.choices import Choices
from icecomb.catalog.migrate.journal.journal import Journal, Step, find_journals, start_journal
from icecomb.format.errors import CorruptFileError, MigrationError
from icecomb.format.storage.file_io import FileIO

TABLE = HiveTable("db", "t")


class RepeatingStorage(FileIO):
    """Does what it is asked for, and says that it was done before: a proxy had sent it twice."""

    def create(self, location: str, data: bytes) -> None:
        super().create(location, data)
        super().create(location, data)


def partitions(*values: str) -> list[HivePartition]:
    return [HivePartition("db", "t", (value,)) for value in values]


def begin(io: FileIO, folder: Path) -> Journal:
    return start_journal(io, str(folder), TABLE, partitions("1", "2"), Choices())


def test_a_file_that_is_there_already_with_our_bytes_is_ours(tmp_path: Path) -> None:
    journal = begin(RepeatingStorage(), tmp_path)
    journal.record(Step.SWAPPING)
    journal.note_taken(partitions("1"))
    (found,) = find_journals(FileIO(), str(tmp_path))
    assert [one.values for one in found.partitions()] == [("1",), ("2",)]
    assert set(found.steps()) == {Step.SWAPPING}
    assert list(found.taken()) == [("1",)]
    assert len(list(Path(journal.location).glob("step-*"))) == 1


def test_who_records_a_step_at_the_same_time_takes_the_next_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = begin(FileIO(), tmp_path)
    exists = FileIO.exists

    def late(self: FileIO, location: str) -> bool:
        found = exists(self, location)
        monkeypatch.undo()
        journal.record(Step.REVERTING, pointer="theirs")
        return found

    monkeypatch.setattr(FileIO, "exists", late)
    journal.record(Step.REVERTING, pointer="ours")
    found = [journal.step(Step.REVERTING, attempt) for attempt in (0, 1)]
    assert [one and one["pointer"] for one in found] == ["theirs", "ours"]


def test_what_was_taken_away_is_told_of_all_runs(tmp_path: Path) -> None:
    io = FileIO()
    journal = begin(io, tmp_path)
    assert list(journal.taken()) == []
    journal.note_taken(partitions("1", "2"))
    (again,) = find_journals(io, str(tmp_path))
    again.note_taken(partitions("ü=/%"))
    assert list(journal.taken()) == [("1",), ("2",), ("ü=/%",)]


def test_journals_of_older_versions_say_that_they_do_not_tell_it(tmp_path: Path) -> None:
    journal = begin(FileIO(), tmp_path)
    assert journal.tells_taken
    file = Path(journal.location) / "journal.json"
    body: dict[str, Any] = json.loads(file.read_text())
    file.write_text(json.dumps({**body, "version": 1}))
    (old,) = find_journals(FileIO(), str(tmp_path))
    assert not old.tells_taken
    file.write_text(json.dumps({**body, "version": 3}))
    with pytest.raises(MigrationError, match="another version of icecomb"):
        find_journals(FileIO(), str(tmp_path))


def planted(folder: Path, step: str, facts: dict[str, Any]) -> Journal:
    """A journal that somebody else wrote a step of."""
    journal = begin(FileIO(), folder)
    (Path(journal.location) / f"step-{step}.json").write_text(json.dumps({"at-ms": 1, **facts}))
    (found,) = find_journals(FileIO(), str(folder))
    return found


UNIQUE = "0a1b2c3d-0000-4000-8000-000000000000"


@pytest.mark.parametrize(
    "facts",
    [
        {"folder": "{other}", "existing": [], "unique": UNIQUE},
        {"folder": "{table}/metadata/../../other", "existing": [], "unique": UNIQUE},
        {"folder": "{table}", "existing": [], "unique": UNIQUE},
        {"folder": "{table}/metadata", "existing": [], "unique": "x|.*|x"},
        {"folder": "{table}/metadata", "existing": "none", "unique": UNIQUE},
        {"existing": [], "unique": UNIQUE},
    ],
)
def test_a_journal_names_metadata_of_its_own_table_only(
    tmp_path: Path, facts: dict[str, Any]
) -> None:
    table, other = tmp_path / "table", tmp_path / "other"
    text = json.dumps(facts).replace("{other}", str(other)).replace("{table}", str(table))
    for folder in (other, table / "metadata"):
        folder.mkdir(parents=True)
        (folder / f"00000-{UNIQUE}.metadata.json").write_text("theirs")
    journal = planted(table, "writing", json.loads(text))
    with pytest.raises(CorruptFileError, match="nothing was touched"):
        journal.metadata_files()
    assert other.is_dir()
    own = planted(
        other, "writing", {"folder": f"file:{other}/metadata", "existing": [], "unique": UNIQUE}
    )
    assert own.metadata_files() == []


def test_a_revert_takes_files_out_of_folders_of_the_table_only(tmp_path: Path) -> None:
    table, elsewhere = tmp_path / "table", tmp_path / "elsewhere"
    inside = [f"{table}/data/a.parquet", f"file:{elsewhere}/k=1/b.parquet"]
    for added in ([*inside, f"{tmp_path}/private"], [f"{table}/../private"], "private"):
        begun = start_journal(
            FileIO(),
            str(table),
            TABLE,
            [HivePartition("db", "t", ("1",), storage=StorageDescriptor(location=str(elsewhere)))],
            Choices(),
        )
        file = Path(begun.location) / "step-reverting.json"
        file.write_text(json.dumps({"at-ms": 1, "added": added, "pointer": None}))
        *_, journal = find_journals(FileIO(), str(table))
        with pytest.raises(CorruptFileError, match="nothing was touched"):
            journal.added_files(partitions=True)
        file.write_text(json.dumps({"at-ms": 1, "added": inside, "pointer": None}))
        assert journal.added_files(partitions=True) == inside
        with pytest.raises(CorruptFileError, match="nothing was touched"):
            journal.added_files(partitions=False)


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("swapping", {}),
        ("returned", {"at-ms": "x"}),
        ("verified", {"at-ms": 10**30}),
        ("unanswered", {"at-ms": True}),
        ("writing", {"at-ms": 1, "existing": []}),
        ("prepared", {"at-ms": 1, "uuid": UNIQUE}),
        ("prepared", {"at-ms": 1, "uuid": UNIQUE, "metadata-location": "x", "rows": "many"}),
        ("adding", {"at-ms": 1}),
        ("adding", {"at-ms": 1, "files": ["x"], "stated": [["a"]]}),
        ("adding", {"at-ms": 1, "files": ["x"], "stated": [["a", "x", {}, []]]}),
        ("reverting", {"at-ms": 1, "changed": [1]}),
    ],
)
def test_facts_that_icecomb_does_not_write_are_not_believed(
    tmp_path: Path, name: str, facts: dict[str, Any]
) -> None:
    begun = begin(FileIO(), tmp_path)
    (Path(begun.location) / f"step-{name}.json").write_text(json.dumps(facts))
    (journal,) = find_journals(FileIO(), str(tmp_path))
    with pytest.raises(CorruptFileError, match="is not what icecomb writes"):
        journal.step(Step(name))


def test_values_that_icecomb_does_not_write_are_not_believed(tmp_path: Path) -> None:
    journal = begin(FileIO(), tmp_path)
    (Path(journal.location) / "taken-00000.json").write_text(json.dumps({"values": ["1", {}]}))
    with pytest.raises(CorruptFileError, match="not a journal of icecomb"):
        list(journal.taken())


def test_a_folder_that_no_journal_is_named_as_is_none(tmp_path: Path) -> None:
    journal = begin(FileIO(), tmp_path)
    for each in (journal.location, journal.copy):
        Path(each).rename(Path(each).with_name("x"))
    assert find_journals(FileIO(), str(tmp_path)) == []
