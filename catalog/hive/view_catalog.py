"""Iceberg views in a Hive metastore."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from icecomb.catalog.catalog import Catalog, Name
from icecomb.catalog.commit import settle
from icecomb.catalog.definition import iceberg_schema
from icecomb.catalog.hive.entry_pointer import EntryPointer
from icecomb.catalog.hive.thrift.entity import HiveTable
from icecomb.catalog.hive.thrift.failure import RefusedError
from icecomb.catalog.hive.view_pointer import HiveViewPointer, view_named, view_pointed_at
from icecomb.catalog.identifier import Identifier, database_and_table, database_of, parts_of
from icecomb.catalog.pointer import ViewMetadataVersion
from icecomb.catalog.view import View
from icecomb.format.argument import property_texts
from icecomb.format.errors import CommitFailedError, NoSuchViewError, UnsupportedError

if TYPE_CHECKING:
    import pyarrow as pa

    from icecomb.catalog.commit_status import CommitFate
    from icecomb.catalog.hive.thrift.client import HiveClient
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.schema import Schema
    from icecomb.format.spec.view import ViewDefinition
    from icecomb.format.storage.file_io import FileIO

# `like`, because `=` does not work on the CLOB column of some metastores' own databases
_ICEBERG_VIEWS: Final = " or ".join(
    f'hive_filter_field_params__table_type like "{spelling}"'
    for spelling in ("ICEBERG-VIEW", "iceberg-view")
)


class HiveViewCatalog(Catalog):
    """The part of `HiveCatalog` that is about views."""

    client: HiveClient
    io: FileIO

    @abstractmethod
    def check_free(self, place: tuple[str, str]) -> None:
        """Refuse a name that is taken."""

    @abstractmethod
    def taken(self, place: tuple[str, str], error: CommitFailedError) -> Exception:
        """Why something could not be made: the name is taken, else ``error``."""

    @abstractmethod
    def default_location(self, place: tuple[str, str]) -> str:
        """The folder of a table or view that does not say one."""

    @abstractmethod
    def move(
        self,
        source: tuple[str, str],
        target: tuple[str, str],
        pointer: EntryPointer[Any],
        locate: Callable[[HiveTable], str],
        metadata: TableMetadata | None = None,
    ) -> str:
        """Rename an entry under its lock, unless it moved meanwhile; return where it points.

        Args:
            source: Its name.
            target: The new one.
            pointer: Its pointer.
            locate: Where an entry points; refuses what is not of the kind that is renamed.
            metadata: What the table is like: its properties choose whether it is locked.
        """

    @abstractmethod
    def remove(self, entry: HiveTable, pointer: EntryPointer[Any]) -> bool:
        """Drop an entry; say whether that was only found out by looking.

        Raises:
            CommitStateUnknownError: it cannot be told whether it was dropped.
        """

    def list_views(self, namespace: Name) -> list[Identifier]:
        """See `Catalog.list_views`: one call, the server filters."""
        database = database_of(namespace)
        try:
            names = self.client.table_names_by_filter(database, _ICEBERG_VIEWS)
        except RefusedError:
            views = self.client.table_names_of_type(database, "VIRTUAL_VIEW")
            found = self.client.tables(database, views)
            names = [view.name for view in found if view.is_iceberg_view]
        if not names:
            self.client.database(database)
        return [(database, name) for name in sorted(names)]

    def load_view(self, identifier: Name) -> View:
        """See `Catalog.load_view`: one call to the metastore, one file."""
        place = _place(identifier)
        pointer = self.view_pointer(place)
        return View(place, pointer.load(), pointer)

    def view_exists(self, identifier: Name) -> bool:
        """See `Catalog.view_exists`; its metadata may be lost."""
        try:
            place = _place(identifier)
            with view_named(".".join(place)):
                view_pointed_at(self.client.table(*place))
        except NoSuchViewError:
            return False
        return True

    def create_view(
        self,
        identifier: Name,
        schema: Schema | pa.Schema,
        queries: Mapping[str, str],
        *,
        default_namespace: Name | None = None,
        default_catalog: str | None = None,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> View:
        """See `Catalog.create_view`."""
        from icecomb.format.spec.view import new_view_metadata

        place = _place(identifier)
        self.check_free(place)
        definition = _definition(place, schema, queries, default_namespace, default_catalog)
        metadata = new_view_metadata(
            definition, location or self.default_location(place), self._view_properties(properties)
        )
        pointer = self.view_pointer(place)
        with pointer.queue():
            new = pointer.stage(None, metadata)
            try:
                settle(pointer, None, new)
            except CommitFailedError as error:
                raise self.taken(place, error) from None
        return View(place, new, pointer)

    def replace_view(
        self,
        identifier: Name,
        schema: Schema | pa.Schema,
        queries: Mapping[str, str],
        *,
        default_namespace: Name | None = None,
        default_catalog: str | None = None,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> View:
        """See `Catalog.replace_view`."""
        from icecomb.format.spec.view import replace_view

        view = self.load_view(identifier)
        definition = _definition(view.name(), schema, queries, default_namespace, default_catalog)
        overrides = self.properties_below("view-override.")
        wanted = {**property_texts("property", properties), **overrides}
        return view.change(lambda base: replace_view(base, definition, wanted, location))

    def rename_view(self, from_identifier: Name, to_identifier: Name) -> View:
        """See `Catalog.rename_view`: under its lock, checked like a commit."""
        source, target = _place(from_identifier), _place(to_identifier)
        pointer = self.view_pointer(source)
        known: ViewMetadataVersion | None = None
        with view_named(".".join(source)):
            view_pointed_at(self.client.table(*source))
            with suppress(OSError, ValueError, UnsupportedError):
                known = pointer.load()
            location = self.move(source, target, pointer, view_pointed_at)
        # Loading it again could fail, and would look as if the renaming had failed.
        if known is None or known.location != location:
            return self.load_view(target)
        return View(target, known, self.view_pointer(target))

    def drop_view(self, identifier: Name) -> None:
        """See `Catalog.drop_view`: under its lock; works when the metadata file is lost."""
        place = _place(identifier)
        pointer = self.view_pointer(place)
        with view_named(".".join(place)):
            view_pointed_at(self.client.table(*place))
            with pointer.queue(), pointer.guard(None):
                entry = self.client.table(*place)
                view_pointed_at(entry)
                self.remove(entry, pointer)

    def view_fate(
        self, identifier: Name, metadata_location: str, *, told: bool = False
    ) -> CommitFate:
        """See `Catalog.view_fate`."""
        from icecomb.catalog.hive.view_commit_status import view_fate

        place = _place(identifier)
        with view_named(".".join(place)):
            entry = self.client.table(*place)
        checked = self.refuses_late(place, told=told)
        return view_fate(self.io, entry, metadata_location, checked=checked)

    def view_pointer(self, place: tuple[str, str]) -> HiveViewPointer:
        """The pointer of a view, which need not exist."""
        return HiveViewPointer(self.client, *place, self.io, self.properties)

    def _view_properties(self, given: Mapping[str, str] | None) -> dict[str, str]:
        return {
            **self.properties_below("view-default."),
            **property_texts("property", given),
            **self.properties_below("view-override."),
        }


def _place(identifier: Name) -> tuple[str, str]:
    parts = parts_of(identifier)
    with view_named(".".join(parts) or "without a name"):
        return database_and_table(parts)


def _definition(
    place: Identifier,
    schema: Schema | pa.Schema,
    queries: Mapping[str, str],
    default_namespace: Name | None,
    default_catalog: str | None,
) -> ViewDefinition:
    from importlib.metadata import version

    from icecomb.format.spec.view import ViewDefinition

    namespace = place[:-1] if default_namespace is None else parts_of(default_namespace)
    summary = {"engine-name": "icecomb", "engine-version": version("icecomb")}
    return ViewDefinition(iceberg_schema(schema), queries, namespace, default_catalog, summary)
