"""Iceberg views in a Hive metastore."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from icecomb.catalog.configuration.setting import Properties
from icecomb.catalog.hive.entries import Entries
from icecomb.catalog.hive.thrift.client import HiveClient
from icecomb.catalog.hive.view_pointer import (
    ICEBERG_VIEW,
    HiveViewPointer,
    view_named,
    view_pointed_at,
)
from icecomb.catalog.identifier import Identifier, database_and_table, parts_of
from icecomb.catalog.view.view import View
from icecomb.format.errors import NoSuchViewError
from icecomb.format.holding import Holding

if TYPE_CHECKING:
    from icecomb.catalog.commit.commit_status import CommitStatus
    from icecomb.catalog.identifier import Name
    from icecomb.format.spec.view.view import ViewDefinition
    from icecomb.format.storage.file_io import FileIO


class HiveViews:
    """The views of a metastore; see `icecomb.catalog.view.view_catalog.Views`."""

    def __init__(
        self, client: HiveClient, io: FileIO, properties: Properties, entries: Entries
    ) -> None:
        self._client = client
        self._io = io
        self._properties = properties
        self._entries = entries

    def listed(self, namespace: Name) -> list[Identifier]:
        """Implement `ViewCatalog.list_views`."""

        def views(database: str) -> list[str]:
            return self._client.table_names_of_type(database, "VIRTUAL_VIEW")

        return self._entries.listed(namespace, ICEBERG_VIEW, views)

    def load(self, identifier: Name) -> View:
        """Implement `ViewCatalog.load_view` by one call to the metastore and reading one file."""
        name = _name(identifier)
        pointer = self._pointer(name)
        return View(name, pointer.load(), pointer)

    def exists(self, identifier: Name) -> bool:
        """Implement `ViewCatalog.view_exists`, even if the view's metadata is lost."""
        try:
            name = _name(identifier)
            with view_named(".".join(name)):
                view_pointed_at(self._client.table(*name))
        except NoSuchViewError:
            return False
        return True

    def create(
        self,
        identifier: Name,
        definition: ViewDefinition,
        location: str | None,
        properties: Mapping[str, str],
    ) -> View:
        """Implement `ViewCatalog.create_view`."""
        from icecomb.format.spec.view.view import new_view_metadata

        name = _name(identifier)
        self._entries.check_free(name)
        location = location or self._entries.default_location(name)
        metadata = new_view_metadata(definition, location, properties)
        pointer = self._pointer(name)
        return View(name, self._entries.make(name, pointer, metadata), pointer)

    def rename(self, from_identifier: Name, to_identifier: Name) -> View:
        """Implement `ViewCatalog.rename_view` under the view's lock, checked like a commit."""
        source, target = _name(from_identifier), _name(to_identifier)
        with view_named(".".join(source)):
            known = self._entries.move(source, target, self._pointer(source), view_pointed_at)
        return View(target, known, self._pointer(target)) if known else self.load(target)

    def drop(self, identifier: Name) -> None:
        """Implement `ViewCatalog.drop_view` under the view's lock, even if its metadata is lost."""
        name = _name(identifier)
        pointer = self._pointer(name)
        with view_named(".".join(name)):
            view_pointed_at(self._client.table(*name))
            with Holding() as held, held:
                pointer.queue(held)
                pointer.guard(held, None)
                entry = self._client.table(*name)
                view_pointed_at(entry)
                self._entries.remove(entry, pointer)

    def commit_status(
        self, identifier: Name, metadata_location: str, *, expectation_sent: bool
    ) -> CommitStatus:
        """Implement `ViewCatalog.view_commit_status`."""
        from icecomb.catalog.hive.view_commit_status import view_commit_status

        name = _name(identifier)
        with view_named(".".join(name)):
            entry = self._client.table(*name)
        checked = expectation_sent and self._pointer(name).change.enforces()
        return view_commit_status(self._io, entry, metadata_location, checked=checked)

    def _pointer(self, name: tuple[str, str]) -> HiveViewPointer:
        return HiveViewPointer(self._client, *name, self._io, self._properties)


def _name(identifier: Name) -> tuple[str, str]:
    parts = parts_of(identifier)
    with view_named(".".join(parts) or "without a name"):
        return database_and_table(parts)
