"""Files of this machine that are named elsewhere.

Who can write to a table's folder on a cluster could otherwise have any file of whoever maintains
the table read, and its rows written into the table by a rewrite.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from icecomb.format.errors import ValidationError
from icecomb.format.storage.location import outside
from icecomb.format.storage.storage_property import LOCAL_PREFIXES

if TYPE_CHECKING:
    import pyarrow as pa

    from icecomb.format.storage.file_io import FileIO

_LOCAL: Final = "file"


def check_local_names(io: FileIO, by: str, locations: Sequence[str] | pa.Array) -> None:
    """Refuse local files named by a file on other storage, unless `local.allowed-prefixes`."""
    if io.scheme_of(by) == _LOCAL:
        return
    # most are spelled alike
    start = f"{by.partition('/')[0]}/"
    if isinstance(locations, Sequence):
        others = [one for one in locations if not one.startswith(start)]
    else:
        others = _otherwise(locations, start)
    local = [one for one in others if io.scheme_of(one) == _LOCAL]
    if not local:
        return
    refused = outside(LOCAL_PREFIXES.of(io.properties), local, {})
    for location in filter(refused.__contains__, local):
        raise ValidationError(
            f"{by} names a file of this machine: {location}",
            hint="Its writer may not be trusted; if it is a file of the table, name its folder "
            f"in the catalog's {LOCAL_PREFIXES.key}.",
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
