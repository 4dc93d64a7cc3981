"""Arguments that are true or false: a text such as "no" would be true."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from icecomb.catalog import Maintenance, load_catalog, migrate
from icecomb.catalog.health import check_health
from icecomb.format.errors import ValidationError

NEEDED = {"source_prefix": "a", "target_prefix": "b", "older_than": 0}


def flags() -> list[tuple[str, str, dict[str, Any]]]:
    found = []
    for name, method in inspect.getmembers(Maintenance, inspect.isfunction):
        arguments = inspect.signature(method).parameters
        if name.startswith("_"):
            continue
        needed = {
            key: NEEDED[key]
            for key, one in arguments.items()
            if key != "self" and one.default is one.empty
        }
        found += [(name, key, needed) for key, one in arguments.items() if one.annotation == "bool"]
    return found


@pytest.mark.parametrize(("name", "flag", "needed"), flags())
def test_maintenance_takes_no_text_for_a_flag(name: str, flag: str, needed: dict[str, Any]) -> None:
    maintenance: Any = Maintenance(None)  # type: ignore[arg-type] # it is not looked at
    with pytest.raises(ValidationError, match=f"Argument {flag} must be True or False, not 'no'"):
        getattr(maintenance, name)(**needed, **{flag: "no"})


def test_what_cannot_be_undone_takes_no_text_for_a_flag(tmp_path: Any) -> None:
    lake: Any = load_catalog("lake", type="hadoop", warehouse=str(tmp_path))
    calls = {
        "orphans": lambda given: check_health(lake, "*", **given),
        "every_file": lambda given: check_health(lake, "*", **given),
        "purge_requested": lambda given: lake.drop_table("db.t", **given),
        "unverified": lambda given: migrate.finalize(lake, "db.t", **given),
        "allow_data_loss": lambda given: migrate.revert(lake, "db.t", **given),
    }
    for flag, call in calls.items():
        with pytest.raises(ValidationError, match=f"Argument {flag} must be True or False"):
            call({flag: "no"})
