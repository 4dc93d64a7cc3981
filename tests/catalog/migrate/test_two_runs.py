"""Two runs on one table at once: each takes the other for what a crash left."""

from __future__ import annotations

from typing import Any

import pytest

from icecomb.catalog import migrate
from icecomb.catalog.migrate.applying import migration
from tests.catalog.numbered_rows import ids, numbers

MADE = "two_runs"


@pytest.mark.parametrize("other", ["apply", "revert"])
def test_who_is_given_up_by_another_run_takes_its_metadata_files_along(
    make_hive_table: Any, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    """Left in a table without partitions they would block it: files in sub-folders."""
    table = make_hive_table({"id": "bigint"}, rows=numbers(1))
    check, begun = migration.check_format_version, list[str]()

    def begin_beside(*arguments: Any) -> None:
        if not begun:
            begun.append(other)
            if other == "apply":
                migrate.apply(table.catalog, table.name)
            else:
                migrate.revert(table.catalog, table.name, dry_run=False)
        check(*arguments)

    monkeypatch.setattr(migration, "check_format_version", begin_beside)
    done = migrate.apply(table.catalog, table.name)
    assert (begun, done.rows) == ([other], 1)
    migrate.revert(table.catalog, table.name, dry_run=False)
    assert not (table.folder / "metadata").exists()
    assert migrate.apply(table.catalog, table.name).rows == 1
    assert ids(table) == [1]
