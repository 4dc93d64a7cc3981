"""Metadata tables: the contents of metadata, manifests and delete files as Arrow rows.

Names, columns, order, types and field ids are Iceberg Java's. `Inspect` is the entry point; each
table is read by a `MetadataScan`, which filters and selects before decoding.
"""

from importlib import import_module
from typing import Any

_HOMES = {
    "Inspect": "icecomb.format.inspect.inspection",
    "MetadataScan": "icecomb.format.inspect.metadata_scan",
}
__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
