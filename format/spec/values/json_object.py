"""JSON objects of metadata: their required, optional and unknown members.

Each object of a metadata file keeps the members that this version of icecomb does not know in the
attribute `extra`, and writes them back. Comparisons ignore it: two schemas with the same fields
are the same schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import field
from typing import Any, TypeVar

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
