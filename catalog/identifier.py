"""Names of namespaces and tables: a text with dots, or a tuple of parts."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from icecomb.format.argument import checked_members
from icecomb.format.errors import NoSuchNamespaceError, NoSuchTableError, ValidationError

Identifier: TypeAlias = "tuple[str, ...]"
"""The parts of a name, the table last."""
Name: TypeAlias = "str | Iterable[str]"
"""A name as ``"db.table"`` or ``("db", "table")``."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A catalog's entry of a table; `metadata_location` is None if it is not Iceberg."""

    identifier: Identifier
    location: str
    metadata_location: str | None


@dataclass(frozen=True, slots=True)
class AbandonedLock:
    """A lock on a table whose holder must be dead.

    Attributes:
        identifier: The table.
        lock_id: The lock's number in the catalog.
        holder: The holder, for people.
    """

    identifier: Identifier
    lock_id: int
    holder: str


def parts_of(name: str | Iterable[str]) -> Identifier:
    """Split a text ``name`` at its dots; return other sequences as a tuple."""
    return tuple(name.split(".")) if isinstance(name, str) else checked_members("name", name, str)


def parse_identifier(name: str | Iterable[str]) -> Identifier:
    """Return the parts of a name, which must not be empty; see `parts_of`."""
    parts = parts_of(name)
    if not parts or not all(parts):
        raise ValidationError(
            f"{name!r} is not a name: a part of it is empty",
            hint="Name a table as db.table, a namespace as db.",
        )
    return parts


def database_of(namespace: str | Iterable[str]) -> str:
    """Return the Hive database that a namespace of exactly one level names."""
    parts = parts_of(namespace)
    if len(parts) != 1 or not parts[0]:
        raise NoSuchNamespaceError(
            f"A namespace of a Hive metastore has one level, not {'.'.join(parts) or 'none'}",
            hint="Name one database.",
        )
    return parts[0].lower()


def database_and_table(name: str | Iterable[str]) -> tuple[str, str]:
    """Return database and table of a name in a metastore, which folds both to lower case."""
    parts = parts_of(name)
    if len(parts) != 2 or not all(map(_is_text, parts)):
        raise NoSuchTableError(
            f"There is no table {'.'.join(parts) or 'without a name'}",
            hint="Name it namespace.table.",
        )
    return parts[0].lower(), parts[1].lower()


def _is_text(part: str) -> bool:
    try:
        return bool(part.encode())
    except UnicodeEncodeError:
        return False


def name_pattern(text: str) -> re.Pattern[str]:
    """Compile a pattern of whole names."""
    return re.compile(".*".join(map(re.escape, text.split("*"))), re.DOTALL)
