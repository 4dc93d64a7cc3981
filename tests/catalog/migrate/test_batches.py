"""The commands of `icecomb migrate` on many tables: patterns, outcomes, and the exit code of the worst."""

from __future__ import annotations

import itertools
import json
import shutil
from dataclasses import replace
from typing import Any

import pytest

from icecomb.catalog import cli, migrate
from icecomb.catalog.hive.thrift.failure import UnreachableError
from icecomb.catalog.migrate.applying.hive_parts import HiveParts
from icecomb.catalog.migrate.batch import Result, StepStatus, run_batch
from icecomb.catalog.migrate.journal.entry import TableEntry
from icecomb.catalog.migrate.journal.folder_journals import FolderJournals
from icecomb.catalog.migrate.journal.journal import Step
from icecomb.catalog.report.progress import SILENT
from icecomb.format.errors import (
    CommitStateUnknownError,
    MigrationError,
    NoSuchTableError,
    ValidationError,
)
from tests.catalog.numbered_rows import numbers

_PREFIXES = itertools.count()


@pytest.fixture
def prefix() -> str:
    return f"batch{next(_PREFIXES)}_"


@pytest.fixture
def run(icecomb: Any) -> Any:
    """Runs `icecomb --output json migrate ...`: exit code, outcomes by table, stderr."""

    def run(*arguments: str) -> tuple[int, dict[str, Any], str]:
        code, out, err = icecomb("migrate", *arguments, form="json")
        tables = json.loads(out)["tables"] if out else []
        return code, {one["table"]: one for one in tables}, err

    return run


def outcomes(found: dict[str, Any]) -> list[str]:
    return [one["outcome"] for one in found.values()]


def test_tables_of_a_pattern_go_all_the_way_and_back(
    make_hive_table: Any, run: Any, prefix: str
) -> None:
    keys = {"k": "int"}
    tables = [
        make_hive_table({"id": "bigint"}, keys, {("1",): numbers(at), ("2",): None}, prefix=prefix)
        if at % 2
        else make_hive_table({"id": "bigint"}, rows=numbers(at), prefix=prefix)
        for at in range(5)
    ]
    for table in tables:
        (table.folder / "p1").mkdir(exist_ok=True)
    before = [table.state for table in tables]
    pattern = f"made.{prefix}*"
    code, found, err = run("apply", pattern, "--accept", "subdirectories", "--jobs", "3")
    assert (code, outcomes(found)) == (0, ["done"] * 5)
    assert err.startswith("INSERT OVERWRITE in Spark goes on as before in icecomb's catalogs")
    assert sorted(found) == sorted(table.name for table in tables)
    assert [found[table.name]["result"]["rows"] for table in tables] == [1] * 5
    # again: what is done is said to be
    code, found, _ = run("apply", pattern)
    assert code == 0
    assert all(one["result"]["already"] for one in found.values())
    code, found, _ = run("verify", pattern, "--jobs", "2")
    assert (code, {one["detail"].partition(":")[0] for one in found.values()}) == (0, {"equal"})
    code, found, _ = run("status", pattern)
    assert (code, {one["detail"] for one in found.values()}) == (0, {"verified"})
    assert outcomes(found) == ["verified"] * 5
    code, found, err = run("finalize", pattern)
    assert code == 0
    assert "finalize keeps the property" in err
    assert err.endswith("dry run: add --yes to do it\n")
    assert "maintenance may delete the 1 files that were Hive's" in found[tables[0].name]["detail"]
    code, found, err = run("revert", pattern)
    assert (code, err) == (0, "dry run: add --yes to do it\n")
    assert all(table.entry.is_iceberg for table in tables)
    code, found, _ = run("revert", pattern, "--yes")
    assert (code, outcomes(found)) == (0, ["done"] * 5)
    assert [table.state for table in tables] == before


def test_one_that_does_not_do_well_leaves_the_others_alone_and_decides_the_exit_code(
    make_hive_table: Any, run: Any, prefix: str
) -> None:
    good = make_hive_table({"id": "bigint"}, rows=numbers(1), prefix=prefix)
    bad = make_hive_table({"id": "bigint", "u": "uniontype<int>"}, prefix=prefix)
    last = make_hive_table({"id": "bigint"}, rows=numbers(2), prefix=prefix)
    code, found, _ = run("apply", f"made.{prefix}*", "--jobs", "1")
    assert (code, outcomes(found)) == (3, ["done", "blocked", "done"])
    assert "union" in found[bad.name]["detail"]
    assert found[bad.name]["result"]["findings"][0]["code"] == "unsupported-column"
    code, found, _ = run("verify", good.name, "made.gone", last.name)
    assert (code, outcomes(found)) == (1, ["done", "failed", "done"])
    assert found["made.gone"]["hint"]
    shutil.copy(last.folder / "part-0.parquet", last.folder / "new.parquet")
    code, found, _ = run("verify", f"made.{prefix}*")
    assert (code, outcomes(found)) == (3, ["done", "blocked"])
    assert found[last.name]["detail"] == "1 differences"
    good.catalog.load_table(good.name).append(numbers(9))
    code, found, _ = run("revert", good.name, bad.name, "--yes")
    assert (code, outcomes(found)) == (1, ["blocked", "failed"])
    assert len(good.rows()) == 2
    code, found, _ = run("finalize", f"made.{prefix}*", "--yes")
    assert (code, outcomes(found)) == (1, ["done", "failed"])
    assert migrate.status(good.catalog, good.name)["state"] == "finalized"


def test_with_stop_on_error_no_more_are_begun(make_hive_table: Any, run: Any, prefix: str) -> None:
    first = make_hive_table({"id": "bigint", "u": "uniontype<int>"}, prefix=prefix)
    second = make_hive_table({"id": "bigint"}, rows=numbers(1), prefix=prefix)
    before = second.state
    code, found, _ = run("apply", f"made.{prefix}*", "--jobs", "1", "--stop-on-error")
    assert (code, outcomes(found)) == (3, ["blocked", "not begun"])
    assert second.state == before
    assert not first.entry.is_iceberg


def test_a_dry_run_of_apply_is_a_plan(make_hive_table: Any, metastore: Any, capfd: Any) -> None:
    table = make_hive_table({"id": "bigint"}, rows=numbers(1))
    before = table.state, table.files()
    code = cli.main(["--uri", metastore.uri, "migrate", "apply", table.name, "--dry-run"])
    out, err = capfd.readouterr()
    assert (code, err) == (0, "dry run: leave --dry-run out to do it\n")
    assert out.splitlines()[1].split()[:2] == [table.name, "ready"]
    assert (table.state, table.files()) == before


def test_what_a_crash_left_is_among_what_a_pattern_means(
    make_hive_table: Any, run: Any, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make_hive_table({"id": "bigint"}, {"k": "int"}, {("1",): numbers(1)}, prefix=prefix)
    before = table.state
    pattern = f"made.{prefix}*"
    tidy = TableEntry.tidy

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    def tidied(*arguments: Any) -> None:
        tidy(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(HiveParts, "take_away", killed)
        assert cli.main(["--uri", table.catalog.properties["uri"], "migrate", "apply", pattern])
    assert table.entry.is_iceberg
    assert len(table.partitions) == 1
    code, found, _ = run("apply", pattern)
    assert (code, found[table.name]["result"]["already"]) == (0, False)
    assert table.partitions == []
    with monkeypatch.context() as patch:
        patch.setattr(TableEntry, "tidy", tidied)
        with pytest.raises(KeyboardInterrupt):
            migrate.revert(table.catalog, table.name, dry_run=False)
    assert not table.entry.is_iceberg
    assert outcomes(run("revert", pattern, "--yes")[1]) == ["done"]
    assert table.state == before
    journal = FolderJournals(table.catalog, table.entry).live
    assert journal is None
    assert run("revert", pattern, "--yes")[0] == 1  # nothing is left that it could mean


def test_the_worst_outcome_decides_and_a_lost_metastore_ends_the_batch() -> None:
    errors: dict[str, Exception] = {
        "unknown": CommitStateUnknownError("An answer was lost", hint="look"),
        "failed": ValidationError("No", hint="do not"),
        "odd": KeyError("x"),
        "away": UnreachableError("It is gone", hint="start it"),
    }

    def work(place: tuple[str, str]) -> Result:
        if place[1] in errors:
            raise errors[place[1]]
        return Result({}, "well", place[1] != "differs")

    def statuses(*names: str, stop: bool = False) -> list[StepStatus]:
        places = [("d", name) for name in names]
        found = run_batch(SILENT, "working", places, work, 1, stop_on_error=stop)
        return [one.status for one in found]

    assert statuses("a", "unknown", "failed", "odd", "differs") == [
        StepStatus.DONE,
        StepStatus.UNKNOWN,
        StepStatus.FAILED,
        StepStatus.FAILED,
        StepStatus.BLOCKED,
    ]
    assert statuses("away", "b") == [StepStatus.FAILED, StepStatus.NOT_BEGUN]
    assert statuses("differs", "b", stop=True) == [StepStatus.BLOCKED, StepStatus.NOT_BEGUN]


def test_a_second_table_over_a_migrated_folder_is_refused_and_the_way_back_stays(
    make_hive_table: Any,
) -> None:
    first = make_hive_table({"id": "bigint"}, rows=numbers(1))
    before = first.state
    catalog, database = first.catalog, "made"
    twin = replace(first.entry, name=f"{first.entry.name}_twin", wire=None)
    catalog.client.create_table(replace(twin, table_type="EXTERNAL_TABLE"))
    try:
        migrate.apply(catalog, first.name, migrate.Choices(accept=("same-folder",)))
        with pytest.raises(MigrationError, match="has the folder of"):
            migrate.apply(catalog, f"{database}.{twin.name}")
        assert not catalog.client.table(database, twin.name).is_iceberg
        journal = FolderJournals(catalog, first.entry).live
        assert journal is not None
        assert journal.step(Step.REVERTED) is None
        migrate.revert(catalog, first.name, dry_run=False)
        assert first.state == before
    finally:
        catalog.client.drop_table(database, twin.name)


def test_a_pattern_for_tables_of_a_migration_leaves_others_alone(
    make_hive_table: Any, run: Any, prefix: str
) -> None:
    hive = make_hive_table({"id": "bigint"}, rows=numbers(1), prefix=prefix)
    for command in ("verify", "finalize", "revert"):
        code, found, err = run(command, f"made.{prefix}*")
        assert (code, found) == (1, {})
        assert err.startswith("error: No suitable table matches")
    code, found, _ = run("status", f"made.{prefix}*")
    assert (code, outcomes(found)) == (0, ["none"])
    assert found[hive.name]["detail"] == "never migrated by icecomb"
    with pytest.raises(NoSuchTableError):
        migrate.status(hive.catalog, "made.gone")


def test_a_database_by_its_bare_name_is_only_looked_at(
    make_hive_table: Any, run: Any, prefix: str
) -> None:
    table = make_hive_table({"id": "bigint"}, rows=numbers(1), prefix=prefix)
    before = table.state
    for command in ("apply", "revert", "finalize"):
        code, found, err = run(command, "made")
        assert (code, found) == (2, {})
        assert "made is not a table: made.* means all tables of that database" in err
        assert run(command)[0] == run(command, table.name, "--all")[0] == 2
    assert table.state == before
    assert table.name in run("status", "made")[1]
