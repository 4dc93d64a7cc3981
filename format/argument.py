"""Arguments of values that stand in metadata: of the right type, and within Java's limits.

Python takes any object anywhere, JSON writes most of them, and the next reader refuses the table.
So each value checks its members when it is made.
"""

from __future__ import annotations

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
    """A whole number; those of NumPy become Python's.

    Args:
        what: What it is, for the message.
        value: What was given.
        least: The least that it may be.
        most: The greatest; None for what is read as leniently as ever.
        error: What to raise.

    Raises:
        IcecombError: It is no whole number (a bool and a float are none), or out of range.
    """
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


def any_text(what: str, value: Any, error: type[IcecombError] = ValidationError) -> str:
    """Text, as files may have it already.

    Raises:
        IcecombError: It is no text.
    """
    if not isinstance(value, str):
        raise error(f"{_begun(what)} must be text, not {value!r}", hint="Give a str.")
    return value if type(value) is str else str.__str__(value)


def checked_text(what: str, value: Any, error: type[IcecombError] = ValidationError) -> str:
    """Text that can be written as UTF-8.

    Raises:
        IcecombError: It is no text, or has half a character (a lone surrogate).
    """
    text = any_text(what, value, error)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise error(
                f"{_begun(what)} is no valid Unicode: {value!r}",
                hint="Leave out lone surrogates (U+D800 to U+DFFF).",
            ) from None
    return text


def checked_flag(what: str, value: Any, error: type[IcecombError] = ValidationError) -> bool:
    """True or False.

    Raises:
        IcecombError: It is neither, but, say, a 1 or a text.
    """
    if type(value) is not bool:
        raise error(f"{_begun(what)} must be True or False, not {value!r}", hint="Give a bool.")
    return value


def checked_members(
    what: str, values: Any, kind: type[_T], error: type[IcecombError] = ValidationError
) -> tuple[_T, ...]:
    """Values that are all of one type.

    Raises:
        IcecombError: One of them is not, or there is something else than several values.
    """
    if not isinstance(values, Iterable) or isinstance(values, (str, bytes, Mapping)):
        raise error(
            f"{_begun(what)} must be a sequence of {kind.__name__}, not {values!r}",
            hint=hint_of_pyiceberg(values, kind.__name__) or "Give a list, also of one value.",
        )
    members = tuple(values)
    for member in members:
        if not isinstance(member, kind):
            raise error(
                f"{_begun(what)} must be a sequence of {kind.__name__}: {member!r} is none",
                hint=hint_of_pyiceberg(member, kind.__name__) or "Give values of that type only.",
            )
    return members


def name_of_type(value: Any) -> str:
    """The name of a value's type with its module, which tells types of one name apart."""
    module, name = type(value).__module__, type(value).__qualname__
    return name if module == "builtins" else f"{module}.{name}"


def json_of_pyiceberg(value: Any) -> Any:
    """The JSON of a schema, type, spec or order of PyIceberg, which is the specification's.

    Returns:
        None for what is nothing of PyIceberg.
    """
    dump = getattr(value, "model_dump_json", None) if _is_of_pyiceberg(value) else None
    return None if dump is None else json.loads(dump())


def hint_of_pyiceberg(value: Any, wanted: str) -> str | None:
    """What to do with a value of PyIceberg that is not taken; None for what is none.

    Args:
        value: What was given.
        wanted: Which of the names of `icecomb.format` was expected.
    """
    if not _is_of_pyiceberg(value):
        return None
    return f"It is {name_of_type(value)}: take {wanted} of icecomb.format."


def _is_of_pyiceberg(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "pyiceberg"


def property_texts(what: str, properties: Any) -> dict[str, str]:
    """Properties as the text that metadata knows only.

    Numbers and the like become what `str` makes of them, and a bool is in lower case, as in
    PyIceberg.

    Args:
        what: Whose properties they are, for messages: "property", "snapshot property".
        properties: Names and values, or None for none.

    Raises:
        ValidationError: A name is no text, or a value is None, bytes, or no valid Unicode.
    """
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
    """The value of one property as text; see `property_texts`."""
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
    """The beginning of a sentence."""
    return what[:1].upper() + what[1:]


def _not_bool(value: Any) -> Any:
    if isinstance(value, bool):
        raise TypeError
    return value


def members_or_named(
    owner: str, names: tuple[str, ...], kind: type, args: tuple[Any, ...], named: dict[str, Any]
) -> dict[str, Any]:
    """The arguments of a value that takes its members one by one or as one sequence, by name.

    `Schema(a, b, schema_id=1)`, as PyIceberg writes it, is `Schema((a, b), 1)`. The members are
    called `fields`.

    Args:
        owner: The value's class, for messages.
        names: The names of its arguments, in order.
        kind: The class of a member.
        args: What was given by position.
        named: What was given by name.

    Raises:
        TypeError: An argument is unknown, or given twice.
        ValidationError: A member is one of PyIceberg's.
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
