"""Checks of the arguments of metadata values: the right types, and within Java's limits.

Python accepts any object anywhere, JSON writes most of them, and the next reader rejects the table.
So each value checks its members when it is created.
"""

from __future__ import annotations

import datetime as dt
import json
import operator
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeVar

from icecomb.format.errors import IcecombError, ValidationError

MAX_INT: Final = 2**31 - 1
"""The greatest `int` of the specification; the least is `-MAX_INT - 1`."""
MAX_LONG: Final = 2**63 - 1
"""The greatest `long` of the specification; the least is `-MAX_LONG - 1`."""

_T = TypeVar("_T")


def checked_int(
    what: str,
    value: Any,
    least: int = -MAX_INT - 1,
    most: int | None = MAX_INT,
    error: type[IcecombError] = ValidationError,
) -> int:
    """Return a value as an int between `least` and `most` (None: no limit); bools are refused."""
    try:
        number = value if type(value) is int else operator.index(_not_bool(value))
    except TypeError:
        fraction = isinstance(value, float) and value.is_integer()
        raise error(
            f"{_begun(what)} must be a whole number, not {value!r}",
            hint=f"Write int({value!r})." if fraction else "Give an int.",
        ) from None
    span = f"{least} or more" if most is None else f"{least} to {most}"
    if number < least or (most is not None and number > most):
        raise error(
            f"{_begun(what)} is {number}, must be {span}", hint="Give a number in that range."
        )
    return number


def checked_instant(what: str, value: Any, least: int = -MAX_LONG - 1) -> int:
    """Return a point in time as milliseconds since 1970-01-01 UTC, rounded down.

    A time without a zone is refused: it is local to those who call `datetime.now()`, and UTC to
    those who call `datetime.utcnow()`; files that are hours younger would be deleted.
    """
    if not isinstance(value, dt.datetime):
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise ValidationError(
                f"{_begun(what)} must be a point in time, not {value!r}",
                hint="Give a datetime with a zone, as datetime.now(timezone.utc) - "
                "timedelta(days=7), or milliseconds since 1970-01-01 UTC.",
            )
        return checked_int(what, value, least, MAX_LONG)
    if value.utcoffset() is None:
        raise ValidationError(
            f"{_begun(what)} needs a zone: {value}",
            hint="Call .astimezone() for the zone of this machine, or "
            ".replace(tzinfo=timezone.utc).",
        )
    epoch = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
    return checked_int(what, (value - epoch) // dt.timedelta(milliseconds=1), least, MAX_LONG)


def any_text(what: str, value: Any, error: type[IcecombError] = ValidationError) -> str:
    """Return a text, which need not be valid Unicode: existing files may have such text."""
    if not isinstance(value, str):
        raise error(f"{_begun(what)} must be text, not {value!r}", hint="Give a str.")
    return value if type(value) is str else str.__str__(value)


def checked_text(what: str, value: Any, error: type[IcecombError] = ValidationError) -> str:
    """Return a text that can be written as UTF-8: without a lone surrogate (half a character)."""
    text = any_text(what, value, error)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise error(
                f"{_begun(what)} is not valid Unicode: {value!r}",
                hint="Leave out lone surrogates (U+D800 to U+DFFF).",
            ) from None
    return text


def checked_flag(what: str, value: Any, error: type[IcecombError] = ValidationError) -> bool:
    """Return a bool; others, such as 1 or a text, are refused."""
    if type(value) is not bool:
        raise error(f"{_begun(what)} must be True or False, not {value!r}", hint="Give a bool.")
    return value


def check_flags(**flags: Any) -> None:
    """Check that arguments, by name, are bools."""
    for name, value in flags.items():
        checked_flag(f"argument {name}", value)


def checked_members(
    what: str, values: Any, kind: type[_T], error: type[IcecombError] = ValidationError
) -> tuple[_T, ...]:
    """Return values, all of one type, as a tuple."""
    if not isinstance(values, Iterable) or isinstance(values, (str, bytes, Mapping)):
        raise error(
            f"{_begun(what)} must be a sequence of {kind.__name__}, not {values!r}",
            hint=hint_of_pyiceberg(values, kind.__name__) or "Give a list, also of one value.",
        )
    members = tuple(values)
    for member in members:
        if not isinstance(member, kind):
            raise error(
                f"{_begun(what)} must be a sequence of {kind.__name__}: {member!r} is not one",
                hint=hint_of_pyiceberg(member, kind.__name__) or "Give values of that type only.",
            )
    return members


def name_of_type(value: Any) -> str:
    """Return the name of a value's type with its module, which distinguishes types of one name."""
    module, name = type(value).__module__, type(value).__qualname__
    return name if module == "builtins" else f"{module}.{name}"


def json_of_pyiceberg(value: Any) -> Any:
    """Return the JSON of PyIceberg's schema, type, spec or order; None for any other value."""
    dump = getattr(value, "model_dump_json", None) if _is_of_pyiceberg(value) else None
    return None if dump is None else json.loads(dump())


def hint_of_pyiceberg(value: Any, wanted: str) -> str | None:
    """Return a hint at `wanted` for a value of PyIceberg; None for any other value."""
    if not _is_of_pyiceberg(value):
        return None
    return f"It is {name_of_type(value)}: use {wanted} of icecomb.format."


def _is_of_pyiceberg(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "pyiceberg"


def property_texts(what: str, properties: Any) -> dict[str, str]:
    """Return properties as text, by `str` or, for bools, in lower case, as in PyIceberg."""
    if properties is None:
        return {}
    if not isinstance(properties, Mapping):
        raise ValidationError(
            f"Names and values are expected as {what}, not {properties!r}",
            hint='Give a dictionary, as {"name": "value"}.',
        )
    return {
        checked_text(f"name of a {what}", name): property_text(f"{what} {name!r}", value)
        for name, value in properties.items()
    }


def property_text(what: str, value: Any) -> str:
    """Return the value of one property as text; see `property_texts`."""
    if value is None or isinstance(value, (bytes, bytearray, memoryview)):
        raise ValidationError(
            f"{_begun(what)} must be text, not {value!r}",
            hint="Leave out what has no value." if value is None else "Decode it.",
        )
    if isinstance(value, str):
        return checked_text(what, value)
    text = str(value)
    # NumPy has truth values of its own
    return checked_text(what, text.lower() if text in {"True", "False"} else text)


def _begun(what: str) -> str:
    """Return words with their first letter capitalized, and an argument's name as it is."""
    return what if "_" in what.partition(" ")[0] else what[:1].upper() + what[1:]


def _not_bool(value: Any) -> Any:
    if isinstance(value, bool):
        raise TypeError
    return value


def members_or_named(
    owner: str, names: tuple[str, ...], kind: type, args: tuple[Any, ...], named: dict[str, Any]
) -> dict[str, Any]:
    """Return arguments by name for a class whose members come one by one or as a sequence.

    `Schema(a, b, schema_id=1)`, PyIceberg's form, is the same as `Schema((a, b), 1)`.
    """
    for value in args:
        hint = hint_of_pyiceberg(value, kind.__name__)
        if hint is not None and type(value).__name__ == kind.__name__:
            raise ValidationError(f"{owner} takes no {name_of_type(value)}: {value!r}", hint=hint)
    one_by_one = bool(args) and all(isinstance(value, kind) for value in args)
    placed = {"fields": args} if one_by_one else dict(zip(names, args, strict=False))
    unknown = named.keys() - set(names)
    if unknown or (len(args) > len(names) and not one_by_one):
        what = f"an argument {min(unknown)!r}" if unknown else f"{len(args)} arguments by position"
        raise TypeError(f"{owner} does not take {what}, but {', '.join(names)}")
    if twice := placed.keys() & named.keys():
        raise TypeError(f"{owner} got two values for {min(twice)!r}")
    return {**placed, **named}
