"""Every error that icecomb raises on purpose says what to do next."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
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
    "catalog/migrate/partition_value.py": (
        "partition_values puts them behind the value and gives the hint",
        {"convert", "_check_room", "_integer", "_float", "_date", "_one_of", "_decimal", "_microseconds"},
    ),
    "catalog/migrate/spark_type.py": (
        "source_schema goes by Hive's columns instead of what Spark recorded",
        {"spark_schema", "parse_spark_type"},
    ),
    "format/manifests/decoder.py": (
        "decode_manifest puts them behind the manifest's name and gives the hint",
        {"_statistic", "_child"},
    ),
    "catalog/paimon/type_parser.py": (
        "parse_table_schema puts them behind the file's name and gives the hint",
        {"field_from_json", "type_from_json"},
    ),
    "catalog/paimon/table_schema.py": (
        "parse_table_schema puts them behind the file's name and gives the hint",
        {"__post_init__", "_from_json", "_member", "_names", "_check_names"},
    ),
    "format/spec/metadata_json.py": (
        "metadata_from_json puts them behind the file's name and gives the hint",
        {"_parse", "_named", "_table_uuid", "_check", "_check_log", "_unique"},
    ),
    "format/spec/view_json.py": (
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

NAME = re.compile(r"icecomb|pip |[a-z_]+[.:_][a-z/_]")
"""What stands in small letters at the head of a sentence, too: programs, settings, locations."""


@pytest.mark.parametrize("floor", FLOORS)
def test_every_error_that_is_raised_says_what_to_do_next(floor):
    missing = [
        f"{path}:{call.lineno} {_name(call)} in {function}"
        for path, function, call in _constructions(floor)
        if not _has_hint(call) and function not in REASONS.get(path, ("", set()))[1]
    ]
    assert missing == []


@pytest.mark.parametrize("floor", FLOORS)
def test_every_message_is_a_sentence(floor):
    small = [
        f"{path}:{call.lineno} {begin}"
        for path, function, call in _constructions(floor)
        for begin in _begin(call)
        if begin[0].islower()
        and not NAME.match(begin)
        and path not in PARTS
        and function not in REASONS.get(path, ("", set()))[1]
    ]
    assert small == []


def _begin(call: ast.Call) -> Iterator[str]:
    """What the message begins with, unless that is a value."""
    match call.args:
        case [ast.Constant(value=str(begin)), *_]:
            yield begin
        case [ast.JoinedStr(values=[ast.Constant(value=str(begin)), *_]), *_]:
            yield begin


def test_every_exception_is_still_needed():
    found = {
        (path, function)
        for floor in FLOORS
        for path, function, call in _constructions(floor)
        if not _has_hint(call)
    }
    excused = {(path, function) for path, (_, names) in REASONS.items() for function in names}
    assert excused - found == set()


def _constructions(floor: str) -> Iterator[tuple[str, str, ast.Call]]:
    """Each place where an error is made: file, innermost function, call."""
    errors = _error_names() - OWN_HINT.keys()
    for path in sorted((HOUSE / floor).rglob("*.py")):
        tree = _tree(path)
        functions = _owners(tree)
        chosen = _chosen_classes(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and (_name(node) in errors or node in chosen):
                yield path.relative_to(HOUSE).as_posix(), functions.get(node, ""), node


def _chosen_classes(tree: ast.Module) -> set[ast.Call]:
    """Raised calls of a variable: the class was given to the function, or chosen in it."""
    defined = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    } | {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
    }
    return {
        node.exc
        for node in ast.walk(tree)
        if isinstance(node, ast.Raise)
        and isinstance(node.exc, ast.Call)
        and isinstance(node.exc.func, ast.Name)
        and node.exc.func.id.islower()
        and node.exc.func.id not in defined
    }


def _has_hint(call: ast.Call) -> bool:
    """Whether there is one, whatever is the case; `**` may hold one."""
    hints = [word.value for word in call.keywords if word.arg in {"hint", None}]
    return bool(hints) and not any(
        isinstance(part, ast.Constant) and part.value is None
        for hint in hints
        for part in (hint, getattr(hint, "body", None), getattr(hint, "orelse", None))
    )


def _owners(tree: ast.Module) -> dict[ast.AST, str]:
    """The innermost function around each node."""
    owners: dict[ast.AST, str] = {}
    for node in ast.walk(tree):  # outer ones come first
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            owners.update(dict.fromkeys(ast.walk(node), node.name))
    return owners


@cache
def _error_names() -> frozenset[str]:
    """`IcecombError` and everything that descends from it, by name."""
    classes = {
        node.name: {base.id for base in node.bases if isinstance(base, ast.Name)}
        for floor in FLOORS
        for path in (HOUSE / floor).rglob("*.py")
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.ClassDef)
    }
    found = {"IcecombError"}
    while more := {name for name, bases in classes.items() if bases & found} - found:
        found |= more
    return frozenset(found)


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def _name(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
