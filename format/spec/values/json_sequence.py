"""Long lists of a metadata file, whose entries are decoded on access.

A table may have tens of thousands of snapshots, of which a program needs a few: entries remain
parsed JSON, are written back as such, and become values on access. Their text is made once, however
many commits add to them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, Generic, TypeVar, overload

T = TypeVar("T")
_ENCODER: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)


class JsonSequence(Sequence[T], Generic[T]):
    """An immutable sequence of values, some of which are still JSON objects for `decode`."""

    __slots__ = ("_decode", "_items", "_text")

    def __init__(self, items: tuple[Any, ...], decode: Callable[[Any], T]) -> None:
        self._items = items
        self._decode = decode
        self._text = ("", 0)
        """The text of the first entries, and their number."""

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> JsonSequence[T]: ...

    def __getitem__(self, index: int | slice) -> T | JsonSequence[T]:
        if isinstance(index, slice):
            return JsonSequence(self._items[index], self._decode)
        return self._value(self._items[index])

    def __iter__(self) -> Iterator[T]:
        return map(self._value, self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or len(self) != len(other):
            return False
        return all(mine == theirs for mine, theirs in zip(self, other, strict=True))

    def __hash__(self) -> int:
        return hash(len(self))

    def __repr__(self) -> str:
        return repr(tuple(self))

    def _value(self, item: Any) -> T:
        return self._decode(item) if isinstance(item, dict) else item

    def with_last(self, *values: T) -> JsonSequence[T]:
        """Return this sequence with values appended; decodes nothing."""
        longer = JsonSequence((*self._items, *values), self._decode)
        longer._text = self._text
        return longer

    def added_to(self, base: JsonSequence[T]) -> Iterator[T]:
        """Return the decoded values that ``base`` lacks; those still JSON were read from a file."""
        before = len(base._items)
        if before and len(self) >= before and self._items[before - 1] is base._items[-1]:
            new: Iterable[Any] = self._items[before:]
        else:
            known = set(map(id, base._items))
            new = (item for item in self._items if id(item) not in known)
        return (item for item in new if not isinstance(item, dict))

    def where(self, member: str, keep: Callable[[Any], bool]) -> JsonSequence[T]:
        """Return the entries of which a member passes a test; decodes nothing."""
        pairs = zip(self._items, self.members(member), strict=True)
        return JsonSequence(tuple(i for i, value in pairs if keep(value)), self._decode)

    def members(self, member: str, default: Any = None) -> Iterator[Any]:
        """Return one member of each entry, by its name in JSON; decodes nothing."""
        attribute = member.replace("-", "_")
        return (
            i.get(member, default) if isinstance(i, dict) else getattr(i, attribute)
            for i in self._items
        )

    def to_text(self) -> str:
        """Return the entries as JSON text, with commas; those never decoded are unchanged."""
        text, count = self._text
        if count < len(self._items):
            rest = [i if isinstance(i, dict) else i.to_json() for i in self._items[count:]]
            text += ("," if count else "") + json_text(rest)[1:-1]
            self._text = (text, len(self._items))
        return text


def lazily(values: Sequence[T], decode: Callable[[Any], T]) -> JsonSequence[T]:
    """Return the same sequence as a `JsonSequence`."""
    return values if isinstance(values, JsonSequence) else JsonSequence(tuple(values), decode)


def json_text(value: Any) -> str:
    """Return the text of a JSON value, without spaces."""
    return _ENCODER.encode(value)
