"""What a client finds out about its metastores, and that it outlives a fork."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import pytest

from icecomb.catalog.hive.entry_change import EntryChange
from icecomb.catalog.hive.thrift.entity import HiveTable
from icecomb.catalog.hive.thrift.failure import RefusedError, ReplyLostError, UnreachableError
from icecomb.catalog.hive.thrift.known_server import KnownServers, ValueCheck
from icecomb.catalog.hive.thrift.server import value_check
from icecomb.format.errors import ConfigurationError, MetastoreError
from icecomb.format.holding import Holding

UNSET = "New value for expected key icecomb.probe is not set"
ELSE = (
    "The table has been modified. The parameter value for key 'icecomb.probe' is 'before'. "
    "The expected was value was 'something else'"
)
NO_SQL = "Unable to alter table. Cannot update parameter with JDO transaction."


class Server:
    """A client of a server that answers alters of a view in these ways; None: it does them."""

    def __init__(self, *answers: str | Exception | None) -> None:
        self.answers = list(answers)
        self.views: dict[str, HiveTable] = {}
        self.servers = KnownServers()
        self.now_s = 1_000_000

    def pin(self, _: Holding) -> str:
        return "server"

    def create_table(self, view: HiveTable) -> None:
        self.views[view.name] = replace(view, create_time=self.now_s)

    def table_names_of_type(self, _: str, kind: str, pattern: str) -> list[str]:
        assert kind == "VIRTUAL_VIEW"
        return [name for name in self.views if name.startswith(pattern.removesuffix("*"))]

    def tables(self, _: str, names: list[str]) -> list[HiveTable]:
        return [self.views[name] for name in names]

    def alter_table(self, *_: Any, **__: Any) -> None:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        if answer is not None:
            raise RefusedError(answer, kind="MetaException", answer=answer)

    def drop_table(self, _: str, name: str) -> None:
        del self.views[name]


@pytest.mark.parametrize(
    ("answers", "found"),
    [
        ([None], ValueCheck.IGNORED),
        ([ELSE], ValueCheck.COMPARED),
        ([UNSET, None], ValueCheck.ATOMIC),
        ([UNSET, NO_SQL], ValueCheck.REFUSED),
    ],
    ids=lambda value: getattr(value, "value", None),
)
def test_what_a_server_checks_is_found_out_once_by_a_view_of_our_own(
    answers: list[str | None], found: ValueCheck
) -> None:
    server: Any = Server(*answers)
    assert value_check(server, "db") is found
    assert (server.answers, server.views) == ([], {})
    assert value_check(server, "db") is found


@pytest.mark.parametrize("answers", [["not allowed"], [UNSET, "not allowed"]])
def test_a_server_that_lets_nobody_try_counts_as_one_that_checks_nothing_for_now(
    answers: list[str | None],
) -> None:
    server: Any = Server(*answers, UNSET, None)
    found = value_check(server, "db")
    assert (found, found.holds) == (ValueCheck.UNTRIED, False)
    assert not server.views
    assert value_check(server, "db") is ValueCheck.ATOMIC


def test_views_that_others_left_an_hour_ago_are_dropped() -> None:
    server: Any = Server(UNSET, None)
    own = {"icecomb.probe": "before"}
    for name, age_s, parameters in (
        ("icecomb_probe_left", 3601, own),
        ("icecomb_probe_in_use", 3599, own),
        ("icecomb_probe_of_a_user", 9999, {}),
        ("other", 9999, own),
    ):
        view = HiveTable("db", name, table_type="VIRTUAL_VIEW", parameters=parameters)
        server.views[name] = replace(view, create_time=server.now_s - age_s)
    assert value_check(server, "db") is ValueCheck.ATOMIC
    assert set(server.views) == {"icecomb_probe_in_use", "icecomb_probe_of_a_user", "other"}


@pytest.mark.parametrize("kind", [UnreachableError, ReplyLostError])
def test_a_server_that_goes_away_when_it_is_tried_is_an_error_of_the_metastore(
    kind: type[MetastoreError],
) -> None:
    """Jobs repeat these, and not a wrong setting."""
    server: Any = Server(kind("gone"), UNSET, None)
    server.uri = "thrift://metastore:9083"
    change = EntryChange(server, "db", "t", {"engine.hive.lock-enabled": "false"})
    with pytest.raises(UnreachableError, match="went away") as caught:
        change.is_locked({})
    assert "Try again" in str(caught.value)
    assert not change.is_locked({})


def test_a_server_that_fails_when_it_is_tried_is_not_said_to_check_nothing() -> None:
    """A lock-free commit is refused for now: nobody knows whether it would be safe."""
    server: Any = Server("Internal error processing alter_table", UNSET, None)
    server.uri = "thrift://metastore:9083"
    change = EntryChange(server, "db", "t", {"engine.hive.lock-enabled": "false"})
    with pytest.raises(ConfigurationError, match="did not let it be tried") as caught:
        change.is_locked({})
    assert "does not check" not in str(caught.value)
    assert "try again" in str(caught.value)
    assert not change.is_locked({})


def test_a_forked_process_knows_what_its_parent_found_out_and_waits_for_nobody() -> None:
    servers = KnownServers()
    servers["known"].check = ValueCheck.ATOMIC
    with servers["known"].guard, servers["asked by the parent"].guard:
        child = os.fork()
        if child == 0:
            known, asked = servers["known"], servers["asked by the parent"]
            free = all(one.guard.acquire(timeout=60) for one in (known, asked))
            os._exit(0 if free and (known.check, asked.check) == (ValueCheck.ATOMIC, None) else 1)
    assert os.waitpid(child, 0)[1] == 0
