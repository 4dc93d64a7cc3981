"""Both sides of the protocol, member by member."""

from __future__ import annotations

import dataclasses
import inspect
import re
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest

from icecomb.spark.planner import protocol
from icecomb.spark.planner.handlers import handlers
from icecomb.spark.planner.protocol.message import (
    Message,
    Opaque,
    Repeatable,
    Request,
    Unrepeatable,
)
from icecomb.spark.planner.protocol.scans import FileRange, SplitHints
from icecomb.spark.planner.protocol.tables import LoadTable, TableName

SPARK = Path(__file__).parents[3] / "spark"


def kinds():
    """Each message by its name: every class of the protocol's modules but those they stand on."""
    modules = [
        import_module(f"{protocol.__name__}.{each.name}")
        for each in iter_modules(protocol.__path__)
    ]
    return {
        name: kind
        for module in modules
        for name, kind in vars(module).items()
        if inspect.isclass(kind)
        and issubclass(kind, Message)
        and kind.__module__ != Message.__module__
    }


def messages():
    """The members of each message by its name, as the planner has them."""
    return {
        name: [field.name for field in dataclasses.fields(kind)] for name, kind in kinds().items()
    }


def requests():
    """The names of the requests."""
    return {name for name, kind in kinds().items() if issubclass(kind, Request)}


def test_each_request_has_its_method():
    methods = {re.sub(r"(?<=.)(?=[A-Z])", "_", name).lower() for name in requests()}
    assert methods == handlers().keys()


def test_each_request_says_whether_it_is_asked_again_when_the_planner_is_lost():
    assert {kinds()[name].__base__ for name in requests()} == {Repeatable, Unrepeatable}


def _asked():
    """The messages that travel to the planner: the requests, and what is part of them."""
    asked, known = requests(), messages()
    while True:
        inside = {
            other
            for name in asked
            for field in dataclasses.fields(kinds()[name])
            for other in known
            if re.search(rf"\b{other}\b", field.type)
        }
        if inside <= asked:
            return asked
        asked = asked | inside


def test_the_planner_reads_every_member_that_it_is_sent():
    planner = SPARK / "planner"
    sources = [path for path in planner.rglob("*.py") if path.parent.name != "protocol"]
    text = "\n".join(path.read_text() for path in sources)
    known = messages()
    unread = {
        f"{name}.{member}"
        for name in _asked()
        for member in known[name]
        if not re.search(rf"\.{member}\b", text)
    }
    assert unread == set()


def test_the_bridge_reads_every_member_that_it_is_answered():
    bridge = SPARK / "bridge"
    text = "\n".join(path.read_text() for path in bridge.rglob("*.java"))
    known, asked = messages(), _asked()
    unread = {
        f"{name}.{member}"
        for name in known.keys() - asked
        if not issubclass(kinds()[name], Opaque)
        for member in known[name]
        if not re.search(rf"\b{_camel(member)}\(\)|::{_camel(member)}\b", text)
    }
    assert unread == set()


def _camel(member):
    return re.sub(r"_(.)", lambda match: match[1].upper(), member)


def test_a_message_survives_its_way():
    audit = {"wap_id": None, "wap_branch": "b"}
    table = {"namespace": ["db"], "name": "t"}
    json = {"catalog": "c", "table": table, "version": None, "timestamp_us": 1, "audit": audit}
    request = LoadTable.parse(json)
    assert request.table == TableName(("db",), "t")
    assert request.to_json() == json


@pytest.mark.parametrize(
    ("kind", "json", "message"),
    [
        (FileRange, {"file": 1, "start": 2}, "different versions"),
        (FileRange, {"file": 1, "start": 2, "length": 3, "more": 4}, "different versions"),
        (FileRange, [], "different versions"),
        (
            FileRange,
            {"file": 1, "start": 2, "length": None, "last": True, "rows": 4},
            r"FileRange\.length is int, not None",
        ),
        (
            FileRange,
            {"file": True, "start": 2, "length": 3, "last": True, "rows": 4},
            r"FileRange\.file is int, not True",
        ),
        (SplitHints, {"parallelism": 1, "split_bytes": "2", "open_cost_bytes": None}, "is int"),
        (TableName, {"namespace": "db", "name": "t"}, "namespace is list, not 'db'"),
        (TableName, {"namespace": [1], "name": "t"}, "namespace is str, not 1"),
    ],
)
def test_what_is_no_such_message_is_refused_by_its_member(kind, json, message):
    with pytest.raises(ValueError, match=message):
        kind.parse(json)
