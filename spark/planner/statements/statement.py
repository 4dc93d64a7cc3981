"""What a statement says, as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from icecomb.catalog.ref_change import DropRef, MakeRef

Column = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Term:
    """A transform of columns, or a column as it is.

    Args:
        transform: Its name, ``identity`` for a column as it is.
        columns: The columns it takes, by their parts.
        constants: What else it takes.
    """

    transform: str
    columns: tuple[Column, ...]
    constants: tuple[Any, ...] = ()

    def to_spark(self) -> dict[str, Any]:
        """The term as the bridge writes transforms."""
        arguments = [{"value": constant} for constant in self.constants]
        named = [{"column": list(column)} for column in self.columns]
        return {"name": self.transform, "arguments": arguments + named}

    @property
    def plain_name(self) -> str | None:
        """The one word that the term is, which may name a partition field; None if it is more."""
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
class SortKey:
    """One key of an order; its nulls stand first or last."""

    term: Term
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class SetWriteOrder:
    """``WRITE …``: how rows are spread over tasks and sorted as they are written.

    Args:
        distribution: The new value of ``write.distribution-mode``; None leaves it.
        order: The sort order, which is none without keys.
    """

    distribution: Literal["none", "hash", "range"] | None
    order: tuple[SortKey, ...] = ()


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
