"""Versions of engines that read tables of format version 3."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_FROM: Final = {"hive": "4.2", "impala": "5"}
"""The first versions of engines that read format version 3 of tables; those of the others are not
their own, but those of Iceberg's library with them."""


def too_old_engines(engines: Iterable[str], format_version: int) -> str:
    """Return the engines too old for a format version, with the first versions that are not.

    They are joined by "and"; empty where there are none.
    """
    if format_version <= 2:
        return ""
    return " and ".join(f"{one} before {_FROM[one]}" for one in engines if one in _FROM)
