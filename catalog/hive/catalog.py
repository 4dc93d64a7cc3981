"""The catalog of a Hive metastore."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from icecomb.catalog.catalog import Catalog, Name
from icecomb.catalog.catalog_property import (
    CATALOG,
    LIST_ALL_TABLES,
    UNIQUE_LOCATION,
    URI,
    WAREHOUSE,
)
from icecomb.catalog.commit import check_commit_allowed, settle
from icecomb.catalog.definition import Draft, TableDefinition
from icecomb.catalog.hive.entry_change import Expectation
from icecomb.catalog.hive.entry_pointer import EntryPointer
from icecomb.catalog.hive.namespace_catalog import HiveNamespaceCatalog
from icecomb.catalog.hive.parameters import METADATA_LOCATION
from icecomb.catalog.hive.pointer import HivePointer, pointed_at
from icecomb.catalog.hive.settlement import Look, Seen, Sight
from icecomb.catalog.hive.thrift.client import HiveClient
from icecomb.catalog.hive.thrift.entity import HiveTable
from icecomb.catalog.hive.thrift.failure import RefusedError
from icecomb.catalog.hive.thrift.settings import ConnectionSettings
from icecomb.catalog.hive.view_catalog import HiveViewCatalog
from icecomb.catalog.identifier import Identifier, database_and_table, database_of
from icecomb.catalog.pointer import Committed, Conflict, MetadataVersion, Unknown
from icecomb.catalog.table import Table
from icecomb.format.errors import (
    CommitFailedError,
    CommitStateUnknownError,
    ConfigurationError,
    CorruptFileError,
    FileMissingError,
    NoSuchTableError,
    TableAlreadyExistsError,
    UnsupportedError,
    ValidationError,
    ViewAlreadyExistsError,
)
from icecomb.format.storage.file_io import FileIO

if TYPE_CHECKING:
    from icecomb.format.spec.metadata import TableMetadata

# `like`, because `=` does not work on the CLOB column of some metastores' own databases
_ICEBERG_TABLES: Final = " or ".join(
    f'hive_filter_field_params__table_type like "{spelling}"' for spelling in ("ICEBERG", "iceberg")
)


class HiveCatalog(HiveNamespaceCatalog, HiveViewCatalog):
    """Iceberg tables and views in a Hive metastore 2.3, 3.x or 4.x.

    Args:
        name: The catalog's own name.
        properties: ``uri`` (``thrift://host:port``, several with commas), ``warehouse``, Iceberg's
            ``iceberg.hive.*`` and ``engine.hive.*`` settings, ``table-default.*`` and
            ``table-override.*``, ``hive.check-and-put``, ``metastore.catalog.default`` (a catalog
            of the metastore's own, Hive 3 and later), and those of `ConnectionSettings`.
        locate: Finds the metastore anew whenever a connection is made, instead of ``uri``.

    Raises:
        ConfigurationError: there is no ``uri``, or a property makes no sense.
    """

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
                hint="name the metastore: uri=thrift://host:9083, as an argument, in icecomb.yaml, "
                "in the environment, or by HIVE_CONF_DIR with a hive-site.xml in it",
            )
        self.client = HiveClient(
            address,
            ConnectionSettings.of(properties),
            catalog=CATALOG.of(properties),
        )
        self.io = FileIO(self.properties)

    def close(self) -> None:
        """Close the connections to the metastore."""
        self.client.close()

    def list_tables(self, namespace: Name) -> list[Identifier]:
        """See `Catalog.list_tables`: one call, the server filters.

        With the catalog's property ``list-all-tables`` everything in the namespace is listed.
        """
        database = database_of(namespace)
        try:
            if LIST_ALL_TABLES.of(self.properties):
                names = self.client.table_names(database)
            else:
                names = self.client.table_names_by_filter(database, _ICEBERG_TABLES)
        except RefusedError:
            found = self.client.tables(database, self.client.table_names(database))
            names = [table.name for table in found if table.is_iceberg]
        if not names:
            self.client.database(database)
        return [(database, name) for name in sorted(names)]

    def load_pointer(self, identifier: Name) -> str:
        """See `Catalog.load_pointer`."""
        return pointed_at(self.client.table(*database_and_table(identifier)))

    def refuses_late(self, identifier: Name, *, told: bool) -> bool:
        """See `Catalog.refuses_late`: a metastore with HIVE-26882 does, if it is told."""
        return told and self.pointer(database_and_table(identifier)).change.enforces()

    def load_table(self, identifier: Name) -> Table:
        """See `Catalog.load_table`: one call to the metastore, one file."""
        place = database_and_table(identifier)
        pointer = self.pointer(place)
        return self._table(place, pointer.load(), pointer)

    def draft(self, identifier: Name, definition: TableDefinition) -> Draft:
        """See `Catalog.draft`."""
        place = database_and_table(identifier)
        self.check_free(place)
        location = definition.location or self.default_location(place)
        metadata = self.new_metadata(definition, location)
        check_commit_allowed(".".join(place), metadata)
        return Draft(place, metadata, self.io, self)

    def publish(self, draft: Draft, metadata: TableMetadata) -> Table:
        """See `Catalog.publish`."""
        place = database_and_table(draft.identifier)
        pointer = self.pointer(place)
        check_commit_allowed(pointer.name, metadata)
        try:
            with pointer.queue():
                new = pointer.stage(None, metadata)
                settle(pointer, None, new)
        except CommitFailedError as error:
            raise self.taken(place, error) from None
        return self._table(place, new, pointer)

    def register_table(self, identifier: Name, metadata_location: str) -> Table:
        """See `Catalog.register_table`."""
        from icecomb.format.spec.metadata_file import read_metadata

        place = database_and_table(identifier)
        version = MetadataVersion(metadata_location, read_metadata(self.io, metadata_location))
        check_commit_allowed(".".join(place), version.metadata)
        self.check_free(place)
        pointer = self.pointer(place)
        # not `settle`, which deletes the file of a commit that failed: this file is the user's
        with pointer.queue():
            outcome = pointer.swap(None, version)
        if isinstance(outcome, Committed):
            return self._table(place, version, pointer)
        name = ".".join(place)
        if isinstance(outcome, Conflict):
            raise TableAlreadyExistsError(
                f"{name} exists already: {outcome.reason}", hint="drop it first", table=name
            )
        raise _unknown(f"{name}: it is unknown whether it was registered", outcome, name)

    def rename_table(self, from_identifier: Name, to_identifier: Name) -> Table:
        """See `Catalog.rename_table`: under the table's lock, checked like a commit."""
        source, target = database_and_table(from_identifier), database_and_table(to_identifier)
        pointed_at(self.client.table(*source))
        known = self._known_version(source)
        metadata = known.metadata if known else None
        location = self.move(source, target, self.pointer(source), pointed_at, metadata)
        # Loading it again could fail, and would look as if the renaming had failed.
        if known is None or known.location != location:
            return self.load_table(target)
        return self._table(target, known, self.pointer(target))

    def move(
        self,
        source: tuple[str, str],
        target: tuple[str, str],
        pointer: EntryPointer[Any],
        locate: Callable[[HiveTable], str],
        metadata: TableMetadata | None = None,
    ) -> str:
        """See `HiveViewCatalog.move`."""
        self.client.database(target[0])
        self.check_free(target)
        with pointer.queue(), pointer.guard(metadata) as lock:
            entry = self.client.table(*source)
            location = locate(entry)
            moved = replace(entry, database=target[0], name=target[1])
            try:
                outcome = pointer.change.alter(
                    moved,
                    Expectation(METADATA_LOCATION, location),
                    self._look_for_move(entry, moved),
                    entry.parameters,
                    lock,
                )
            except RefusedError as error:
                with suppress(NoSuchTableError):
                    raise self._exists(self.client.table(*target)) from error
                raise
        if isinstance(outcome, Unknown):
            raise _unknown(
                f"it is unknown whether {pointer.name} was renamed to {moved.full_name}",
                outcome,
                pointer.name,
            )
        if isinstance(outcome, Conflict):
            if outcome.current is None:
                self.client.table(*source)  # says that there is none
            raise CommitFailedError(
                f"{pointer.name} was not renamed: {outcome.reason}",
                hint="rename it again",
                table=pointer.name,
                current=outcome.current,
            )
        return location

    def drop_table(self, identifier: Name, purge_requested: bool = False) -> None:  # noqa: FBT001, FBT002
        """See `Catalog.drop_table`: under the lock; works when the metadata file is lost."""
        place = database_and_table(identifier)
        pointed_at(self.client.table(*place))
        known = self._known_version(place)
        pointer = self.pointer(place)
        with pointer.queue(), pointer.guard(known.metadata if known else None) as lock:
            entry = self.client.table(*place)
            location = pointed_at(entry)
            if purge_requested:
                self._check_purge(place, location)
            found = self.remove(entry, pointer)
            if found and purge_requested and (lock is None or not lock.is_alive(ask=True)):
                # Somebody else may have renamed it: its files are another table's then.
                raise CommitStateUnknownError(
                    f"{pointer.name} is gone, and it is unknown whether it was dropped or "
                    "renamed, so its files were not purged",
                    hint="nothing was deleted; look whether a table of another name has the "
                    f"files of {location} before you delete them",
                    table=pointer.name,
                )
        if purge_requested:
            from icecomb.catalog.purge import purge

            purge(self.io, location)

    def pointer(self, place: tuple[str, str]) -> HivePointer:
        """The pointer of a table, which need not exist."""
        return HivePointer(self.client, *place, self.io, self.properties)

    def _table(
        self, place: tuple[str, str], version: MetadataVersion, pointer: HivePointer
    ) -> Table:
        return Table(place, version, self.io, pointer, self)

    def _known_version(self, place: tuple[str, str]) -> MetadataVersion | None:
        """The table as it is; None if the file is lost, or of a version that is not known."""
        with suppress(OSError, ValueError, UnsupportedError):
            return self.pointer(place).load()
        return None

    def _check_purge(self, place: tuple[str, str], metadata_location: str) -> None:
        """Refuse what shares files; of a table whose metadata is lost nothing will be purged."""
        from icecomb.format.spec.metadata_file import read_metadata

        with suppress(FileMissingError, CorruptFileError):
            self.check_drop(place, read_metadata(self.io, metadata_location), purge_requested=True)

    def check_free(self, place: tuple[str, str]) -> None:
        """See `HiveViewCatalog.check_free`."""
        with suppress(NoSuchTableError):
            raise self._exists(self.client.table(*place))

    def taken(self, place: tuple[str, str], error: CommitFailedError) -> Exception:
        """See `HiveViewCatalog.taken`."""
        try:
            return self._exists(self.client.table(*place))
        except NoSuchTableError:
            return error

    def _exists(self, found: HiveTable) -> TableAlreadyExistsError:
        error = ViewAlreadyExistsError if found.is_view else TableAlreadyExistsError
        return error(
            f"{found.full_name} exists already: it is {found.kind}",
            hint="choose another name, or drop or rename it first",
            table=found.full_name,
        )

    def default_location(self, place: tuple[str, str]) -> str:
        """See `HiveViewCatalog.default_location`."""
        database, name = place
        if "/" in name or name in {".", ".."}:
            raise ValidationError(
                f"{database}.{name}: {name!r} cannot be the name of a folder",
                hint="choose another name, or give the table a location",
            )
        folder = self.client.database(database).location
        if folder is None:
            warehouse = WAREHOUSE.of(self.properties)
            if not warehouse:
                raise ConfigurationError(
                    f"Namespace {database} has no location and catalog {self.name} no warehouse",
                    hint="give the table a location, or the catalog a warehouse",
                )
            folder = f"{warehouse.rstrip('/')}/{database}.db"
        unique = UNIQUE_LOCATION.of(self.properties)
        suffix = f"-{uuid.uuid4().hex}" if unique else ""
        return f"{folder.rstrip('/')}/{name}{suffix}"

    def _look_for_move(self, entry: HiveTable, moved: HiveTable) -> Look:
        def read(place: HiveTable) -> HiveTable | None:
            with suppress(NoSuchTableError):
                return self.client.table(place.database, place.name)
            return None

        def look() -> Seen:
            there, here = read(moved), read(entry)
            if _is_same(there, entry) and not _is_same(here, entry):
                return Seen(Sight.HAPPENED, here)
            if here is None:
                return Seen(Sight.ELSEWHERE, None)
            unmoved = here.metadata_location == entry.metadata_location
            return Seen(Sight.NOT_YET if unmoved else Sight.OVERTAKEN, here)

        return look

    def remove(self, entry: HiveTable, pointer: EntryPointer[Any]) -> bool:
        """See `HiveViewCatalog.remove`."""

        def look() -> Seen:
            now = pointer.change.read()
            return Seen(Sight.NOT_YET if now else Sight.HAPPENED, now)

        outcome = pointer.change.drop(look, entry.parameters)
        if isinstance(outcome, Committed):
            return outcome.found
        if isinstance(outcome, Unknown):
            raise _unknown(
                f"it is unknown whether {pointer.name} was dropped", outcome, pointer.name
            )
        raise CommitFailedError(
            f"{pointer.name} was not dropped: {outcome.reason}",
            hint="drop it again",
            table=pointer.name,
        )


def on_metastore(catalog: Catalog) -> HiveCatalog:
    """The catalog as one of a Hive metastore, for what only a metastore can do.

    Raises:
        UnsupportedError: it is none.
    """
    if isinstance(catalog, HiveCatalog):
        return catalog
    raise UnsupportedError(
        f"{catalog!r} has no metastore: this is done to the entries of a Hive metastore",
        hint="name the metastore: load_catalog(name, uri='thrift://host:9083'), or --uri",
    )


def _is_same(found: HiveTable | None, entry: HiveTable) -> bool:
    """Whether one entry is another one, perhaps with commits since."""
    if found is None:
        return False
    key = entry.parameters.get("uuid")
    return found.metadata_location == entry.metadata_location or (
        key is not None and found.parameters.get("uuid") == key
    )


def _unknown(message: str, outcome: Unknown, table: str) -> CommitStateUnknownError:
    error = CommitStateUnknownError(
        f"{message}: {outcome.reason}",
        hint="nothing was deleted; look at the table again before you repeat it",
        table=table,
        current=outcome.current,
    )
    error.__cause__ = outcome.cause
    return error
