"""The catalog of a Hive metastore."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, ClassVar, Final, TypeVar
from urllib.parse import urlsplit

from icecomb.catalog.catalog import Catalog
from icecomb.catalog.commit.commit import check_commit_allowed, check_format_version, swapped
from icecomb.catalog.commit.pointer import Committed, Conflict, MetadataVersion
from icecomb.catalog.configuration.catalog_property import (
    CATALOG,
    LIST_ALL_TABLES,
    URI,
    WAREHOUSE,
)
from icecomb.catalog.hive.entries import Entries, unknown
from icecomb.catalog.hive.lock import abandoned_locks, describe_holder
from icecomb.catalog.hive.parameters import ICEBERG, own_folders
from icecomb.catalog.hive.pointer import HivePointer, pointed_at
from icecomb.catalog.hive.settlement import pauses
from icecomb.catalog.hive.thrift.client import HiveClient
from icecomb.catalog.hive.thrift.entity import HiveDatabase
from icecomb.catalog.hive.thrift.failure import ReplyLostError
from icecomb.catalog.hive.thrift.server import drop_probes
from icecomb.catalog.hive.thrift.settings import ConnectionSettings, current_user
from icecomb.catalog.hive.view_pointer import (
    ICEBERG_VIEW,
    HiveViewPointer,
    view_named,
    view_pointed_at,
)
from icecomb.catalog.identifier import (
    AbandonedLock,
    Entry,
    Identifier,
    Name,
    database_and_table,
    database_of,
    parts_of,
)
from icecomb.catalog.table.definition import Draft, TableDefinition
from icecomb.catalog.table.table import Table, tables_in_folder
from icecomb.catalog.view.view import View
from icecomb.catalog.view.view_catalog import ViewCatalog
from icecomb.format.argument import check_flags, checked_members, property_texts
from icecomb.format.cancellation import rest
from icecomb.format.errors import (
    CommitStateUnknownError,
    ConfigurationError,
    CorruptFileError,
    MetastoreError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchFileError,
    NoSuchNamespaceError,
    NoSuchViewError,
    TableAlreadyExistsError,
    UnsupportedError,
    ValidationError,
)
from icecomb.format.holding import Holding
from icecomb.format.spec.own_folders import OwnFolders
from icecomb.format.storage.file_io import FileIO
from icecomb.format.storage.location import plain_paths

if TYPE_CHECKING:
    from icecomb.catalog.commit.commit_status import CommitStatus
    from icecomb.catalog.commit.purge import PurgedTable, Unneeded
    from icecomb.catalog.hive.thrift.entity import HiveTable
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.view import ViewDefinition

_T = TypeVar("_T")


class HiveViews(ViewCatalog):
    """The views of a metastore."""

    client: HiveClient
    io: FileIO
    entries: Entries
    keeps_views: ClassVar[bool] = True

    def list_views(self, namespace: Name) -> list[Identifier]:
        def views(database: str) -> list[str]:
            return self.client.table_names_of_type(database, "VIRTUAL_VIEW")

        return self.entries.listed(namespace, ICEBERG_VIEW, views)

    def load_view(self, identifier: Name) -> View:
        """Implement `ViewCatalog.load_view` by one call to the metastore and reading one file."""
        name = _name(identifier)
        pointer = self._view_pointer(name)
        return View(name, pointer.load(), pointer)

    def view_exists(self, identifier: Name) -> bool:
        """Implement `ViewCatalog.view_exists`, even if the view's metadata is lost."""
        try:
            name = _name(identifier)
            with view_named(".".join(name)):
                view_pointed_at(self.client.table(*name))
        except NoSuchViewError:
            return False
        return True

    def _create_view(
        self,
        identifier: Name,
        definition: ViewDefinition,
        location: str | None,
        properties: Mapping[str, str],
    ) -> View:
        from icecomb.format.spec.view import new_view_metadata

        name = _name(identifier)
        self.entries.check_free(name)
        location = location or self.entries.default_location(name)
        metadata = new_view_metadata(definition, location, properties)
        pointer = self._view_pointer(name)
        return View(name, self.entries.make(name, pointer, metadata), pointer)

    def rename_view(self, from_identifier: Name, to_identifier: Name) -> View:
        """Implement `ViewCatalog.rename_view` under the view's lock, checked like a commit."""
        source, target = _name(from_identifier), _name(to_identifier)
        with view_named(".".join(source)):
            known = self.entries.move(source, target, self._view_pointer(source), view_pointed_at)
        return View(target, known, self._view_pointer(target)) if known else self.load_view(target)

    def drop_view(self, identifier: Name) -> None:
        """Implement `ViewCatalog.drop_view` under the view's lock, even if its metadata is lost."""
        name = _name(identifier)
        pointer = self._view_pointer(name)
        with view_named(".".join(name)):
            view_pointed_at(self.client.table(*name))
            with Holding() as held, held:
                pointer.queue(held)
                pointer.guard(held, None)
                entry = self.client.table(*name)
                view_pointed_at(entry)
                self.entries.remove(entry, pointer)

    def view_commit_status(
        self, identifier: Name, metadata_location: str, *, expectation_sent: bool = False
    ) -> CommitStatus:
        from icecomb.catalog.hive.view_pointer import view_commit_status

        name = _name(identifier)
        with view_named(".".join(name)):
            entry = self.client.table(*name)
        checked = expectation_sent and self._view_pointer(name).change.enforces()
        return view_commit_status(self.io, entry, metadata_location, checked=checked)

    def _view_pointer(self, name: tuple[str, str]) -> HiveViewPointer:
        return HiveViewPointer(self.client, *name, self.io, self.properties)


def _name(identifier: Name) -> tuple[str, str]:
    parts = parts_of(identifier)
    with view_named(".".join(parts) or "without a name"):
        return database_and_table(parts)


class HiveCatalog(HiveViews, Catalog):
    """Iceberg tables and views in a Hive metastore 2.3, 3.x or 4.x.

    Args:
        name: The catalog's name.
        properties: ``uri`` (``thrift://host:port``, several with commas), ``warehouse``, Iceberg's
            ``iceberg.hive.*`` and ``engine.hive.*`` settings, ``table-default.*`` and
            ``table-override.*``, ``hive.check-and-put``, ``metastore.catalog.default`` (a catalog
            inside the metastore, Hive 3 and later), and those of `ConnectionSettings`.
        locate: A function that returns the metastore's address, called before each connection;
            replaces ``uri``.

    Raises:
        ConfigurationError: If there is no ``uri``, or a property is invalid.
    """

    has_levels: ClassVar[bool] = False

    def __init__(
        self,
        name: str,
        properties: Mapping[str, str],
        *,
        locate: Callable[[], str] | None = None,
    ) -> None:
        super().__init__(name, properties)
        address = locate or URI.of(properties)
        if not address:
            raise ConfigurationError(
                f"Catalog {name} has no uri",
                hint="Name the metastore: uri=thrift://host:9083, as an argument, in icecomb.yaml, "
                "in the environment, or by HIVE_CONF_DIR with a hive-site.xml in it.",
            )
        self.client = HiveClient(
            address,
            ConnectionSettings.of(properties),
            catalog=CATALOG.of(properties),
        )
        self.io = FileIO(self.properties)
        self.entries = Entries(self.client, name, self.properties)

    def close(self) -> None:
        """Implement `Catalog.close`: close the connections to the metastore, too."""
        self.client.close()
        super().close()

    def list_namespaces(self, namespace: Name = ()) -> list[Identifier]:
        """Implement `Catalog.list_namespaces`: a metastore has one level."""
        if tuple(namespace):
            self.client.database(database_of(namespace))
            return []
        return [(database,) for database in self.client.databases()]

    def create_namespace(
        self, namespace: Name, properties: Mapping[str, str] | None = None
    ) -> None:
        """Implement `Catalog.create_namespace`, with ``hive.metastore.database.owner[-type]``."""
        warehouse, user = WAREHOUSE.of(self.properties), current_user(self.properties)
        database = new_database(database_of(namespace), properties, warehouse, user)
        try:
            self.client.create_database(database)
        except ReplyLostError:
            if not is_created(self.client, database, self.properties):
                raise

    def drop_namespace(self, namespace: Name) -> None:
        name = database_of(namespace)
        try:
            self.client.drop_database(name)
        except NamespaceNotEmptyError:
            if not drop_probes(self.client, name):
                raise
            self.client.drop_database(name)
        except ReplyLostError:
            if not is_dropped(self.client, name, self.properties):
                raise

    def load_namespace_properties(self, namespace: Name) -> dict[str, str]:
        return namespace_properties(self.client.database(database_of(namespace)))

    def update_namespace_properties(
        self,
        namespace: Name,
        removals: Iterable[str] | None = None,
        updates: Mapping[str, str] | None = None,
    ) -> None:
        """Implement `Catalog.update_namespace_properties`; the location cannot be changed.

        Raises:
            ValidationError: If an owner type is given without an owner, too.
        """
        found = self.client.database(database_of(namespace))
        altered = altered_database(found, removals or (), updates, current_user(self.properties))
        self.client.alter_database(altered)
        if altered.description != found.description:
            kept = self.client.database(altered.name).description
            if kept != altered.description:  # Hive 2.3 does not change it
                self.client.alter_database(with_comment(altered))

    def list_tables(self, namespace: Name) -> list[Identifier]:
        """Implement `Catalog.list_tables` in one call, filtered by the server.

        With the catalog's property ``list-all-tables``, list everything in the namespace.
        """
        table_type = None if LIST_ALL_TABLES.of(self.properties) else ICEBERG
        return self.entries.listed(namespace, table_type, self.client.table_names)

    def load_pointer(self, identifier: Name) -> str:
        return pointed_at(self.client.table(*database_and_table(identifier)))

    def entries_below(
        self, folder: str, namespace: Identifier | None = None, *, uuid: str | None = None
    ) -> Iterator[Entry]:
        (root,) = plain_paths([folder.rstrip("/")], self.io.properties)
        names: defaultdict[str, list[str]] = defaultdict(list)
        if namespace is None:
            for database, name in self.client.names_of_types():
                names[database].append(name)
        else:
            database = database_of(namespace)
            names[database] = self.client.table_names(database)
        for database, tables in names.items():
            found = self.client.tables(database, tables)
            places = [(one.storage.location or "").rstrip("/") for one in found]
            paths = plain_paths(places, self.io.properties)
            for one, place, path in zip(found, places, paths, strict=True):
                metadata = one.metadata_location if one.is_iceberg else None
                is_twin = metadata is not None and uuid == one.parameters.get("uuid", "")
                is_below = bool(place) and f"{path}/".startswith(f"{root}/")
                if not one.is_view and (is_below or is_twin or self._has_files_at(one, root)):
                    yield Entry((one.database, one.name), place, metadata)

    def _has_files_at(self, entry: HiveTable, root: str) -> bool:
        """Return whether an entry names a folder, such as that of its data, in another or above."""
        if not entry.is_iceberg or entry.metadata_location is None:
            return False
        named = [folder.rstrip("/") for folder in own_folders(entry)[1:]]
        paths = plain_paths(named, self.io.properties) if named else ()
        return any(
            f"{path}/".startswith(f"{root}/") or f"{root}/".startswith(f"{path}/") for path in paths
        )

    def abandoned_locks(self, identifier: Name | None = None) -> list[AbandonedLock]:
        """Implement `Catalog.abandoned_locks`, without locks on whole databases."""
        place = (None, None) if identifier is None else database_and_table(identifier)
        rows = [row for row in self.client.locks(*place) if row.table is not None]
        return [
            AbandonedLock((row.database, row.table or ""), row.lock_id, describe_holder(row))
            for row in abandoned_locks(self.client, rows)
        ]

    def rejects_stale_swap(self, identifier: Name, *, expectation_sent: bool) -> bool:
        """Implement `Catalog.rejects_stale_swap`: HIVE-26882, if an expectation is sent."""
        return expectation_sent and self.pointer(database_and_table(identifier)).change.enforces()

    def load_table(self, identifier: Name) -> Table:
        """Implement `Catalog.load_table` by one call to the metastore and reading one file."""
        place = database_and_table(identifier)
        pointer = self.pointer(place)
        return self._table(place, pointer.load(), pointer)

    def draft(self, identifier: Name, definition: TableDefinition) -> Draft:
        place = database_and_table(identifier)
        self.entries.check_free(place)
        location = definition.location or self.entries.default_location(place)
        metadata = self.new_metadata(definition, location)
        check_commit_allowed(".".join(place), metadata)
        check_format_version(".".join(place), metadata, self.properties)
        return Draft(place, metadata, self.io, self)

    def publish(self, draft: Draft, metadata: TableMetadata) -> Table:
        place = database_and_table(draft.identifier)
        pointer = self.pointer(place)
        check_commit_allowed(pointer.name, metadata)
        check_format_version(pointer.name, metadata, self.properties)
        return self._table(place, self.entries.make(place, pointer, metadata), pointer)

    def register_table(self, identifier: Name, metadata_location: str) -> Table:
        from icecomb.format.spec.metadata_file import read_metadata

        place = database_and_table(identifier)
        version = MetadataVersion(metadata_location, read_metadata(self.io, metadata_location))
        check_commit_allowed(".".join(place), version.metadata)
        self.entries.check_free(place)
        pointer = self.pointer(place)
        # Not `settle`, which deletes the file of a failed commit: this file is the user's.
        with Holding() as held, held:
            pointer.queue(held)
            outcome = swapped(pointer, None, version)
        if isinstance(outcome, Committed):
            return self._table(place, version, pointer)
        name = ".".join(place)
        if isinstance(outcome, Conflict):
            raise TableAlreadyExistsError(
                f"{name} exists already: {outcome.reason}", hint="Drop it first.", table=name
            )
        raise unknown(f"{name}: it is unknown whether it was registered", outcome, name)

    def rename_table(self, from_identifier: Name, to_identifier: Name) -> Table:
        """Implement `Catalog.rename_table` under the table's lock, checked like a commit."""
        source, target = database_and_table(from_identifier), database_and_table(to_identifier)
        known = self.entries.move(source, target, self.pointer(source), pointed_at)
        if known is None:
            return self.load_table(target)
        return self._table(target, known, self.pointer(target))

    def drop_table(self, identifier: Name, purge_requested: bool = False) -> None:  # noqa: FBT001, FBT002
        """Implement `Catalog.drop_table` under the lock, even if the metadata file is lost."""
        check_flags(purge_requested=purge_requested)
        if purge_requested:
            self.purge_table(identifier)
        else:
            self._drop(database_and_table(identifier), lambda *_: None)

    def purge_table(
        self, identifier: Name, *, delete_outside: Iterable[str] = (), dry_run: bool = False
    ) -> PurgedTable:
        """Implement `Catalog.purge_table`."""
        from icecomb.catalog.commit.purge import purge

        check_flags(dry_run=dry_run)
        place = database_and_table(identifier)
        more = checked_members("delete_outside", delete_outside, str)

        def prepared(entry: HiveTable, location: str) -> Callable[[], PurgedTable]:
            unneeded = self._unneeded(place, entry, location, more)
            folders = own_folders(entry)
            return lambda: purge(self.io, location, folders, unneeded, more=more, dry_run=dry_run)

        if dry_run:
            entry = self.client.table(*place)
            return prepared(entry, pointed_at(entry))()
        return self._drop(place, prepared)()

    def _drop(self, place: tuple[str, str], prepare: Callable[[HiveTable, str], _T]) -> _T:
        """Remove an entry; what is prepared before by it and its pointer is returned.

        If that is not None, the lock has to outlive the removal.
        """
        pointed_at(self.client.table(*place))
        pointer = self.pointer(place)
        known = pointer.known()
        with Holding() as held, held:
            pointer.queue(held)
            lock = pointer.guard(held, known.metadata if known else None)
            entry = self.client.table(*place)
            location = pointed_at(entry)
            prepared = prepare(entry, location)
            found = self.entries.remove(entry, pointer)
            if found and prepared is not None and (lock is None or not lock.is_alive(ask=True)):
                # Another client may have renamed it: then its files belong to another table.
                raise CommitStateUnknownError(
                    f"{pointer.name} is gone, and it is unknown whether it was dropped or "
                    "renamed, so its files were not purged",
                    hint="Nothing was deleted; check whether a table of another name has the "
                    f"files of {location} before you delete them.",
                    table=pointer.name,
                )
        return prepared

    def pointer(self, place: tuple[str, str]) -> HivePointer:
        """Return the pointer of a table, which need not exist."""
        return HivePointer(self.client, *place, self.io, self.properties)

    def _table(
        self, place: tuple[str, str], version: MetadataVersion, pointer: HivePointer
    ) -> Table:
        return Table(place, version, self.io, pointer, self)

    def _unneeded(
        self,
        place: tuple[str, str],
        entry: HiveTable,
        metadata_location: str,
        more: tuple[str, ...],
    ) -> Unneeded:
        """Return which files of a table nothing else needs; refuse tables that share files.

        Nothing is purged of a table whose metadata is lost, so that folders in `more` are refused.
        """
        from icecomb.catalog.commit.purge import check_no_folder_table, unneeded_by
        from icecomb.catalog.commit.version_line import other_lines
        from icecomb.format.spec.metadata_file import read_metadata

        try:
            metadata = read_metadata(self.io, metadata_location)
        except (NoSuchFileError, CorruptFileError):
            if more:
                raise
            return lambda _: []
        self.check_drop(place, metadata, purge_requested=True)
        folders = own_folders(entry)
        OwnFolders(folders, metadata, self.io.properties, more).check_more(".".join(place))
        check_no_folder_table(self.io, ".".join(place), metadata_location, metadata)
        others = tables_in_folder(self, place, metadata, self.io, folders[0], anywhere=True)
        elsewhere = other_lines(self.io, metadata, metadata_location)
        return unneeded_by(self.io, chain(others, elsewhere))


def on_metastore(catalog: Catalog) -> HiveCatalog:
    """Return the catalog as a `HiveCatalog`, for operations that only a metastore has."""
    if isinstance(catalog, HiveCatalog):
        return catalog
    raise UnsupportedError(
        f"{catalog!r} has no metastore: this is done to the entries of a Hive metastore",
        hint="Give the catalog a metastore: uri=thrift://host:9083",
    )


_COMMENT: Final = "comment"
_LOCATION: Final = "location"
_OWNER: Final = "hive.metastore.database.owner"
_OWNER_TYPE: Final = "hive.metastore.database.owner-type"
_OWNER_TYPES: Final = ("USER", "GROUP", "ROLE")


def new_database(
    name: str, properties: Mapping[str, str] | None, warehouse: str | None, user: str
) -> HiveDatabase:
    """Return the database of a new namespace, by default in its own folder in ``warehouse``.

    Its owner is ``user`` where the properties name none.
    """
    given = property_texts("property of a namespace", properties)
    owner, owner_type = _owner(given)
    location = given.pop(_LOCATION, None)
    if location is None and warehouse:
        location = f"{warehouse.rstrip('/')}/{name}.db"
    return HiveDatabase(
        name=name,
        description=given.pop(_COMMENT, None),
        location=location,
        parameters=given,
        owner=owner or user,
        owner_type=owner_type or "USER",
    )


def is_created(client: HiveClient, wanted: HiveDatabase, properties: Mapping[str, str]) -> bool:
    """Return whether a database was created whose creation was not answered.

    NamespaceAlreadyExistsError is raised if the name is that of another one.
    """
    for found in _looks(client, wanted.name, properties):
        if found is not None:
            if not _is_as_wanted(found, wanted):
                raise NamespaceAlreadyExistsError(
                    f"The namespace {wanted.name} exists already, with other properties",
                    hint="Use it, or choose another name.",
                    namespace=wanted.name,
                )
            return True
    return False


def is_dropped(client: HiveClient, name: str, properties: Mapping[str, str]) -> bool:
    """Return whether a database was dropped whose drop was not answered; see `is_created`."""
    return any(found is None for found in _looks(client, name, properties))


def _looks(
    client: HiveClient, name: str, properties: Mapping[str, str]
) -> Iterator[HiveDatabase | None]:
    """Yield the database at each look, None if there is none; a look that fails yields nothing."""
    for pause in pauses(properties):
        if pause and not rest(pause):
            return
        with suppress(MetastoreError):
            try:
                found = client.database(name)
            except NoSuchNamespaceError:
                yield None
            else:
                yield found


def _is_as_wanted(found: HiveDatabase, wanted: HiveDatabase) -> bool:
    # a server completes a location by its own scheme and authority
    place, asked = (urlsplit(each.location or "").path.rstrip("/") for each in (found, wanted))
    return (wanted.location is None or place == asked) and (
        wanted.parameters.items() <= found.parameters.items()
        and (found.description or None) == (wanted.description or None)
        and found.owner == wanted.owner
    )


def namespace_properties(database: HiveDatabase) -> dict[str, str]:
    """Return the properties for `Catalog.load_namespace_properties`."""
    comment = database.parameters.get(_COMMENT, database.description)
    shown = {key: value for key, value in database.parameters.items() if key != _COMMENT}
    if database.location:
        shown[_LOCATION] = database.location
    if comment:
        shown[_COMMENT] = comment
    if database.owner:
        shown[_OWNER] = database.owner
        shown[_OWNER_TYPE] = database.owner_type or "USER"
    return shown


def altered_database(
    found: HiveDatabase,
    removals: Iterable[str],
    updates: Mapping[str, str] | None,
    user: str,
) -> HiveDatabase:
    """Return the altered database; see `Catalog.update_namespace_properties`.

    Removing the owner makes ``user`` the owner.
    """
    removed = set(checked_members("properties to remove", removals, str))
    changed = property_texts("property of a namespace", updates)
    if both := sorted(removed & changed.keys()):
        raise ValidationError(
            f"{', '.join(both)}: cannot be set and removed at once",
            hint="Name each property once: to be set, or to be removed.",
        )
    if _LOCATION in removed | changed.keys():
        raise ValidationError(
            "The location of a namespace of a metastore cannot be changed",
            hint="Create a namespace at the other location, and its tables in it.",
        )
    if (_OWNER in removed) != (_OWNER_TYPE in removed):
        raise ValidationError(
            f"{_OWNER} and {_OWNER_TYPE} can only be removed together", hint="Name both."
        )
    owner, owner_type = _owner(changed)
    if _OWNER in removed:
        owner, owner_type = user, "USER"
    about_comment = _COMMENT in removed | changed.keys()
    comment = changed.pop(_COMMENT, None if about_comment else found.description)
    gone = removed | ({_COMMENT} if about_comment else set())
    kept = {key: value for key, value in found.parameters.items() if key not in gone}
    return replace(
        found,
        description=comment,
        parameters={**kept, **changed},
        owner=owner or found.owner,
        owner_type=owner_type or found.owner_type,
    )


def with_comment(database: HiveDatabase) -> HiveDatabase:
    """Return the database with its comment as a parameter, for a metastore that ignores it."""
    comment = {_COMMENT: database.description or ""}
    return replace(database, parameters={**database.parameters, **comment})


def _owner(properties: dict[str, str]) -> tuple[str | None, str | None]:
    """Take the pair of owner properties out of ``properties``."""
    owner, kind = properties.pop(_OWNER, None), properties.pop(_OWNER_TYPE, None)
    if kind is not None and owner is None:
        raise ValidationError(f"{_OWNER_TYPE} needs {_OWNER}", hint="Set both.")
    if kind is not None and kind.upper() not in _OWNER_TYPES:
        raise ValidationError(
            f"{_OWNER_TYPE} is {kind}: one of {', '.join(_OWNER_TYPES)}", hint="Set one of these."
        )
    return owner, kind.upper() if kind else None
