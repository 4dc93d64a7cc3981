"""JSON objects of metadata: their required, optional and unknown members.

Each object of a metadata file keeps the members that this version of icecomb does not know in the
attribute `extra`, and writes them back. Comparisons ignore it: two schemas with the same fields
are the same schema.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set as AbstractSet
from dataclasses import field
from typing import Any, Final, Generic, TypeVar, overload

from icecomb.format.errors import IcecombError, ValidationError

_T = TypeVar("_T")


def required(
    raw: Any,
    key: str,
    kind: type[_T],
    what: str = "",
    error: type[IcecombError] = ValidationError,
) -> _T:
    """Return a required member of an object, else raise `error`; a bool is not an int.

    Args:
        what: The kind of object, where no caller puts it before the message.
    """
    invalid = f"Invalid {what}: " if what else ""
    if not isinstance(raw, dict):
        raise error(
            f"{invalid}not an object with {key!r}: {raw!r}", hint="Write it as to_json does."
        )
    value = raw.get(key)
    if type(value) is kind:
        return value
    if value is None:
        raise error(
            f"{invalid}{key!r} is missing",
            hint="Give all required members of the specification.",
        )
    raise error(
        f"{invalid}{key!r} is {value!r}, not of type {kind.__name__}",
        hint="Give a value of that type.",
    )


def optional(
    raw: Mapping[str, Any],
    key: str,
    kind: type[_T],
    what: str = "",
    error: type[IcecombError] = ValidationError,
) -> _T | None:
    """Return an optional member of an object, None if it is missing; see `required`."""
    return None if raw.get(key) is None else required(raw, key, kind, what, error)


def extra_field() -> Any:
    """Return the dataclass field `extra`: by default no unknown members."""
    return field(default_factory=dict, compare=False, repr=False)


def unknown_members(raw: Mapping[str, Any], known: AbstractSet[str]) -> dict[str, Any]:
    """Return the members of a JSON object that are not known."""
    if raw.keys() <= known:
        return {}
    return {key: value for key, value in raw.items() if key not in known}


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
