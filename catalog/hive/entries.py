"""Operations on metastore entries that are the same for tables and views."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from icecomb.catalog.commit.commit import settle
from icecomb.catalog.commit.pointer import Committed, Conflict, Pointer, Unknown, V
from icecomb.catalog.configuration.catalog_property import UNIQUE_LOCATION, WAREHOUSE, Properties
from icecomb.catalog.hive.entry_change import Expectation
from icecomb.catalog.hive.entry_pointer import EntryPointer
from icecomb.catalog.hive.parameters import METADATA_LOCATION, TABLE_TYPE
from icecomb.catalog.hive.settlement import ChangeState, Observation, Poll
from icecomb.catalog.hive.thrift.client import HiveClient
from icecomb.catalog.hive.thrift.entity import HiveTable
from icecomb.catalog.hive.thrift.failure import RefusedError
from icecomb.catalog.identifier import Identifier, database_of
from icecomb.format.errors import (
    CommitFailedError,
    CommitStateUnknownError,
    ConfigurationError,
    NoSuchTableError,
    TableAlreadyExistsError,
    ValidationError,
    ViewAlreadyExistsError,
)
from icecomb.format.holding import Holding

if TYPE_CHECKING:
    from icecomb.catalog.identifier import Name

M = TypeVar("M")

# `like`, because `=` does not work on the CLOB column of some metastores' databases
_IS_OF_TYPE: Final = f'hive_filter_field_params__{TABLE_TYPE} like "{{}}"'


class Entries:
    """The entries of one metastore."""

    def __init__(self, client: HiveClient, catalog: str, properties: Properties) -> None:
        self._client = client
        self._catalog = catalog
        self._properties = properties

    def listed(
        self,
        namespace: Name,
        table_type: str | None,
        among: Callable[[str], list[str]],
    ) -> list[Identifier]:
        """Return the entries of a namespace, by one call that the server filters.

        Args:
            table_type: Required value of the parameter ``table_type``, ignoring case; None for any.
            among: Returns the names in a database to examine if the server cannot filter.
        """
        database = database_of(namespace)
        if table_type is None:
            names = self._client.table_names(database)
        else:
            spellings = (table_type.upper(), table_type.lower())
            condition = " or ".join(map(_IS_OF_TYPE.format, spellings))
            try:
                names = self._client.table_names_by_filter(database, condition)
            except RefusedError:
                found = self._client.tables(database, among(database))
                types = {each.name: each.parameters.get(TABLE_TYPE, "") for each in found}
                names = [name for name in types if types[name].lower() == table_type.lower()]
        if not names:
            self._client.database(database)
        return [(database, name) for name in sorted(names)]

    def check_free(self, place: tuple[str, str]) -> None:
        """Check that a name is not taken."""
        with suppress(NoSuchTableError):
            raise _exists(self._client.table(*place))

    def make(self, place: tuple[str, str], pointer: Pointer[V, M], metadata: M) -> V:
        """Create an entry and return the version that it points at."""
        try:
            with Holding() as held, held:
                pointer.queue(held)
                new = pointer.stage(None, metadata)
                settle(pointer, None, new)
        except CommitFailedError:
            with suppress(NoSuchTableError):
                raise _exists(self._client.table(*place)) from None
            raise
        return new

    def default_location(self, place: tuple[str, str]) -> str:
        """Return the folder of a table or view created without a location."""
        database, name = place
        if "/" in name or name in {".", ".."}:
            raise ValidationError(
                f"{database}.{name}: {name!r} cannot be the name of a folder",
                hint="Choose another name, or give the table a location.",
            )
        folder = self._client.database(database).location
        if folder is None:
            warehouse = WAREHOUSE.of(self._properties)
            if not warehouse:
                raise ConfigurationError(
                    f"Namespace {database} has no location "
                    f"and catalog {self._catalog} no warehouse",
                    hint="Give the table a location, or the catalog a warehouse.",
                )
            folder = f"{warehouse.rstrip('/')}/{database}.db"
        unique = UNIQUE_LOCATION.of(self._properties)
        suffix = f"-{uuid.uuid4().hex}" if unique else ""
        return f"{folder.rstrip('/')}/{name}{suffix}"

    def move(
        self,
        source: tuple[str, str],
        target: tuple[str, str],
        pointer: EntryPointer[V],
        locate: Callable[[HiveTable], str],
    ) -> V | None:
        """Rename an entry under its lock, checked like a commit; return the renamed version.

        Return None if its metadata was not read; ``locate`` returns where an entry points, and
        raises for one of the other kind. CommitFailedError means that another writer was first,
        CommitStateUnknownError that it is unknown whether the entry was renamed.
        """
        locate(self._client.table(*source))
        known = pointer.known()
        self._client.database(target[0])
        self.check_free(target)
        with Holding() as held, held:
            pointer.queue(held)
            lock = pointer.guard(held, known.metadata if known else None)
            entry = self._client.table(*source)
            location = locate(entry)
            moved = replace(entry, database=target[0], name=target[1])
            try:
                outcome = pointer.change.alter(
                    moved,
                    Expectation(METADATA_LOCATION, location),
                    self._poll_for_move(entry, moved),
                    entry.parameters,
                    lock,
                )
            except RefusedError as error:
                with suppress(NoSuchTableError):
                    raise _exists(self._client.table(*target)) from error
                raise
        if isinstance(outcome, Unknown):
            raise unknown(
                f"it is unknown whether {pointer.name} was renamed to {moved.full_name}",
                outcome,
                pointer.name,
            )
        if isinstance(outcome, Conflict):
            if outcome.current is None:
                self._client.table(*source)  # raises NoSuchTableError
            raise CommitFailedError(
                f"{pointer.name} was not renamed: {outcome.reason}",
                hint="Rename it again.",
                table=pointer.name,
                current=outcome.current,
            )
        # Loading it again could fail, which would look as if the renaming had failed.
        return known if known and known.location == location else None

    def remove(self, entry: HiveTable, pointer: EntryPointer[Any]) -> bool:
        """Drop an entry; return whether a later poll of the entry is all that tells it.

        CommitStateUnknownError is raised if it is unknown whether the entry was dropped.
        """

        def poll() -> Observation:
            now = pointer.change.read()
            return Observation(ChangeState.NOT_YET if now else ChangeState.HAPPENED, now)

        outcome = pointer.change.drop(poll, entry.parameters)
        if isinstance(outcome, Committed):
            return outcome.found
        if isinstance(outcome, Unknown):
            raise unknown(
                f"it is unknown whether {pointer.name} was dropped", outcome, pointer.name
            )
        raise CommitFailedError(
            f"{pointer.name} was not dropped: {outcome.reason}",
            hint="Drop it again.",
            table=pointer.name,
        )

    def _poll_for_move(self, entry: HiveTable, moved: HiveTable) -> Poll:
        def read(place: HiveTable) -> HiveTable | None:
            with suppress(NoSuchTableError):
                return self._client.table(place.database, place.name)
            return None

        def poll() -> Observation:
            there, here = read(moved), read(entry)
            if _is_same(there, entry) and not _is_same(here, entry):
                return Observation(ChangeState.HAPPENED, here)
            if here is None:
                return Observation(ChangeState.ELSEWHERE, None)
            unmoved = here.metadata_location == entry.metadata_location
            return Observation(ChangeState.NOT_YET if unmoved else ChangeState.OVERTAKEN, here)

        return poll


def _exists(found: HiveTable) -> TableAlreadyExistsError:
    error = ViewAlreadyExistsError if found.is_view else TableAlreadyExistsError
    return error(
        f"{found.full_name} exists already: it is {found.kind}",
        hint="Choose another name, or drop or rename it first.",
        table=found.full_name,
    )


def _is_same(found: HiveTable | None, entry: HiveTable) -> bool:
    """Return whether two entries are the same table or view, perhaps with commits since."""
    if found is None:
        return False
    key = entry.parameters.get("uuid")
    return found.metadata_location == entry.metadata_location or (
        key is not None and found.parameters.get("uuid") == key
    )


def unknown(message: str, outcome: Unknown, table: str) -> CommitStateUnknownError:
    """Return the error for an unknown outcome."""
    error = CommitStateUnknownError(
        f"{message}: {outcome.reason}",
        hint="Nothing was deleted; look at the table again before you repeat it.",
        table=table,
        current=outcome.current,
    )
    error.__cause__ = outcome.cause
    return error
