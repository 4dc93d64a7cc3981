"""Statements as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from icecomb.catalog.table.ref_change import DropRef, MakeRef

Column = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Term:
    """A transform of columns, or a plain column.

    Args:
        transform: The name of the transform, ``identity`` for a plain column.
        columns: The columns in its arguments, as name parts.
        constants: Its other arguments.
    """

    transform: str
    columns: tuple[Column, ...]
    constants: tuple[Any, ...] = ()

    def to_spark(self) -> dict[str, Any]:
        """Return the term in the bridge's form of transforms."""
        arguments = [{"value": constant} for constant in self.constants]
        named = [{"column": list(column)} for column in self.columns]
        return {"name": self.transform, "arguments": arguments + named}

    @property
    def plain_name(self) -> str | None:
        """The term if it is one word, which may name a partition field; None otherwise."""
        one_word = self.transform == "identity" and [len(c) for c in self.columns] == [1]
        return self.columns[0][0] if one_word and not self.constants else None


@dataclass(frozen=True, slots=True)
class AddPartitionField:
    """``ADD PARTITION FIELD term [AS name]``."""

    term: Term
    name: str | None = None


@dataclass(frozen=True, slots=True)
class DropPartitionField:
    """``DROP PARTITION FIELD term``."""

    term: Term


@dataclass(frozen=True, slots=True)
class ReplacePartitionField:
    """``REPLACE PARTITION FIELD term WITH replacement [AS name]``."""

    term: Term
    replacement: Term
    name: str | None = None


@dataclass(frozen=True, slots=True)
class WriteOrderKey:
    """A sort key, with nulls first or last."""

    term: Term
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class SetWriteOrder:
    """``WRITE …``: the distribution and order of written rows.

    Args:
        distribution: The new value of ``write.distribution-mode``; None to leave it unchanged.
        order: The sort order; unsorted without keys.
    """

    distribution: Literal["none", "hash", "range"] | None
    order: tuple[WriteOrderKey, ...] = ()


@dataclass(frozen=True, slots=True)
class SetIdentifierFields:
    """``SET IDENTIFIER FIELDS columns``."""

    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class DropIdentifierFields:
    """``DROP IDENTIFIER FIELDS columns``."""

    columns: tuple[Column, ...]


Statement = (
    AddPartitionField
    | DropPartitionField
    | ReplacePartitionField
    | SetWriteOrder
    | SetIdentifierFields
    | DropIdentifierFields
    | MakeRef
    | DropRef
)
