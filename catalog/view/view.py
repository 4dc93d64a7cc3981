"""A view of a catalog: its query and the schema of its result, and changes of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from icecomb.catalog.commit.commit import commit_version
from icecomb.catalog.commit.pinned import Pinned
from icecomb.catalog.commit.pointer import ViewMetadataVersion
from icecomb.catalog.identifier import Identifier
from icecomb.format.printable_text import printable, printable_lines

if TYPE_CHECKING:
    from icecomb.catalog.commit.pointer import ViewPointer
    from icecomb.format.spec.schema import Schema
    from icecomb.format.spec.view import ViewLogEntry, ViewMetadata, ViewVersion


class View(Pinned[ViewMetadataVersion]):
    """A view as of the last load, refresh or change through this object.

    `icecomb.catalog.commit.pinned` says which version each call is judged on.

    Args:
        identifier: Namespace and name.
        version: The metadata file and its contents.
        pointer: Its pointer in the catalog.
    """

    def __init__(
        self, identifier: Identifier, version: ViewMetadataVersion, pointer: ViewPointer
    ) -> None:
        self.identifier = identifier
        self._version = version
        self._pointer = pointer

    def __repr__(self) -> str:
        queries = "\n".join(
            f"{name}: {sql}" for name, sql in self.current_version().queries.items()
        )
        name = printable(".".join(self.identifier))
        return f"{name} (version {self.metadata.current_version_id})\n{printable_lines(queries)}"

    def name(self) -> Identifier:
        """Return namespace and name."""
        return self.identifier

    @property
    def metadata(self) -> ViewMetadata:
        """The metadata that this object is pinned to."""
        return self._version.metadata

    @property
    def metadata_location(self) -> str:
        """The location of the file with `metadata`."""
        return self._version.location

    @property
    def properties(self) -> Mapping[str, str]:
        """The view's properties."""
        return self.metadata.properties

    def location(self) -> str:
        """Return the folder of its metadata files."""
        return self.metadata.location

    def schema(self) -> Schema:
        """Return the columns of its result."""
        return self.metadata.schema()

    def current_version(self) -> ViewVersion:
        """Return the current version."""
        return self.metadata.current_version

    def versions(self) -> list[ViewVersion]:
        """Return all versions that are kept, the current one included."""
        return list(self.metadata.versions)

    def history(self) -> list[ViewLogEntry]:
        """Return the log of current versions, with the times when they became current."""
        return list(self.metadata.version_log)

    def sql_for(self, dialect: str) -> str | None:
        """Return the query in a dialect, else in the first one that it has."""
        return self.current_version().sql_for(dialect)

    def refresh(self) -> View:
        """Move this object to the view's current metadata, and return it.

        Raises:
            NoSuchViewError: If it was dropped.
        """
        seen = self._version
        self._move(seen, self._pointer.load())
        return self

    def update_properties(
        self, updates: Mapping[str, str] | None = None, removals: Iterable[str] | None = None
    ) -> View:
        """Set and remove properties.

        Raises:
            CommitFailedError: If other writers were first too often; nothing was changed.
            CommitStateUnknownError: If it is unknown whether they were changed.
        """
        from icecomb.format.spec.view import with_properties

        return self.change(lambda base: with_properties(base, updates or {}, removals or ()))

    def change(self, make: Callable[[ViewMetadata], ViewMetadata]) -> View:
        """Commit the result of ``make``, applied to newer metadata if other writers were first.

        Raises:
            CommitFailedError: If other writers were first too often; nothing was changed.
            CommitStateUnknownError: If it is unknown whether it was changed.
        """
        seen = self._version
        _, done = commit_version(self._pointer, seen, lambda base: make(base.metadata))
        self._move(seen, done)
        return self
