"""The planner's parser of messages, which answers each; what comes of the bridge, which has the token, is believed."""

from __future__ import annotations

import json
import types
from typing import Any, Union, get_args, get_origin, get_type_hints

import icecomb.spark.planner.handlers  # noqa: F401 - it knows all of them
from icecomb.format.errors import IcecombError
from icecomb.spark.planner.protocol.message import Message, Request
from icecomb.spark.planner.transport import answer, lines_of
from tests.hostile.mutation import DEEP, JSON, changed_text
from tests.hostile.parser import Parser, Sound


def example(kind: Any) -> Any:
    """A value of a member's type, as JSON."""
    if kind is Any:
        return {"x": 1}
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return example(next(a for a in arguments if a is not types.NoneType))
    if origin is tuple:
        return [example(arguments[0])]
    if origin is not None:
        return {"k": example(arguments[1])}
    if issubclass(kind, Message):
        return {name: example(each) for name, each in get_type_hints(kind).items()}
    known: dict[type, Any] = {str: "text", int: 7, bool: True, float: 1.5}
    return known[kind]


def requests(of: type[Request]) -> list[type[Request]]:
    """All requests that there are."""
    found = []
    for each in of.__subclasses__():
        found += requests(each) if each.__module__ == Message.__module__ else [each]
    return found


def bridge_messages(made: Sound) -> Parser:
    del made
    known = {one.__name__: one for one in requests(Request)}
    handlers = {
        name: lambda params, one=one: one.parse(params).to_json() for name, one in known.items()
    }
    seeds = []
    for name, one in sorted(known.items()):
        message = {"id": 1, "method": name, "params": example(one)}
        seeds.append(b"".join(lines_of(message, "params")))

    def read(data: bytes) -> object:
        first, *others = data.splitlines(keepends=True) or [b""]
        told = [json.loads(line) for line in answer(handlers, first, others)]
        (last,) = told[-1:]
        if "error" in last:
            raise IcecombError(last["error"]["message"])
        return told

    return Parser(seeds, read, (*JSON, changed_text), lambda: [text + b"\n" for text in DEEP])
