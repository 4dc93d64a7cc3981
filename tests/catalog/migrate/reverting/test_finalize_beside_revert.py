"""`finalize` and `revert` of one table at the same time: one of them comes first, and every command knows which."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from icecomb.catalog import migrate
from icecomb.catalog.migrate.journal.context import MigrationContext
from icecomb.catalog.migrate.journal.journal import Step
from icecomb.catalog.migrate.reverting import reversal
from icecomb.catalog.report.progress import SILENT
from icecomb.format.errors import MigrationError


@pytest.fixture
def table(make_hive_table: Any) -> Any:
    made = make_hive_table({"id": "bigint"}, {"k": "int"}, {("1",): pa.table({"id": [1, 2]})})
    made.before = made.state
    migrate.apply(made.catalog, made.name)
    return made


def journal_of(table: Any) -> Any:
    context = MigrationContext(table.catalog, *table.name.split("."), SILENT)
    return context.journals(context.entry.load()).own[-1]


def test_a_revert_that_a_finalize_overtakes_changes_nothing(
    table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = reversal.unconfirmed

    def overtaken(*arguments: Any) -> Any:
        found = look(*arguments)
        migrate.finalize(table.catalog, table.name, unverified=True)
        return found

    monkeypatch.setattr(reversal, "unconfirmed", overtaken)
    with pytest.raises(MigrationError, match="was finalized: there is no way back"):
        migrate.revert(table.catalog, table.name, dry_run=False)
    steps = set(journal_of(table).steps())
    assert Step.FINALIZED in steps
    assert Step.REVERTING not in steps
    assert migrate.status(table.catalog, table.name)["state"] == "finalized"
    assert [row["id"] for row in table.rows()] == [1, 2]


def test_a_finalize_that_a_revert_overtakes_gives_up_no_way_back(
    table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = MigrationContext.migrated

    def overtaken(self: MigrationContext, entry: Any) -> Any:
        found = find(self, entry)
        assert found is not None
        original = type(found[0]).step
        asked: list[Step] = []

        def step(journal: Any, name: Step, attempt: int | None = None) -> Any:
            answer = original(journal, name, attempt)
            if name is Step.REVERTING and not asked:  # the revert begins just after this look
                asked.append(name)
                journal.record(Step.REVERTING, pointer=entry.metadata_location, added=[])
            return answer

        monkeypatch.setattr(type(found[0]), "step", step)
        return found

    with monkeypatch.context() as patched:
        patched.setattr(MigrationContext, "migrated", overtaken)
        with pytest.raises(MigrationError, match="is being reverted"):
            migrate.finalize(table.catalog, table.name, unverified=True)
    monkeypatch.undo()
    assert not journal_of(table).finalized
    migrate.revert(table.catalog, table.name, dry_run=False)
    assert table.state == table.before


def test_where_both_were_recorded_the_revert_goes_on_and_every_command_says_so(table: Any) -> None:
    """Without locks nothing rules it out."""
    journal = journal_of(table)
    pointer = table.entry.metadata_location
    journal.record(Step.REVERTING, pointer=pointer, added=[])
    journal.record(Step.FINALIZED)
    assert migrate.status(table.catalog, table.name)["state"] == "reverting: run revert again"
    for command in (migrate.apply, migrate.finalize):
        with pytest.raises(MigrationError, match="is being reverted") as caught:
            command(table.catalog, table.name)
        assert f"icecomb migrate revert {table.name} --yes" in str(caught.value.hint)
    migrate.revert(table.catalog, table.name, dry_run=False)
    assert table.state == table.before
    assert migrate.status(table.catalog, table.name)["state"] == "reverted"
    assert migrate.apply(table.catalog, table.name).rows == 2
