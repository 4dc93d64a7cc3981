"""The seam between tables and the holder of their pointer: a metastore, or a file system.

A commit swaps the pointer from one metadata file to the next. The outcome is a value: *Committed*
and *Conflict* are returned only on proof; everything else is *Unknown*: nothing is deleted then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeAlias, TypeVar

if TYPE_CHECKING:
    from typing_extensions import Self

    from icecomb.format.holding import Holding
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.view import ViewMetadata


class Described(Protocol):
    """Metadata of a table or a view."""

    @property
    def properties(self) -> Mapping[str, str]:
        """The properties."""


class Version(Protocol):
    """A metadata file of a table or a view, and its contents."""

    kind: ClassVar[str]
    """``table`` or ``view``, for messages."""

    @property
    def location(self) -> str:
        """The location of the file."""

    @property
    def metadata(self) -> Described:
        """The contents of the file."""

    @property
    def uuid(self) -> object:
        """The uuid of the table or view; None if it has none yet."""

    def follows(self, other: Self) -> bool:
        """Return whether this is a later version than another of the same table or view.

        Told by the logs of metadata files; else by what only grows: sequence numbers, numbers in
        the names of files, times.
        """


@dataclass(frozen=True, slots=True)
class MetadataVersion:
    """A metadata file of a table and its contents."""

    kind: ClassVar[str] = "table"
    location: str
    metadata: TableMetadata

    @property
    def uuid(self) -> object:
        """The table's uuid; with format version 1 a later commit may set it first."""
        return self.metadata.table_uuid

    def follows(self, other: MetadataVersion) -> bool:
        """Implement `Version.follows`."""
        if any(entry.metadata_file == other.location for entry in self.metadata.metadata_log):
            return True
        if any(entry.metadata_file == self.location for entry in other.metadata.metadata_log):
            return False
        return self._order > other._order

    @property
    def _order(self) -> tuple[int, int, int]:
        metadata = self.metadata
        return (metadata.last_sequence_number, _number(self.location), metadata.last_updated_ms)


@dataclass(frozen=True, slots=True)
class ViewMetadataVersion:
    """A metadata file of a view and its contents."""

    kind: ClassVar[str] = "view"
    location: str
    metadata: ViewMetadata

    @property
    def uuid(self) -> object:
        """The view's uuid."""
        return self.metadata.view_uuid

    def follows(self, other: ViewMetadataVersion) -> bool:
        """Implement `Version.follows`."""
        return self._order > other._order

    @property
    def _order(self) -> tuple[int, int]:
        log = self.metadata.version_log
        return _number(self.location), log[-1].timestamp_ms if log else 0


def _number(location: str) -> int:
    """Return the number in the name of a metadata file, which each commit raises; else -1."""
    from icecomb.format.spec.metadata_file import metadata_version, version_of

    version = version_of(location)
    return metadata_version(location) if version is None else version


@dataclass(frozen=True, slots=True)
class Committed:
    """The pointer points to the new file, or to one that followed it.

    Attributes:
        found: Whether this was found out by a check, because the reply was lost or an error.
    """

    found: bool = False


@dataclass(frozen=True, slots=True)
class Conflict:
    """Proven that the swap did not happen and never will.

    The evidence in `reason` is for people; `current` is None if the table was dropped.
    """

    reason: str
    current: str | None


@dataclass(frozen=True, slots=True)
class Unknown:
    """The swap may have happened, or may still happen.

    Attributes:
        current: The pointer's last known target; None if it could not be read.
        checked: Whether it can only happen while the pointer has the expected target.
    """

    reason: str
    current: str | None
    cause: Exception
    checked: bool = False


Outcome: TypeAlias = "Committed | Conflict | Unknown"


V = TypeVar("V", bound=Version)
M_contra = TypeVar("M_contra", contravariant=True)


class Owner(Protocol):
    """A table or view whose catalog vouches for its folders."""

    @property
    def name(self) -> str:
        """The name of the table or view, for messages."""

    def own_folders(self) -> Sequence[str]:
        """Return the folders of the table or view, its location first; see `OwnFolders`.

        What only the metadata file says is not among them.
        """


class WriteGuard(Owner, Protocol):
    """A check whether a table may be changed."""

    def check_writable(self, metadata: TableMetadata) -> None:
        """Refuse, before anything is written, a table that must not be changed from here."""

    def check_deletable(self, metadata: TableMetadata) -> None:
        """Refuse to delete files of a table whose files may be those of another table."""


class Pointer(Protocol[V, M_contra]):
    """The pointer of one table or view."""

    @property
    def name(self) -> str:
        """The name of the table or view, for messages."""

    @property
    def properties(self) -> Mapping[str, str]:
        """The properties of the catalog."""

    def load(self) -> V:
        """Load the version that the pointer points to now."""

    def stage(self, base: V | None, metadata: M_contra) -> V:
        """Prepare the version after ``base`` (None: the first); readers do not see it yet."""

    def swap(self, expected: V | None, new: V) -> Outcome:
        """Swap the pointer from ``expected`` (None: new) to ``new``, which `stage` prepared.

        An error of icecomb's is raised only if it is proven that nothing changed.
        """

    def discard(self, new: V) -> None:
        """Delete what `stage` wrote for ``new``, which is proven to be needed by nobody."""

    def queue(self, held: Holding, base: V | None = None) -> bool:
        """Hold the process's lock, which lets its threads commit one after the other.

        Return whether others committed while this thread waited; the end of `held` releases it.
        """

    def wait_in_queue(self, base: V) -> bool:
        """Queue with writers elsewhere, within `queue` and after a lost race.

        Returns once those that queued before are done; False, at once, if no queue is possible. It
        is a courtesy: another writer may still be first.
        """

    def exclusive(self, held: Holding, metadata: Described) -> bool:
        """Keep other writers out until `held` ends; return False if there are no locks.

        The properties of the metadata before the change choose the mode.
        """


class MetadataPointer(WriteGuard, Pointer[MetadataVersion, "TableMetadata"], Protocol):
    """The pointer of one table."""


ViewPointer: TypeAlias = "Pointer[ViewMetadataVersion, ViewMetadata]"
