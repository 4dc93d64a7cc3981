"""Properties: texts by name, parsed by one rule and rejected with one wording everywhere."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final, Generic, Literal, TypeVar

from icecomb.format.errors import ConfigurationError
from icecomb.format.secret import shown

T = TypeVar("T")
_BOOLEANS: Final = {"true": True, "false": False}
_SECONDS: Final = {
    "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "msec": 1e-3, "s": 1.0, "sec": 1.0,
    "m": 60.0, "min": 60.0, "h": 3600.0, "hour": 3600.0, "d": 86400.0, "day": 86400.0,
}  # fmt: skip
DURATION: Final = "a duration such as 300s or 500ms"
_DURATION: Final = re.compile(r"(\d+(?:\.\d*)?)\s*([a-z]*)", re.IGNORECASE)
_ALIKE: Final = 0.88
"""The similarity from which a name is taken for a misspelling of another."""


@dataclass(frozen=True, slots=True)
class Property(Generic[T]):
    """A property that has a meaning, or a family of them with one per column.

    Args:
        key: The name; that of a family ends with a dot, and a column's name follows.
        parse: Converter of a stripped text to a value; raises `ValueError` to reject the text.
        also: Other names, used where the property is not set by its own name.
    """

    key: str
    default: T
    about: str
    accepted: str
    parse: Callable[[str], T]
    also: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the key."""
        return self.key

    def of(
        self, properties: Mapping[str, str], given: object = None, *, default: T | None = None
    ) -> T:
        """Return the value of the property; `given` takes precedence unless None."""
        if given is not None:
            return self.read(given)
        for key in (self.key, *self.also):
            if (text := properties.get(key)) is not None:
                return self.read(text, key)
        return self.default if default is None else default

    def said_by(self, properties: Mapping[str, str]) -> str | None:
        """Return the name by which the property is set; None if it is not set."""
        return next((key for key in (self.key, *self.also) if key in properties), None)

    def of_each(self, properties: Mapping[str, str]) -> dict[str, T]:
        """Return the values of a family by column name; see `of`."""
        return {
            key.removeprefix(self.key): self.read(text, key)
            for key, text in properties.items()
            if key.startswith(self.key)
        }

    def read(self, text: object, name: str | None = None) -> T:
        """Return the value of a text, or of a number or bool that stands for its text."""
        said = str(text).lower() if isinstance(text, bool) else str(text)
        try:
            return self.parse(said.strip())
        except ValueError:
            key = name or self.key
            raise ConfigurationError(
                f"Property {key} cannot be {shown(self.key, said)!r}",
                hint=f"It may be {self.accepted}.",
                property=key,
            ) from None


def flag(key: str, about: str, *, default: bool) -> Property[bool]:
    """Return a property that is ``true`` or ``false``."""
    return Property(key, default, about, "true or false", _boolean)


def number(
    key: str, default: int, about: str, *, least: int | None = None, most: int | None = None
) -> Property[int]:
    """Return a property that is an integer; for one beyond `most`, that one is taken."""
    accepted = "a whole number" + ("" if least is None else f", {least} or more")
    accepted += "" if most is None else f"; beyond {most} it is {most}"
    return Property(key, default, about, accepted, _whole(least, most))


def optional_number(key: str, about: str, *, least: int | None = None) -> Property[int | None]:
    """Return a property that is an integer, or None where it is not set."""
    accepted = "a whole number" + ("" if least is None else f", {least} or more")
    return Property(key, None, about, accepted, _whole(least))


def fraction(key: str, default: float, about: str) -> Property[float]:
    """Return a property that is a number between 0 and 1, both excluded."""
    return Property(key, default, about, "a number between 0 and 1", _between_0_and_1)


def seconds(
    key: str, default: float, about: str, *, unit: Literal["s", "ms"] = "s"
) -> Property[float]:
    """Return a property that is a duration in seconds, as text like ``300s``, ``5min``, ``500ms``.

    Args:
        unit: The unit of a number without a unit.
    """

    def parse(text: str) -> float:
        found = _DURATION.fullmatch(text)
        factor = _SECONDS.get(found[2].lower() or unit) if found else None
        if found is None or factor is None:
            raise ValueError(text)
        return float(found[1]) * factor

    plain = "seconds" if unit == "s" else "milliseconds"
    return Property(key, default, about, f"{DURATION}, or a number of {plain}", parse)


def milliseconds(key: str, default: int, about: str) -> Property[int]:
    """Return a property that is a duration in whole milliseconds."""
    return Property(key, default, about, "a whole number, 0 or more", _whole(0))


def choice(key: str, names: Collection[str], about: str, default: str = "") -> Property[str]:
    """Return a property that is one of several words, ignoring case; by default the first."""
    known = tuple(names)
    accepted = f"{', '.join(known[:-1])} or {known[-1]}"

    def parse(text: str) -> str:
        if text.lower() not in known:
            raise ValueError(text)
        return text.lower()

    return Property(key, default or known[0], about, accepted, parse)


def choices(key: str, names: Collection[str], about: str) -> Property[tuple[str, ...]]:
    """Return a property that is a comma-separated subset of words, ignoring case; default none."""
    known = tuple(names)
    accepted = f"one or more of {', '.join(known[:-1])} and {known[-1]}, separated by commas"

    def parse(text: str) -> tuple[str, ...]:
        said = {part.strip().lower() for part in text.split(",")}
        if not said <= set(known):
            raise ValueError(text)
        return tuple(name for name in known if name in said)

    return Property(key, (), about, accepted, parse)


def text(
    key: str, about: str, accepted: str, is_right: Callable[[str], bool] | None = None
) -> Property[str | None]:
    """Return a property that is a text, or None where it is not set or empty."""

    def parse(said: str) -> str | None:
        if is_right is not None and not is_right(said):
            raise ValueError(said)
        return said or None

    return Property(key, None, about, accepted, parse)


def registered(found: Iterable[object]) -> dict[str, Property[Any]]:
    """Return the properties among values, and in dictionaries among them, by key."""
    groups = (one.values() if isinstance(one, dict) else (one,) for one in found)
    every = (one for group in groups for one in group if isinstance(one, Property))
    return {one.key: one for one in every}


def nearest(key: str, known: Iterable[str], alike: float = _ALIKE) -> str | None:
    """Return the known name of which a name seems to be a misspelling, in any case; else None."""
    return next(iter(similar(key, known, alike)), None)


def similar(name: str, known: Iterable[str], alike: float = 0.6) -> list[str]:
    """Return at most three known names similar to this one, ignoring case, nearest first."""
    by_lowered = {one.lower(): one for one in known}
    return [by_lowered[one] for one in get_close_matches(name.lower(), by_lowered, cutoff=alike)]


def _boolean(said: str) -> bool:
    if said.lower() not in _BOOLEANS:
        raise ValueError(said)
    return _BOOLEANS[said.lower()]


def _whole(least: int | None, most: int | None = None) -> Callable[[str], int]:
    def parse(said: str) -> int:
        # Java allows no underscores between digits, and other engines read these properties, too.
        if not said.isascii() or "_" in said:
            raise ValueError(said)
        value = int(said)
        if least is not None and value < least:
            raise ValueError(said)
        return value if most is None else min(value, most)

    return parse


def _between_0_and_1(said: str) -> float:
    value = float(said)
    if not 0 < value < 1:
        raise ValueError(said)
    return value
