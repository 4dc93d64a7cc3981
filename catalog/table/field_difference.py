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
class FieldPlace:
    """A field in its schema.

    Attributes:
        field_id: The field's id.
        name: The field's name.
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


def field_differences(old: Iterable[FieldPlace], new: Iterable[FieldPlace]) -> Iterator[Difference]:
    """Yield the differences from one schema's fields to another's, dropped ones first.

    Args:
        old: The old fields in order, a parent before its children.
        new: The new fields, likewise.
    """
    before = {place.field_id: place for place in old}
    after = {place.field_id: place for place in new}
    for field_id, place in before.items():
        if field_id not in after:
            yield Difference("dropped", place.path, place.text, None, field_id)
    moved = _moved(before, after)
    for field_id, place in after.items():
        known = before.get(field_id)
        if known is None:
            yield Difference("added", place.path, None, place.text, field_id)
            continue
        if known.name != place.name:
            yield Difference("renamed", place.path, known.name, place.name, field_id)
        for kind, is_ in place.aspects.items():
            if (was := known.aspects[kind]) != is_:
                yield Difference(kind, place.path, was, is_, field_id)
        if field_id in moved:
            was, is_ = _neighbor(before, known), _neighbor(after, place)
            yield Difference("moved", place.path, was, is_, field_id)


def _moved(before: Mapping[int, FieldPlace], after: Mapping[int, FieldPlace]) -> set[int]:
    moved: set[int] = set()
    for parent in {place.parent for place in after.values()}:
        old, new = (
            [i for i, p in places.items() if p.parent == parent and i in before and i in after]
            for places in (before, after)
        )
        blocks = SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
        kept = {i for block in blocks for i in new[block.b : block.b + block.size]}
        moved |= set(new) - kept
    return moved


def _neighbor(places: Mapping[int, FieldPlace], place: FieldPlace) -> str:
    names = [p.name for p in places.values() if p.parent == place.parent]
    at = names.index(place.name)
    return f"after {names[at - 1]}" if at else "first"
