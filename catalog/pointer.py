"""The seam between tables and whoever holds their pointer: a metastore, or a file system.

A commit swaps the pointer from one metadata file to the next. The outcome is a value: *Committed*
and *Conflict* are said only on proof; everything else is *Unknown*, and then nothing is deleted.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeAlias, TypeVar

if TYPE_CHECKING:
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.view import ViewMetadata


class Described(Protocol):
    """Metadata of a table or a view."""

    @property
    def properties(self) -> Mapping[str, str]:
        """Its properties."""


class Version(Protocol):
    """A metadata file of a table or a view, and what is in it."""

    kind: ClassVar[str]
    """What it is of, as messages say it."""

    @property
    def location(self) -> str:
        """The file."""

    @property
    def metadata(self) -> Described:
        """What is in it."""

    @property
    def uuid(self) -> object:
        """The identity of the table or view; None if it has none yet."""


@dataclass(frozen=True, slots=True)
class MetadataVersion:
    """A metadata file of a table and what is in it."""

    kind: ClassVar[str] = "table"
    location: str
    metadata: TableMetadata

    @property
    def uuid(self) -> object:
        """A table of format version 1 may get its identity only with a later commit."""
        return self.metadata.table_uuid


@dataclass(frozen=True, slots=True)
class ViewMetadataVersion:
    """A metadata file of a view and what is in it."""

    kind: ClassVar[str] = "view"
    location: str
    metadata: ViewMetadata

    @property
    def uuid(self) -> object:
        """The view's identity."""
        return self.metadata.view_uuid


@dataclass(frozen=True, slots=True)
class Committed:
    """The pointer points at the new file, or at one that followed it.

    Attributes:
        found: This was found out by looking, because the answer was lost or was an error.
    """

    found: bool = False


@dataclass(frozen=True, slots=True)
class Conflict:
    """Proven that the swap did not happen and never will.

    Attributes:
        reason: What was found, for people.
        current: Where the pointer is instead; None if the table is gone.
    """

    reason: str
    current: str | None


@dataclass(frozen=True, slots=True)
class Unknown:
    """The swap may have happened, or may still happen.

    Attributes:
        reason: What went wrong, for people.
        current: Where the pointer was last seen; None if it could not be looked at.
        cause: The failure behind it.
        checked: Whether it can only happen while the pointer is where the swap expected it.
    """

    reason: str
    current: str | None
    cause: Exception
    checked: bool = False


Outcome: TypeAlias = "Committed | Conflict | Unknown"


V = TypeVar("V", bound=Version)
M_contra = TypeVar("M_contra", contravariant=True)


class WriteGuard(Protocol):
    """Says whether a table may be changed."""

    def check_writable(self, metadata: TableMetadata) -> None:
        """Refuse, before anything is written, a table that must not be changed from here.

        Args:
            metadata: What the table is like before the change.

        Raises:
            UnsupportedError, ValidationError: If it must not.
        """


class Pointer(Protocol[V, M_contra]):
    """The pointer of one table or view."""

    @property
    def name(self) -> str:
        """The table or view, for messages."""

    def load(self) -> V:
        """What the pointer points at now.

        Raises:
            NoSuchTableError, NoSuchViewError: If there is none of this name.
        """

    def stage(self, base: V | None, metadata: M_contra) -> V:
        """Prepare the version after ``base`` (None: the first); readers do not see it yet.

        Raises:
            ValidationError: If the catalog cannot hold such metadata.
        """

    def swap(self, expected: V | None, new: V) -> Outcome:
        """Point from ``expected`` (None: it is new) to ``new``, which `stage` prepared.

        Raises:
            IcecombError: If refused, or not reached: proven that nothing changed.
        """

    def discard(self, new: V) -> None:
        """Delete what `stage` wrote for ``new``, of which it is proven that nobody needs it."""

    def queue(self, base: V | None = None) -> AbstractContextManager[bool]:
        """This process's turn: its threads commit to it one after the other.

        Its value says whether others had their turn meanwhile.

        Args:
            base: The version to commit on, where it is known.
        """

    def ask_for_turn(self, base: V) -> bool:
        """Within `queue`, after a lost race: asks writers elsewhere to let this one go first.

        Returns when those who asked before have gone; False, at once, where nobody can be asked.
        It is a courtesy: another writer may be first again.

        Args:
            base: The version that was to be followed.
        """

    def exclusive(self, metadata: Described) -> AbstractContextManager[bool]:
        """Keep other writers out for several calls; False where there are no locks.

        Args:
            metadata: What it is like before the change: its properties choose the mode.
        """


class MetadataPointer(WriteGuard, Pointer[MetadataVersion, "TableMetadata"], Protocol):
    """One table's pointer."""


ViewPointer: TypeAlias = "Pointer[ViewMetadataVersion, ViewMetadata]"
