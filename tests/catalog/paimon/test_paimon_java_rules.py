"""Paimon itself and icecomb make the same changes to the same schema: each accepts or refuses, and what comes out."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from icecomb.catalog.paimon.schema_change import (
    AddColumn,
    DropColumn,
    MoveColumn,
    Position,
    RemoveOption,
    RenameColumn,
    SchemaChange,
    SetOption,
    UpdateDefault,
    UpdateDescription,
    UpdateNullability,
    UpdateType,
    can_cast,
    changed,
)
from icecomb.catalog.paimon.table_option import IMMUTABLE
from icecomb.catalog.paimon.type_parser import parse_type
from icecomb.format.errors import SchemaError
from tests.catalog.paimon.test_cast_rule import ROOTS
from tests.peers.paimon_java import PaimonJavaError

pytestmark = pytest.mark.full("needs Paimon's Java library")
COLUMNS = {
    "k": "BIGINT NOT NULL",
    "day": "DATE NOT NULL",
    "note": "STRING",
    "small": "INT",
    "at": "TIMESTAMP(3)",
    "seq": "BIGINT",
    "spots": "ARRAY<ROW<x INT, y ROW<z STRING>>>",
    "marks": "MAP<STRING, ROW<n INT>>",
    "nested": "ROW<a INT, b ARRAY<INT>>",
}
KEYED = {"bucket": "2", "sequence.field": "seq", "fields.note.ignore-retract": "true"}
PLAIN = {"bucket": "4", "bucket-key": "k"}
CASTING = {"disable-explicit-type-casting": "true", **PLAIN}
NULLS = {"alter-column-null-to-not-null.disabled": "false", **PLAIN}
EARLY = {"add-column-before-partition": "true"}


def change(kind, path, value=None):
    """A change as icecomb has it and as the peer is told it."""
    names, kinds = tuple(path.split(".")), {"add", "retype"}
    ours: dict[str, SchemaChange] = {
        "drop": DropColumn(names),
        "rename": RenameColumn(names, value),
        "nullable": UpdateNullability(names, nullable=bool(value)),
        "describe": UpdateDescription(names, value),
        "default": UpdateDefault(names, value),
        "first": MoveColumn(names, Position("FIRST")),
        "after": MoveColumn(names, Position("AFTER", value)),
        "set": SetOption(path, value),
        "unset": RemoveOption(path),
    }
    if kind in kinds:
        parsed = parse_type(value)
        ours |= {"add": AddColumn(names, parsed), "retype": UpdateType(names, parsed)}
        value = parsed.to_json()
    path = [path] if kind in {"set", "unset"} else list(names)
    return ours[kind], {"kind": kind, "path": path, "value": value}


ON_BOTH = [
    [("add", "new", "DECIMAL(9, 2)")],
    [("add", "new", "ROW<a INT, b MAP<STRING, ROW<c INT>>>")],
    [("add", "new", "INT NOT NULL")],
    [("add", "note", "INT")],
    [("add", "nested.c", "INT")],
    [("add", "nested.a", "INT")],
    [("add", "spots.element.w", "STRING")],
    [("add", "spots.element.y.w", "STRING")],
    [("add", "marks.value.m", "INT")],
    [("add", "gone.c", "INT")],
    [("add", "_ROW_ID", "BIGINT")],
    [("add", "_KEY_x", "BIGINT")],
    [("add", "rowkind", "STRING")],
    [("drop", "note")],
    [("drop", "k")],
    [("drop", "day")],
    [("drop", "seq")],
    [("drop", "gone")],
    [("drop", "nested.a")],
    [("drop", "nested.a"), ("drop", "nested.b")],
    [("drop", "spots.element.y")],
    [("rename", "note", "remark")],
    [("rename", "note", "k")],
    [("rename", "day", "date")],
    [("rename", "k", "id")],
    [("rename", "seq", "sequence")],
    [("rename", "gone", "here")],
    [("rename", "note", "_LEVEL")],
    [("rename", "nested.a", "aa")],
    [("rename", "spots.element.x", "east")],
    [("rename", "marks.value.n", "number")],
    [("retype", "small", "BIGINT")],
    [("retype", "small", "TINYINT")],
    [("retype", "small", "STRING")],
    [("retype", "small", "DATE")],
    [("retype", "note", "INT")],
    [("retype", "at", "STRING")],
    [("retype", "at", "TIMESTAMP(6)")],
    [("retype", "at", "DOUBLE")],
    [("retype", "k", "STRING")],
    [("retype", "day", "STRING")],
    [("retype", "nested.a", "BIGINT")],
    [("retype", "nested.b.element", "BIGINT")],
    [("retype", "nested.b", "STRING")],
    [("retype", "nested", "INT")],
    [("retype", "spots.element.y.z", "INT")],
    [("nullable", "note", False)],
    [("nullable", "day", True)],
    [("nullable", "k", True)],
    [("nullable", "nested.a", False)],
    [("describe", "note", "words")],
    [("describe", "spots.element.x", "words")],
    [("default", "small", "5")],
    [("default", "small", "five")],
    [("default", "note", "'five'")],
    [("default", "at", "2024-01-01 10:00:00")],
    [("default", "at", "yesterday")],
    [("default", "small", "5"), ("retype", "small", "BIGINT")],
    [("first", "note")],
    [("after", "note", "small")],
    [("after", "k", "nested")],
    [("after", "note", "note")],
    [("after", "note", "gone")],
    [("set", "write-only", "true")],
    [("set", "bucket", "8")],
    [("set", "bucket", "-1")],
    [("set", "bucket", "0")],
    [("unset", "bucket")],
    [("set", "bucket-key", "small")],
    [("set", "merge-engine", "aggregation")],
    [("set", "deletion-vectors.enabled", "true")],
    [("set", "sequence.field", "nowhere")],
    [("set", "fields.nowhere.aggregate-function", "sum")],
    [("set", "type", "table")],
    [("set", "rowkind.field", "note")],
    [("set", "record-level.time-field", "nowhere")],
    [("set", "changelog-producer", "input")],
    [("add", "new", "INT"), ("rename", "new", "newer"), ("retype", "newer", "BIGINT")],
]
SPECIAL = [
    (CASTING, [("retype", "small", "STRING")]),
    (CASTING, [("retype", "small", "BIGINT")]),
    (NULLS, [("nullable", "note", False)]),
    (NULLS, [("nullable", "nested.a", False)]),
    (EARLY, [("add", "new", "INT")]),
    (EARLY, [("add", "nested.c", "INT")]),
    ({"ignore-delete": "true", **KEYED}, [("set", "ignore-delete", "false")]),
    ({"rowkind.field": "note", **KEYED}, [("drop", "note")]),
    ({"rowkind.field": "note", **KEYED}, [("rename", "note", "remark")]),
]
CASES = [*((options, changes) for options in (KEYED, PLAIN) for changes in ON_BOTH), *SPECIAL]


@pytest.mark.parametrize("filled", [False, True], ids=["empty", "filled"])
def test_changes_end_as_paimon_ends_them(paimon_java, filled):
    row = {"k": 1, "day": "2024-01-01", "note": "+I", "seq": 1}
    wrong = []
    for number, (options, cases) in enumerate(itertools.groupby(CASES, key=lambda case: case[0])):
        name = f"rules_{number}_{filled}"
        keys = () if options in (PLAIN, CASTING, NULLS, EARLY) else ("k", "day")
        parts = [[row]] if filled else []
        source = paimon_java.make(
            name, COLUMNS, *parts, partition=("day",), primary=keys, options=options
        )
        base = source.schemas.latest()
        for _, changes in cases:
            ours, theirs = zip(*(change(*one) for one in changes), strict=True)
            try:
                paimon_java.ask(do="change", table=name, changes=theirs)
                expected = source.schemas.latest().to_json()
                Path(source.schemas.path(1)).unlink(missing_ok=True)
            except PaimonJavaError as error:
                expected = {"refused": str(error)}
            try:
                found = changed(base, ours, has_snapshots=filled).to_json()
            except SchemaError as error:
                found = {"refused": error.message}
            if "refused" in expected and "refused" in found:
                continue
            differing = {
                key: (expected.get(key), found.get(key))
                for key in (*expected, *found)
                if key not in {"id", "timeMillis"} and expected.get(key) != found.get(key)
            }
            if differing:
                wrong.append(f"{options} {changes}: {differing}")
    assert not wrong, "\n".join(wrong)


def test_options_that_never_change_in_paimon_never_change_here(paimon_java):
    assert set(paimon_java.ask(do="immutable")) <= IMMUTABLE


def test_the_table_of_casts_is_paimons(paimon_java):
    kinds = [parse_type(text) for text in ROOTS]
    answers = iter(paimon_java.ask(do="casts", types=[kind.to_json() for kind in kinds]))
    for old, text in zip(kinds, ROOTS, strict=True):
        found = ""
        for new in kinds:
            implicit, explicit = next(answers)
            # Paimon has no cast from a date to a date, and does not need one.
            found += "I" if implicit or old == new else "E" if explicit else "."
        assert found == ROOTS[text], text
        assert can_cast(old, old, explicit=False)
