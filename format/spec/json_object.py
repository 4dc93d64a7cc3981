"""JSON objects of metadata: the members they must have, and those that nobody here knows.

Each object of a metadata file keeps the members that this version of icecomb does not know under
the attribute `extra`, and writes them back. It takes no part in comparisons: two schemas with the
same fields are the same schema.
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
    """A member that an object must have.

    Args:
        raw: The parsed JSON.
        key: The member.
        kind: Its type; a bool is no number.
        what: What the object is, where nobody puts that before the message.
        error: What to raise.

    Raises:
        IcecombError: `raw` is no object, the member is missing, or of another type.
    """
    invalid = f"Invalid {what}: " if what else ""
    if not isinstance(raw, dict):
        raise error(f"{invalid}no object with {key!r}: {raw!r}", hint="Write it as to_json does.")
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
    """A member that an object may have, None where it has not; see `required`."""
    return None if raw.get(key) is None else required(raw, key, kind, what, error)


def extra_field() -> Any:
    """The dataclass field `extra`: no unknown members unless given."""
    return field(default_factory=dict, compare=False, repr=False)


def unknown_members(raw: Mapping[str, Any], known: AbstractSet[str]) -> dict[str, Any]:
    """The members of a JSON object but the known ones."""
    if raw.keys() <= known:
        return {}
    return {key: value for key, value in raw.items() if key not in known}
