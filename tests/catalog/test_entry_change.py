"""Renames, drops and repairs whose answer is lost, and the first look after it as well."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from icecomb.catalog.hive.repair import apply_repair, plan_repair
from icecomb.format.errors import CommitFailedError, CommitStateUnknownError

ALTER = "alter_table_with_environment_context"
READ = "get_table_req"
QUICK = {"commit.status-check.min-wait-ms": "5", "commit.status-check.num-retries": "2"}


@pytest.fixture
def named(catalog: Any, proxied: Any, namespace: str) -> str:
    """A table that looks again soon, and a catalog that knows what its server checks."""
    name = f"{namespace}.quick"
    catalog.create_table(name, pa.schema([("id", pa.int64())]), properties=QUICK)
    assert proxied.rejects_stale_swap(name, expectation_sent=True)
    return name


def lose(proxy: Any, method: str, how: str) -> None:
    """Loses a request, and the look after it with the repetition of that."""

    def lose_twice() -> None:
        proxy.fail(READ, "request")
        proxy.before(READ, lambda: proxy.fail(READ, "request"))

    proxy.fail(method, how)
    proxy.before(method, lose_twice)


def test_a_rename_is_told_though_its_answer_and_the_next_look_are_lost(
    catalog: Any, proxied: Any, proxy: Any, namespace: str, named: str
) -> None:
    lose(proxy, ALTER, "reply")
    moved = proxied.rename_table(named, f"{namespace}.moved")
    assert moved.name() == (namespace, "moved")
    assert catalog.client.table_names(namespace) == ["moved"]


def test_a_rename_that_may_still_come_is_unknown(
    catalog: Any, proxied: Any, proxy: Any, namespace: str, named: str
) -> None:
    lose(proxy, ALTER, "late")
    with pytest.raises(CommitStateUnknownError, match=r"unknown whether .* was renamed"):
        proxied.rename_table(named, f"{namespace}.moved")
    assert catalog.client.table_names(namespace) == ["quick"]
    proxy.deliver()
    assert catalog.client.table_names(namespace) == ["moved"]


def test_a_rename_that_was_overtaken_is_none_and_comes_never(
    catalog: Any, proxied: Any, proxy: Any, namespace: str, named: str
) -> None:

    rows = pa.table({"id": pa.array([1], pa.int64())})
    free = catalog.load_table(named)
    with free.update_properties() as update:
        update.set("engine.hive.lock-enabled", "false")
    proxy.fail(ALTER, "late")
    proxy.before(ALTER, lambda: free.append(rows))
    with pytest.raises(CommitFailedError, match="another writer"):
        proxied.rename_table(named, f"{namespace}.moved")
    proxy.deliver()
    assert catalog.client.table_names(namespace) == ["quick"]
    assert catalog.load_table(named).scan().to_arrow().num_rows == 1


def test_a_drop_is_told_though_its_answer_and_the_next_look_are_lost(
    catalog: Any, proxied: Any, proxy: Any, namespace: str, named: str
) -> None:
    lose(proxy, "drop_table", "reply")
    proxied.drop_table(named)
    assert catalog.client.table_names(namespace) == []


def _stale(catalog: Any, named: str) -> None:

    entry = catalog.client.table(*named.split("."))
    parameters = {**entry.parameters, "current-schema": "{}"}
    catalog.client.alter_table(*named.split("."), replace(entry, parameters=parameters))


@pytest.mark.parametrize("how", ["reply", "torn", "betrayed"])
def test_a_repair_of_what_an_entry_says_is_told_though_its_answer_is_lost(
    catalog: Any, proxied: Any, proxy: Any, named: str, how: str
) -> None:
    _stale(catalog, named)
    plan = plan_repair(proxied, named)
    assert plan.parameters.keys() == {"current-schema"}
    proxy.fail(ALTER, how)
    apply_repair(proxied, plan)
    assert plan_repair(catalog, named).parameters == {}


def test_a_repair_that_may_still_come_is_unknown(
    catalog: Any, proxied: Any, proxy: Any, named: str
) -> None:
    _stale(catalog, named)
    plan = plan_repair(proxied, named)
    lose(proxy, ALTER, "late")
    with pytest.raises(CommitStateUnknownError, match="unknown whether it was repaired"):
        apply_repair(proxied, plan)
    proxy.deliver()
    assert plan_repair(catalog, named).parameters == {}
