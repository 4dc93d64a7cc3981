"""Arguments that are true or false: a text such as "no" would be true, and so would a misplaced id."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from icecomb.catalog import Maintenance, Table, load_catalog, migrate
from icecomb.catalog.health import check_health
from icecomb.catalog.table.transaction import Transaction
from icecomb.format.errors import ValidationError

ROWS = pa.table({"id": [1]})
NEEDED = {
    "source_prefix": "a",
    "target_prefix": "b",
    "older_than": 0,
    "df": ROWS,
    "file_paths": [],
    "files": [],
    "timestamp_ms": 0,
}


def flags() -> list[tuple[type, str, str, dict[str, Any]]]:
    found = []
    for owner in (Maintenance, Table, Transaction):
        for name, method in inspect.getmembers(owner, inspect.isfunction):
            arguments = inspect.signature(method).parameters
            mine = [key for key, one in arguments.items() if one.annotation == "bool"]
            if name.startswith("_") or not mine:
                continue
            needed = {
                key: NEEDED[key]
                for key, one in arguments.items()
                if key != "self" and one.default is one.empty
            }
            found += [(owner, name, key, needed) for key in mine]
    return found


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Any:
    found = load_catalog("lake", type="hadoop", warehouse=str(tmp_path_factory.mktemp("flags")))
    found.create_namespace("db")
    found.create_table("db.t", schema=ROWS.schema)
    return found


OWNERS: dict[type, Callable[[Any], Any]] = {
    Maintenance: lambda table: table.maintenance,
    Table: lambda table: table,
    Transaction: lambda table: table.transaction(),
}


@pytest.mark.parametrize(("owner", "name", "flag", "needed"), flags())
def test_no_text_is_taken_for_a_flag(
    lake: Any, owner: type, name: str, flag: str, needed: dict[str, Any]
) -> None:
    method = getattr(OWNERS[owner](lake.load_table("db.t")), name)
    with pytest.raises(ValidationError, match=f"Argument {flag} must be True or False, not 'no'"):
        method(**needed, **{flag: "no"})


def test_a_snapshot_is_not_taken_for_the_flag_before_it(lake: Any) -> None:
    table = lake.load_table("db.t")
    with pytest.raises(ValidationError, match="case_sensitive must be True or False, not 7"):
        table.scan("id = 1", ("id",), 7)
    with pytest.raises(ValidationError, match="case_sensitive must be True or False"):
        table.update_schema().case_sensitive("no")


def test_what_cannot_be_undone_takes_no_text_for_a_flag(lake: Any) -> None:
    calls = {
        "orphans": lambda given: check_health(lake, "*", **given),
        "purge_requested": lambda given: lake.drop_table("db.t", **given),
        "unverified": lambda given: migrate.finalize(lake, "db.t", **given),
        "allow_data_loss": lambda given: migrate.revert(lake, "db.t", **given),
    }
    for flag, call in calls.items():
        with pytest.raises(ValidationError, match=f"Argument {flag} must be True or False"):
            call({flag: "no"})
