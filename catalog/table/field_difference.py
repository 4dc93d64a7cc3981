"""Differences between the fields of two schemas of any format, matched by id at all depths."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Final

ROOT: Final = -1
"""The parent of columns."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference between two schemas.

    Attributes:
        kind: `added`, `dropped`, `renamed`, `moved`, or the aspect that changed.
        path: The field's full name, in the newer schema if it is there; or the name of
            something that is not a field.
        before: The old value; None if it did not exist.
        after: The new value; None if it does not exist.
        field_id: The field's id; None for something that is not a field.
    """

    kind: str
    path: str
    before: Any
    after: Any
    field_id: int | None = None


@dataclass(frozen=True, slots=True)
class FieldPosition:
    """A field in its schema.

    Attributes:
        path: The field's full name, with those of its parents.
        parent: The id of the field that holds it; `ROOT` for a column.
        text: The full type, for an added or dropped field.
        aspects: Other aspects that may change, by kind of difference.
    """

    field_id: int
    name: str
    path: str
    parent: int
    text: str
    aspects: Mapping[str, Any]


def field_differences(
    old: Iterable[FieldPosition], new: Iterable[FieldPosition]
) -> Iterator[Difference]:
    """Yield the differences from one schema's fields to another's, dropped ones first.

    Args:
        old: The old fields in order, a parent before its children.
        new: The new fields, likewise.
    """
    before = {position.field_id: position for position in old}
    after = {position.field_id: position for position in new}
    for field_id, position in before.items():
        if field_id not in after:
            yield Difference("dropped", position.path, position.text, None, field_id)
    moved = _moved(before, after)
    for field_id, position in after.items():
        known = before.get(field_id)
        if known is None:
            yield Difference("added", position.path, None, position.text, field_id)
            continue
        if known.name != position.name:
            yield Difference("renamed", position.path, known.name, position.name, field_id)
        for kind, is_ in position.aspects.items():
            if (was := known.aspects[kind]) != is_:
                yield Difference(kind, position.path, was, is_, field_id)
        if field_id in moved:
            was, is_ = _neighbor(before, known), _neighbor(after, position)
            yield Difference("moved", position.path, was, is_, field_id)


def _moved(before: Mapping[int, FieldPosition], after: Mapping[int, FieldPosition]) -> set[int]:
    moved: set[int] = set()
    for parent in {position.parent for position in after.values()}:
        old, new = (
            [i for i, p in positions.items() if p.parent == parent and i in before and i in after]
            for positions in (before, after)
        )
        blocks = SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
        kept = {i for block in blocks for i in new[block.b : block.b + block.size]}
        moved |= set(new) - kept
    return moved


def _neighbor(positions: Mapping[int, FieldPosition], position: FieldPosition) -> str:
    names = [p.name for p in positions.values() if p.parent == position.parent]
    at = names.index(position.name)
    return f"after {names[at - 1]}" if at else "first"
