"""Two entries of the metastore with one folder: what is done with one does nothing to the other."""

from __future__ import annotations

import itertools
import json
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from icecomb.catalog import migrate
from icecomb.catalog.migrate.applying import migration as applying
from icecomb.catalog.migrate.choices import Choices
from icecomb.catalog.migrate.journal.context import MigrationContext
from icecomb.catalog.migrate.journal.entry import TableEntry
from icecomb.catalog.migrate.journal.journal import find_journals, start_journal
from icecomb.catalog.migrate.reverting import reversal as reverting
from icecomb.format.errors import CommitFailedError, LockTimeoutError, MigrationError
from icecomb.format.spec import metadata_file
from tests.catalog.numbered_rows import numbers

_PREFIXES = itertools.count()
SHARED = "has the folder of"


apply = partial(migrate.apply, choices=Choices(accept=("same-folder",)))


@dataclass
class Pair:
    """A Hive table of the rows 1 and 2, and another entry with its folder."""

    first: Any
    twin: str
    prefix: str

    @property
    def catalog(self) -> Any:
        return self.first.catalog

    @property
    def twin_entry(self) -> Any:
        return self.catalog.client.table(*self.twin.split("."))

    def ids(self, name: str) -> list[int]:
        return sorted(self.catalog.load_table(name).scan().to_arrow()["id"].to_pylist())

    def files(self) -> set[str]:
        return {str(path) for path in self.first.folder.rglob("*") if path.is_file()}

    def drop(self, name: str) -> None:
        self.catalog.client.drop_table(*name.split("."))

    def apply(self, name: str) -> Any:
        return apply(self.catalog, name)

    def refused(self, verb: Any, name: str, **options: Any) -> None:
        """It is refused because of the folder, and nothing is changed, not even a journal."""
        before = self.files(), self.catalog.client.table(*name.split("."))
        with pytest.raises(MigrationError, match=SHARED):
            verb(self.catalog, name, **options)
        assert (self.files(), self.catalog.client.table(*name.split("."))) == before


@pytest.fixture(
    params=[
        pytest.param({}, id="plain", marks=pytest.mark.full("a table without partitions, too")),
        pytest.param({"k": "int"}, id="partitioned"),
    ]
)
def pair(request: pytest.FixtureRequest, make_hive_table: Any) -> Iterator[Pair]:
    prefix = f"pair{next(_PREFIXES)}_"
    keys = request.param
    content = {"partitions": {("1",): numbers(1, 2)}} if keys else {"rows": numbers(1, 2)}
    first = make_hive_table({"id": "bigint"}, keys, prefix=prefix, **content)
    twin = replace(first.entry, name=f"{prefix}twin", table_type="EXTERNAL_TABLE", wire=None)
    client = first.catalog.client
    client.create_table(twin)
    client.partitions.add([replace(one, table=twin.name, wire=None) for one in first.partitions])
    yield Pair(first, twin.full_name, prefix)
    for name in client.table_names("made"):
        if name.startswith(prefix):
            client.drop_table("made", name)


@pytest.fixture
def run(icecomb: Any) -> Any:
    """Runs `icecomb --output json migrate ...`: exit code and outcomes by table."""

    def run(*arguments: str) -> tuple[int, dict[str, str]]:
        code, out, _ = icecomb("migrate", *arguments, form="json")
        return code, {one["table"]: one["outcome"] for one in json.loads(out)["tables"]}

    return run


def append(pair: Pair, name: str, value: int) -> None:
    table = pair.catalog.load_table(name)
    extra = {"k": pa.array([1], pa.int32())} if len(table.schema().fields) > 1 else {}
    table.append(pa.table({"id": pa.array([value], pa.int64()), **extra}))


def test_no_step_takes_the_other_tables_migration_for_its_own(pair: Pair) -> None:
    before = pair.first.state
    pair.apply(pair.first.name)
    append(pair, pair.first.name, 3)
    pair.refused(apply, pair.twin)
    for options in ({"dry_run": True}, {"dry_run": False, "allow_data_loss": True}):
        pair.refused(migrate.revert, pair.twin, **options)
    pair.refused(migrate.verify, pair.twin)
    pair.refused(migrate.finalize, pair.twin)
    state = migrate.status(pair.catalog, pair.twin)["state"]
    assert state == f"never migrated by icecomb, unlike {pair.first.name}, which has its folder"
    assert pair.ids(pair.first.name) == [1, 2, 3]
    assert migrate.status(pair.catalog, pair.first.name)["state"] == "migrated, not verified"
    migrate.revert(pair.catalog, pair.first.name, dry_run=False, allow_data_loss=True)
    assert pair.first.state == before
    # Now it is the other one's turn.
    assert pair.apply(pair.twin).rows == 2
    assert migrate.status(pair.catalog, pair.first.name)["state"] == "reverted"
    pair.refused(apply, pair.first.name)


def test_patterns_mean_the_migrated_one_only(pair: Pair, run: Any) -> None:
    pair.apply(pair.first.name)
    append(pair, pair.first.name, 3)
    pattern, twin = f"made.{pair.prefix}*", pair.twin_entry
    assert run("revert", pattern, "--yes") == (3, {pair.first.name: "blocked"})
    assert run("verify", pattern) == (0, {pair.first.name: "done"})
    assert run("finalize", pattern) == (0, {pair.first.name: "done"})
    assert run("status", pattern)[0] == 0
    assert run("apply", pattern) == (1, {pair.first.name: "done", pair.twin: "failed"})
    assert pair.ids(pair.first.name) == [1, 2, 3]
    assert pair.twin_entry == twin
    assert run("finalize", pattern, "--yes", "--unverified") == (0, {pair.first.name: "done"})
    pair.refused(apply, pair.twin)
    pair.refused(migrate.revert, pair.twin, dry_run=False)


def test_a_renamed_table_keeps_its_migration_and_goes_back_under_its_new_name(pair: Pair) -> None:
    before, partitions = pair.first.state
    pair.apply(pair.first.name)
    new = f"{pair.first.name}_new"
    pair.catalog.rename_table(pair.first.name, new)
    assert pair.apply(new).already
    assert migrate.verify(pair.catalog, new).difference_count == 0
    assert migrate.status(pair.catalog, new)["state"] == "verified"
    migrate.finalize(pair.catalog, new, dry_run=True)
    pair.refused(apply, pair.twin)
    pair.refused(migrate.revert, pair.twin, dry_run=False)
    # Its old name may be another table's by now.
    client = pair.catalog.client
    client.create_table(replace(pair.twin_entry, name=before.name, wire=None))
    pair.refused(migrate.revert, pair.first.name, dry_run=False)
    pair.refused(apply, pair.first.name)
    assert pair.ids(new) == [1, 2]
    assert migrate.revert(pair.catalog, new, dry_run=False).partitions == len(partitions)
    database, name = new.split(".")
    assert client.table(database, name) == replace(before, name=name)
    found = [one for page in client.partitions.pages(database, name) for one in page]
    assert found == [replace(one, table=name) for one in partitions]
    assert not (pair.first.folder / "metadata").exists()


def test_a_registered_copy_is_not_the_migrated_table(pair: Pair, run: Any) -> None:
    pair.apply(pair.first.name)
    copy = f"{pair.first.name}_copy"
    pointer = pair.first.entry.metadata_location
    pair.catalog.register_table(copy, pointer)
    pair.refused(migrate.revert, copy, dry_run=False)
    pair.refused(migrate.finalize, copy)
    pair.refused(migrate.verify, copy)
    pair.refused(apply, copy)
    assert pair.ids(pair.first.name) == pair.ids(copy) == [1, 2]
    pair.drop(copy)
    migrate.revert(pair.catalog, pair.first.name, dry_run=False)
    assert not pair.first.entry.is_iceberg


def test_a_journal_that_a_crash_left_of_one_is_not_in_the_way_of_the_other(pair: Pair) -> None:
    before = pair.first.state
    pair.apply(pair.first.name)
    io, entry = pair.catalog.io, pair.twin_entry
    start_journal(io, entry.storage.location, entry, [], Choices())
    pair.refused(apply, pair.twin)
    assert migrate.status(pair.catalog, pair.first.name)["state"] == "migrated, not verified"
    assert migrate.verify(pair.catalog, pair.first.name).difference_count == 0
    migrate.finalize(pair.catalog, pair.first.name, dry_run=True)
    metadata = {path for path in pair.files() if "/metadata/" in path}
    migrate.revert(pair.catalog, pair.twin, dry_run=False)
    assert {path for path in pair.files() if "/metadata/" in path} == metadata
    assert [one.reverted for one in find_journals(io, entry.storage.location)] == [False, True]
    migrate.revert(pair.catalog, pair.first.name, dry_run=False)
    assert pair.first.state == before


def test_a_folder_whose_migrated_table_was_dropped_is_free(pair: Pair) -> None:
    pair.apply(pair.first.name)
    pair.drop(pair.first.name)
    migrate.revert(pair.catalog, pair.twin, dry_run=False)
    assert not (pair.first.folder / "metadata").exists()
    assert pair.apply(pair.twin).rows == 2
    assert pair.ids(pair.twin) == [1, 2]


def of_twin_only(pair: Pair) -> None:
    """One of them is the Iceberg table of the folder, and is not touched by what else was begun."""
    assert not pair.first.entry.is_iceberg
    assert pair.ids(pair.twin) == [1, 2]
    assert migrate.verify(pair.catalog, pair.twin).difference_count == 0
    journals = find_journals(pair.catalog.io, pair.twin_entry.storage.location)
    assert [one.table.full_name for one in journals if not one.reverted] == [pair.twin]
    append(pair, pair.twin, 3)
    assert pair.ids(pair.twin) == [1, 2, 3]


def test_an_apply_that_planned_while_another_one_ran_is_refused(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    def late(*arguments: Any) -> Any:
        monkeypatch.setattr(applying, "start_journal", start_journal)
        pair.apply(pair.twin)
        return start_journal(*arguments)

    monkeypatch.setattr(applying, "start_journal", late)
    with pytest.raises(MigrationError, match=SHARED):
        pair.apply(pair.first.name)
    of_twin_only(pair)


def test_an_apply_that_begins_beside_another_ones_journal_is_refused(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    def early(*arguments: Any) -> Any:
        monkeypatch.setattr(applying, "start_journal", start_journal)
        journal = start_journal(*arguments)
        pair.refused(apply, pair.first.name)
        pair.refused(migrate.revert, pair.first.name, dry_run=False)
        pair.refused(migrate.verify, pair.first.name)
        pair.refused(migrate.finalize, pair.first.name)
        return journal

    monkeypatch.setattr(applying, "start_journal", early)
    pair.apply(pair.twin)
    of_twin_only(pair)


def test_of_two_that_see_each_other_neither_writes_and_either_may_begin_again(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, twin = pair.first.state, pair.twin_entry
    both = threading.Barrier(2, timeout=60)

    def at_once(*arguments: Any) -> Any:
        both.wait()
        journal = start_journal(*arguments)
        both.wait()
        return journal

    def apply(name: str) -> str:
        with pytest.raises(MigrationError, match=SHARED) as caught:
            pair.apply(name)
        return caught.value.hint or ""

    seen = threading.Barrier(2, timeout=60)
    record = applying.Journal.record

    def seen_by_both(journal: Any, *arguments: Any, **facts: Any) -> None:
        seen.wait()
        record(journal, *arguments, **facts)

    with monkeypatch.context() as patch, ThreadPoolExecutor(2) as threads:
        patch.setattr(applying, "start_journal", at_once)
        patch.setattr(applying.Journal, "record", seen_by_both)
        hints = list(threads.map(apply, (pair.first.name, pair.twin)))
    assert all("begin one of them again" in hint for hint in hints)
    assert (pair.first.state, pair.twin_entry) == (before, twin)
    assert not (pair.first.folder / "metadata").exists()
    pair.apply(pair.twin)
    of_twin_only(pair)


def test_a_pattern_with_several_jobs_makes_one_table_at_most(pair: Pair, run: Any) -> None:
    for _ in range(3):
        code, found = run("apply", f"made.{pair.prefix}*", "--jobs", "2", "--accept", "same-folder")
        done = [name for name, outcome in found.items() if outcome == "done"]
        # Refused, or blocked by the metadata folder that it found when it looked at the files.
        assert code in {1, 3}
        assert len(done) <= 1
        entries = {name: pair.catalog.client.table(*name.split(".")) for name in found}
        assert [name for name, entry in entries.items() if entry.is_iceberg] == done
        for name in done:
            assert pair.ids(name) == [1, 2]
            migrate.revert(pair.catalog, name, dry_run=False)
        assert not (pair.first.folder / "metadata").exists()


@pytest.mark.parametrize(
    "ending", [LockTimeoutError("It is held", hint="wait"), KeyboardInterrupt()]
)
@pytest.mark.parametrize("verb", ["apply", "revert"])
def test_an_attempt_that_is_given_up_takes_only_its_own_files(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, ending: BaseException, verb: str
) -> None:
    folder = pair.first.folder / "metadata"
    names = (
        f"00001-{uuid.uuid4()}.metadata.json",
        f"snap-7-1-{uuid.uuid4()}.avro",
        f"{uuid.uuid4()}-m0.avro",
    )

    def ends(*_: Any, **__: Any) -> None:
        for name in names:
            (folder / name).write_bytes(b"another writer's")
        raise ending

    with monkeypatch.context() as patch:
        patch.setattr(applying, "is_unchanged", ends)
        with pytest.raises(type(ending)):
            pair.apply(pair.first.name)
    if isinstance(ending, KeyboardInterrupt):
        assert len(list(folder.iterdir())) == 6
        if verb == "revert":
            migrate.revert(pair.catalog, pair.first.name, dry_run=False)
        else:
            with monkeypatch.context() as patch:
                patch.setattr(applying, "plan_source", ends)
                with pytest.raises(KeyboardInterrupt):
                    pair.apply(pair.first.name)
    assert sorted(path.name for path in folder.iterdir()) == sorted(names)


def test_a_revert_beside_an_apply_of_the_same_table_leaves_one_whole_table(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    written, reverting_now = threading.Event(), threading.Event()
    write, fence = metadata_file.write_metadata, MigrationContext.fence_conversion

    def slow_write(*arguments: Any) -> None:
        write(*arguments)
        written.set()
        assert reverting_now.wait(60)

    with ThreadPoolExecutor(1) as threads:
        monkeypatch.setattr(metadata_file, "write_metadata", slow_write)
        applied = threads.submit(pair.apply, pair.first.name)
        assert written.wait(60)
        monkeypatch.setattr(metadata_file, "write_metadata", write)

        def late_fence(*arguments: Any) -> bool:
            reverting_now.set()
            wait([applied], timeout=1)  # it waits for the lock
            return fence(*arguments)

        monkeypatch.setattr(MigrationContext, "fence_conversion", late_fence)
        migrate.revert(pair.catalog, pair.first.name, dry_run=False)
        applied.result(60)
    assert pair.ids(pair.first.name) == [1, 2]
    assert migrate.verify(pair.catalog, pair.first.name).difference_count == 0


def test_a_revert_that_comes_after_another_revert_and_an_apply_changes_nothing(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    tidy, find = TableEntry.tidy, reverting.find_overwritten

    def killed(*arguments: Any) -> None:
        tidy(*arguments)
        raise KeyboardInterrupt

    pair.apply(pair.first.name)
    with monkeypatch.context() as patch:
        patch.setattr(TableEntry, "tidy", killed)
        with pytest.raises(KeyboardInterrupt):
            migrate.revert(pair.catalog, pair.first.name, dry_run=False)

    def late(*arguments: Any, **options: Any) -> Any:
        monkeypatch.setattr(reverting, "find_overwritten", find)
        migrate.revert(pair.catalog, pair.first.name, dry_run=False)
        pair.apply(pair.first.name)
        return find(*arguments, **options)

    monkeypatch.setattr(reverting, "find_overwritten", late)
    with pytest.raises(CommitFailedError, match="changed meanwhile"):
        migrate.revert(pair.catalog, pair.first.name, dry_run=False)
    assert pair.ids(pair.first.name) == [1, 2]
    assert migrate.status(pair.catalog, pair.first.name)["state"] == "migrated, not verified"
