"""Every error that icecomb raises on purpose says what to do next."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

HOUSE = Path(__file__).parent.parent
FLOORS = ("format", "catalog", "spark")

OWN_HINT = {
    "ImportBlockedError": "made of a plan: its hint is the remedy of the first blocker",
    "MigrationBlockedError": "made of a plan: its hint is the remedy of the first blocker",
    "RevertBlockedError": "made of a plan: its hint says how to allow the loss",
}
"""Classes that write their hint themselves."""

REASONS = {
    "catalog/migrate/source/source.py": (
        "partition_values puts them behind the value and gives the hint",
        {"convert", "_check_room", "_integer", "_float", "_date", "_one_of", "_decimal"},
    ),
    "catalog/migrate/source/spark_type.py": (
        "source_schema goes by Hive's columns instead of what Spark recorded",
        {"spark_schema", "parse_spark_type"},
    ),
    "format/manifests/decoder.py": (
        "decode_manifest puts them behind the manifest's name and gives the hint",
        {"_statistic", "_child"},
    ),
    "catalog/paimon/type_parser.py": (
        "parse_table_schema puts them behind the file's name and gives the hint",
        {"field_from_json", "type_from_json", "_nested_from_json"},
    ),
    "catalog/paimon/table_schema.py": (
        "parse_table_schema puts them behind the file's name and gives the hint",
        {"__post_init__", "_from_json", "_member", "_names", "_check_names"},
    ),
    "format/spec/metadata_json.py": (
        "metadata_from_json puts them behind the file's name and gives the hint",
        {
            "_parse", "_required_long", "_next_row_id", "_objects", "_named", "_table_uuid", "_check",
            "_check_log", "_unique",
        },
    ),
    "format/spec/view.py": (
        "view_from_json puts them behind the file's name and gives the hint",
        {"_metadata"},
    ),
}  # fmt: skip
"""Functions whose errors never get out: why, and which."""

PARTS = {
    "format/expressions/literal.py": "put behind the text that is no literal",
    "catalog/paimon/type_parser.py": "put behind the field",
    "format/spec/name_mapping.py": "put behind the schema, or behind what happened",
    "catalog/hive/thrift/sasl.py": "put behind the metastore's address",
}
"""Modules whose messages are parts of others: where these put them."""

NAME = re.compile(r"icecomb|pip |hadoop |hdfs-native|int |`|[a-z_]+([.:_][a-z/_]|\()")
"""What stands in small letters at the head of a sentence, too: programs, settings, locations."""

CODE = re.compile(r"(['\"`)>]|[=/.:]\S*[^.\s]|pip install .*)$")
"""What no full stop follows: what is pasted."""


@dataclass(frozen=True)
class Call:
    """A call that makes something of a class, or of a variable that stands for one.

    Args:
        path: From the top of the checkout.
        line: Where it begins.
        name: What is called.
        function: The innermost one around it; empty at the top of a module.
        is_chosen: Whether it is raised, and its class was given to the function, or chosen in it.
        has_hint: Whether there is one, whatever is the case; `**` may hold one.
        begin: What the message begins with; empty if that is a value.
        hints: What the hint may begin with and end with; a letter and a stop where that is a value.
    """

    path: str
    line: int
    name: str
    function: str
    is_chosen: bool
    has_hint: bool
    begin: str
    hints: list[tuple[str, str]]


@pytest.mark.parametrize("floor", FLOORS)
def test_every_error_that_is_raised_says_what_to_do_next(floor):
    missing = [
        f"{call.path}:{call.line} {call.name} in {call.function}"
        for call in _constructions(floor)
        if not call.has_hint and call.function not in REASONS.get(call.path, ("", set()))[1]
    ]
    assert missing == []


@pytest.mark.parametrize("floor", FLOORS)
def test_every_message_is_a_sentence(floor):
    small = [
        f"{call.path}:{call.line} {call.begin}"
        for call in _constructions(floor)
        if call.begin[:1].islower()
        and not NAME.match(call.begin)
        and call.path not in PARTS
        and call.function not in REASONS.get(call.path, ("", set()))[1]
    ]
    assert small == []


@pytest.mark.parametrize("floor", FLOORS)
def test_every_hint_is_a_sentence(floor):
    _, calls = _source(floor)
    found = []
    for call in calls:
        for begin, end in call.hints:
            small = begin[:1].islower() and not NAME.match(begin)
            if small or (end[-1:] not in {*".!?"} and not CODE.search(end)):
                found.append(f"{call.path}:{call.line} {begin} ... {end[-30:]}")
    assert found == []


def test_options_of_the_shell_stand_in_its_commands():
    """A migration is refused in the same words in Python, and by CALL."""
    found = []
    for path in sorted((HOUSE / "catalog" / "migrate").rglob("*.py")):
        nodes = list(ast.walk(ast.parse(path.read_text())))
        docs = {node.value for node in nodes if isinstance(node, ast.Expr)}
        whole = [node for node in nodes if isinstance(node, ast.JoinedStr)]
        parts = {part for text in whole for part in text.values}
        for call in nodes:
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "shell_command":
                parts |= {*ast.walk(call)}
        for node in nodes:
            if isinstance(node, (ast.JoinedStr, ast.Constant)) and node not in docs | parts:
                said = re.sub(r"`.*?`|\{.*?\}|icecomb migrate [^;,]*", "", ast.unparse(node))
                found += [f"{path.name}: {said}"] if re.search(r"--[a-z]", said) else []
    assert found == []


def test_every_exception_is_still_needed():
    found = {
        (call.path, call.function)
        for floor in FLOORS
        for call in _constructions(floor)
        if not call.has_hint
    }
    excused = {(path, function) for path, (_, names) in REASONS.items() for function in names}
    assert excused - found == set()


def _constructions(floor: str) -> list[Call]:
    """Each place where an error is made."""
    errors = _error_names() - OWN_HINT.keys()
    _, calls = _source(floor)
    return [call for call in calls if call.name in errors or call.is_chosen]


@cache
def _error_names() -> frozenset[str]:
    """`IcecombError` and everything that descends from it, by name."""
    classes = {name: bases for floor in FLOORS for name, bases in _source(floor)[0].items()}
    found = {"IcecombError"}
    while more := {name for name, bases in classes.items() if bases & found} - found:
        found |= more
    return frozenset(found)


@cache
def _source(floor: str) -> tuple[dict[str, set[str]], list[Call]]:
    """The classes of a floor with their bases, and the calls that may make errors: each file is parsed once."""
    classes: dict[str, set[str]] = {}
    calls: list[Call] = []
    for path in sorted((HOUSE / floor).rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        found = list(_nodes(tree))
        defined: set[str] = set()
        raised: set[ast.expr] = set()
        for node, _ in found:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                defined |= {alias.asname or alias.name for alias in node.names}
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                defined.add(node.name)
                if isinstance(node, ast.ClassDef):
                    classes[node.name] = {b.id for b in node.bases if isinstance(b, ast.Name)}
            elif isinstance(node, ast.Raise) and node.exc is not None:
                raised.add(node.exc)
        where = path.relative_to(HOUSE).as_posix()
        for node, function in found:
            if isinstance(node, ast.Call):
                name = _name(node)
                is_chosen = (
                    node in raised
                    and isinstance(node.func, ast.Name)
                    and name.islower()
                    and name not in defined
                )
                if name[:1].isupper() or is_chosen:
                    has_hint, begin, hints = _has_hint(node), _begin(node), list(_hints(node))
                    call = Call(
                        where, node.lineno, name, function, is_chosen, has_hint, begin, hints
                    )
                    calls.append(call)
    return classes, calls


def _nodes(tree: ast.Module) -> Iterator[tuple[ast.AST, str]]:
    """Each node with the innermost function around it, or that it is."""
    left: list[tuple[ast.AST, str]] = [(tree, "")]
    while left:
        node, function = left.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            function = node.name
        yield node, function
        left += [(child, function) for child in ast.iter_child_nodes(node)]


def _begin(call: ast.Call) -> str:
    """What the message begins with, unless that is a value."""
    match call.args:
        case [ast.Constant(value=str(begin)), *_]:
            return begin
        case [ast.JoinedStr(values=[ast.Constant(value=str(begin)), *_]), *_]:
            return begin
    return ""


def _has_hint(call: ast.Call) -> bool:
    hints = [word.value for word in call.keywords if word.arg in {"hint", None}]
    return bool(hints) and not any(
        isinstance(part, ast.Constant) and part.value is None
        for hint in hints
        for part in (hint, getattr(hint, "body", None), getattr(hint, "orelse", None))
    )


def _hints(call: ast.Call) -> Iterator[tuple[str, str]]:
    """Both ends of each text that the hint may be."""
    left = [word.value for word in call.keywords if word.arg == "hint"]
    while left:
        match left.pop():
            case ast.Constant(value=str(text)):
                yield text, text
            case ast.JoinedStr(values=[first, *_] as parts):
                begin, end = (
                    str(part.value) if isinstance(part, ast.Constant) else "X."
                    for part in (first, parts[-1])
                )
                yield begin, end
            case ast.IfExp(body=body, orelse=orelse):
                left += [body, orelse]
            case ast.BoolOp(values=values):
                left += values
            case _:
                pass


def _name(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
