"""Two entries of the metastore with one folder: what is done with one does nothing to the other."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pytest

from icecomb.catalog import cli, migrate
from icecomb.catalog.migrate.choices import Choices
from icecomb.catalog.migrate.journal import find_journals, start_journal
from icecomb.format.errors import MigrationError

_PREFIXES = itertools.count()
SHARED = "has the folder of"


def numbers(*values: int) -> pa.Table:
    return pa.table({"id": pa.array(values, pa.int64())})


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

    def refused(self, verb: Any, name: str, **options: Any) -> None:
        """It is refused because of the folder, and nothing is changed, not even a journal."""
        before = self.files(), self.catalog.client.table(*name.split("."))
        with pytest.raises(MigrationError, match=SHARED):
            verb(self.catalog, name, **options)
        assert (self.files(), self.catalog.client.table(*name.split("."))) == before


@pytest.fixture(params=[{}, {"k": "int"}], ids=["plain", "partitioned"])
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
def run(metastore: Any, capfd: pytest.CaptureFixture[str]) -> Any:
    """Runs `icecomb --output json migrate ...`: exit code and outcomes by table."""

    def run(*arguments: str) -> tuple[int, dict[str, str]]:
        capfd.readouterr()
        code = cli.main(["--uri", metastore.uri, "--output", "json", "migrate", *arguments])
        tables = json.loads(capfd.readouterr().out)["tables"]
        return code, {one["table"]: one["outcome"] for one in tables}

    return run


def append(pair: Pair, name: str, value: int) -> None:
    table = pair.catalog.load_table(name)
    extra = {"k": pa.array([1], pa.int32())} if len(table.schema().fields) > 1 else {}
    table.append(pa.table({"id": pa.array([value], pa.int64()), **extra}))


def test_no_step_takes_the_other_tables_migration_for_its_own(pair: Pair) -> None:
    before = pair.first.state
    migrate.apply(pair.catalog, pair.first.name)
    append(pair, pair.first.name, 3)
    pair.refused(migrate.apply, pair.twin)
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
    assert migrate.apply(pair.catalog, pair.twin).rows == 2
    assert migrate.status(pair.catalog, pair.first.name)["state"] == "reverted"
    pair.refused(migrate.apply, pair.first.name)


def test_patterns_mean_the_migrated_one_only(pair: Pair, run: Any) -> None:
    migrate.apply(pair.catalog, pair.first.name)
    append(pair, pair.first.name, 3)
    pattern, twin = f"made.{pair.prefix}*", pair.twin_entry
    assert run("revert", pattern, "--yes") == (3, {pair.first.name: "blocked"})
    assert run("verify", pattern) == (0, {pair.first.name: "done"})
    assert run("finalize", pattern) == (0, {pair.first.name: "done"})
    assert run("status", pattern)[0] == 0
    assert run("apply", pattern) == (1, {pair.first.name: "done", pair.twin: "failed"})
    assert pair.ids(pair.first.name) == [1, 2, 3]
    assert pair.twin_entry == twin
    assert run("finalize", pattern, "--yes") == (0, {pair.first.name: "done"})
    pair.refused(migrate.apply, pair.twin)
    pair.refused(migrate.revert, pair.twin, dry_run=False)


def test_a_renamed_table_keeps_its_migration_and_goes_back_under_its_new_name(pair: Pair) -> None:
    before, partitions = pair.first.state
    migrate.apply(pair.catalog, pair.first.name)
    new = f"{pair.first.name}_new"
    pair.catalog.rename_table(pair.first.name, new)
    assert migrate.apply(pair.catalog, new).already
    assert migrate.verify(pair.catalog, new).difference_count == 0
    assert migrate.status(pair.catalog, new)["state"] == "verified"
    migrate.finalize(pair.catalog, new, dry_run=True)
    pair.refused(migrate.apply, pair.twin)
    pair.refused(migrate.revert, pair.twin, dry_run=False)
    # Its old name may be another table's by now.
    client = pair.catalog.client
    client.create_table(replace(pair.twin_entry, name=before.name, wire=None))
    pair.refused(migrate.revert, pair.first.name, dry_run=False)
    pair.refused(migrate.apply, pair.first.name)
    assert pair.ids(new) == [1, 2]
    assert migrate.revert(pair.catalog, new, dry_run=False).partitions == len(partitions)
    database, name = new.split(".")
    assert client.table(database, name) == replace(before, name=name)
    found = [one for page in client.partitions.pages(database, name) for one in page]
    assert found == [replace(one, table=name) for one in partitions]
    assert not (pair.first.folder / "metadata").exists()


def test_a_registered_copy_is_not_the_migrated_table(pair: Pair, run: Any) -> None:
    migrate.apply(pair.catalog, pair.first.name)
    copy = f"{pair.first.name}_copy"
    pointer = pair.first.entry.metadata_location
    pair.catalog.register_table(copy, pointer)
    pair.refused(migrate.revert, copy, dry_run=False)
    pair.refused(migrate.finalize, copy)
    pair.refused(migrate.verify, copy)
    pair.refused(migrate.apply, copy)
    assert pair.ids(pair.first.name) == pair.ids(copy) == [1, 2]
    pair.drop(copy)
    migrate.revert(pair.catalog, pair.first.name, dry_run=False)
    assert not pair.first.entry.is_iceberg


def test_a_journal_that_a_crash_left_of_one_is_not_in_the_way_of_the_other(pair: Pair) -> None:
    before = pair.first.state
    migrate.apply(pair.catalog, pair.first.name)
    io, entry = pair.catalog.io, pair.twin_entry
    start_journal(io, entry.storage.location, entry, [], Choices())
    pair.refused(migrate.apply, pair.twin)
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
    migrate.apply(pair.catalog, pair.first.name)
    pair.drop(pair.first.name)
    migrate.revert(pair.catalog, pair.twin, dry_run=False)
    assert not (pair.first.folder / "metadata").exists()
    assert migrate.apply(pair.catalog, pair.twin).rows == 2
    assert pair.ids(pair.twin) == [1, 2]
