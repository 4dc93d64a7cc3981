"""Protocol messages as dataclasses, parsed and written according to their members' types.

Both sides are strict: missing and unknown members are refused, so that the two cannot drift apart
unnoticed.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, Union, get_args, get_origin, get_type_hints

if TYPE_CHECKING:
    from typing_extensions import Self

PROTOCOL: Final = 39
"""The version of the protocol, part of the greeting: bridge and planner must agree."""
Long: TypeAlias = int
"""A number that needs more than the 32 bits of ``int`` in the bridge."""

_SCALARS = frozenset({str, int, bool, float, types.NoneType})
_Reader = Callable[[Any], Any]
_KNOWN: dict[type[Any], dict[str, _Reader]] = {}


@dataclass(frozen=True, slots=True)
class Message:
    """A request, an answer, or a part of one."""

    @classmethod
    def parse(cls, json: Any) -> Self:
        """Parse a message from JSON.

        Raises:
            ValueError: If a member is missing, unknown, or of another type.
        """
        readers = _readers(cls)
        if not isinstance(json, dict) or json.keys() != readers.keys():
            found = sorted(json) if isinstance(json, dict) else type(json).__name__
            raise ValueError(
                f"{cls.__name__} has the members {sorted(readers)}, not {found}: bridge and "
                "planner are of different versions"
            )
        return cls(**{name: read(json[name]) for name, read in readers.items()})

    def to_json(self) -> dict[str, Any]:
        """Return the message as JSON."""
        return {name: _plain(getattr(self, name)) for name in _readers(type(self))}


@dataclass(frozen=True, slots=True)
class Opaque(Message):
    """A part of a message that the bridge returns unchanged: it has no record there."""


@dataclass(frozen=True, slots=True)
class Reported(Message):
    """The report of a task, written as JSON there: the bridge's lists of them are JSON."""


@dataclass(frozen=True, slots=True)
class Request(Message):
    """A request to the planner, of one of the two kinds below."""


@dataclass(frozen=True, slots=True)
class Repeatable(Request):
    """A request that may be executed twice: the bridge repeats it if the planner is lost.

    It changes nothing, or is idempotent.
    """


@dataclass(frozen=True, slots=True)
class Unrepeatable(Request):
    """A request that changes something: if its answer is lost, it may have been executed."""


def _readers(message: type[Message]) -> dict[str, _Reader]:
    known = _KNOWN.get(message)
    if known is None:
        known = _KNOWN[message] = {
            name: _reader(kind, f"{message.__name__}.{name}")
            for name, kind in get_type_hints(message).items()
        }
    return known


def _reader(kind: Any, name: str) -> _Reader:
    if kind is Any:
        return lambda value: value
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        given = _reader(next(a for a in arguments if a is not types.NoneType), name)
        return lambda value: None if value is None else given(value)
    if origin is tuple:
        element = _reader(arguments[0], name)
        return lambda value: tuple(element(each) for each in _checked(value, list, name))
    if origin is not None:
        member = _reader(arguments[1], name)
        return lambda value: {
            key: member(each) for key, each in _checked(value, dict, name).items()
        }
    if issubclass(kind, Message):
        parse: _Reader = kind.parse
        return parse
    return lambda value: _checked(value, kind, name)


def _checked(value: Any, kind: type, name: str) -> Any:
    # bool is a subclass of int
    if type(value) is not kind:
        raise ValueError(f"{name} is {kind.__name__}, not {value!r}")
    return value


def _plain(value: Any) -> Any:
    if type(value) in _SCALARS:
        return value
    if isinstance(value, Message):
        return value.to_json()
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return value
