"""Files of this machine that are named elsewhere.

Who can write to a table's folder on a cluster could otherwise have any file of whoever maintains
the table read, and its rows written into the table by a rewrite.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from icecomb.format.errors import ValidationError
from icecomb.format.storage.location import linked_texts
from icecomb.format.storage.storage_property import LOCAL_PREFIXES

if TYPE_CHECKING:
    import pyarrow as pa

    from icecomb.format.storage.file_io import FileIO

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")
_LOCAL: Final = r"^(?i:file:)"
_LOCAL_OR_NONE: Final = rf"{_LOCAL}|^[^:/]*(?:/|$)"


def check_local_names(io: FileIO, by: str, locations: Sequence[str] | pa.Array) -> None:
    """Refuse local files that a file on another storage names.

    Args:
        io: File system that holds the files.
        by: The location of the file that names them.
        locations: The locations that it names.

    Raises:
        ValidationError: If one is local, and `local.allowed-prefixes` does not allow it.
    """
    scheme = _SCHEME.match(by)
    if scheme is None:
        if io.default_scheme == "file":
            return
    elif scheme[0].lower() == "file:":
        return
    if isinstance(locations, Sequence):
        start = scheme[0] if scheme is not None else "/"
        named = [one for one in locations if not one.startswith(start)]
    else:
        named = _otherwise(locations, scheme[0] if scheme is not None else "/")
    if not named:
        return
    local = re.compile(_LOCAL if io.default_scheme != "file" else _LOCAL_OR_NONE)
    if not (found := [one for one in named if local.match(one)]):
        return
    allowed = linked_texts(LOCAL_PREFIXES.of(io.properties), {})
    starts = tuple(f"{prefix.rstrip('/')}/" for prefix in allowed)
    for location, path in zip(found, linked_texts(found, {}), strict=True):
        if not path.startswith(starts):
            raise ValidationError(
                f"{by} names a file of this machine: {location}",
                hint="its writer may not be trusted; if it is a file of the table, name its folder "
                f"in the catalog's {LOCAL_PREFIXES.key}",
                path=location,
            )


def _otherwise(locations: pa.Array, start: str) -> list[str]:
    """Return the distinct locations that do not begin with a text."""
    import pyarrow.compute as pc

    alike = pc.starts_with(locations, start)
    if pc.all(alike).as_py() is not False:
        return []
    found: list[str] = pc.unique(locations.filter(pc.invert(alike))).to_pylist()
    return found
