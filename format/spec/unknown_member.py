"""Members of JSON objects that this version of icecomb does not know: kept, and written back.

Each object of a metadata file keeps its own under the attribute `extra`, which takes no part in
comparisons: two schemas with the same fields are the same schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import field
from typing import Any


def extra_field() -> Any:
    """The dataclass field `extra`: no unknown members unless given."""
    return field(default_factory=dict, compare=False, repr=False)


def unknown_members(raw: Mapping[str, Any], known: AbstractSet[str]) -> dict[str, Any]:
    """The members of a JSON object but the known ones."""
    if raw.keys() <= known:
        return {}
    return {key: value for key, value in raw.items() if key not in known}
