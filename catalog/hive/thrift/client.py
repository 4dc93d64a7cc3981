"""The metastore's calls as methods that take and return icecomb's values.

The newest form of a call is tried first and the older one is remembered per connection where a
server lacks it: ``get_table_req`` (Hive 2.3 and later) before ``get_table``, which 4.0.1 removed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Final

from hmsclient.genthrift.hive_metastore import ttypes

from icecomb.catalog.hive.thrift import wire
from icecomb.catalog.hive.thrift.answer import (
    check_possible,
    missing_namespace,
    missing_table,
    no_namespace,
    result,
    result_list,
    stored,
)
from icecomb.catalog.hive.thrift.calls import Calls, Form
from icecomb.catalog.hive.thrift.catalog_name import DEFAULT_CATALOG, CatalogName
from icecomb.catalog.hive.thrift.constraints import Constraints
from icecomb.catalog.hive.thrift.entity import (
    HiveDatabase,
    HiveTable,
    LockAnswer,
    LockRow,
)
from icecomb.catalog.hive.thrift.failure import RefusedError
from icecomb.catalog.hive.thrift.known_server import KnownServers
from icecomb.catalog.hive.thrift.length_limits import named_limits, named_lock_limits
from icecomb.catalog.hive.thrift.partitions import Grants, Partitions
from icecomb.catalog.hive.thrift.pool import addresses_of
from icecomb.catalog.hive.thrift.settings import ConnectionSettings
from icecomb.catalog.hive.thrift.thrift_codec import (
    database_from_wire,
    database_to_wire,
    lock_answer,
    lock_rows,
    set_facts,
    table_from_wire,
    table_to_wire,
)
from icecomb.format.errors import (
    MetastoreError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    TableAlreadyExistsError,
)
from icecomb.format.holding import Holding
from icecomb.format.secret import one_line

if TYPE_CHECKING:
    from typing_extensions import Self

_NO_DATABASE: Final = frozenset({"UnknownDBException", "NoSuchObjectException"})
_PAGE: Final = 500
_REQUEST_CATALOG: Final = 4
_ABLE: Final = wire.struct_field(3, wire.number_list_field(1, [2]) + b"\0")
"""ClientCapabilities of a request: INSERT_ONLY_TABLES.

To clients that do not send it, Hive 3 and later refuse each insert-only transactional table, and
each list with one. Entries are only inspected here; readers of such a table's rows check its kind.
"""
_DATABASE_CATALOG: Final = 8
_TABLE_CATALOG: Final = 17
"""The fields that name the catalog in requests, databases and tables (Hive 3)."""


class HiveClient:
    """A Hive metastore 2.3, 3.x or 4.x, for any number of threads.

    Args:
        uri: ``thrift://host:port``, several separated by commas, or a function that returns it,
            called before each new connection.
        catalog: The catalog inside the metastore, Hive 3 and later; None for the server's default.
    """

    def __init__(
        self,
        uri: str | Callable[[], str],
        settings: ConnectionSettings | None = None,
        *,
        catalog: str | None = None,
    ) -> None:
        self._made_of = (uri, settings, catalog)
        if isinstance(uri, str):
            addresses = addresses_of(uri)
            self.key = ",".join(addresses)
            self._locate: Callable[[], tuple[str, ...]] = lambda: addresses
        else:
            self._locate = lambda: addresses_of(uri())
            self.key = f"{id(self):x}"
        """The same for every thread, whichever of the addresses it is connected to."""
        # The default is not named: Hive 2 has no catalogs, and would take the name for a database.
        self._catalog = CatalogName(None if catalog == DEFAULT_CATALOG else catalog)
        self._calls = Calls(self._locate, settings or ConnectionSettings())
        self.partitions = Partitions(self._calls, self._catalog)
        self.constraints = Constraints(self._calls, self._catalog)
        self.grants = Grants(self._calls, self._catalog)

    # -- connections

    def __reduce__(self) -> tuple[Callable[..., HiveClient], tuple[object, ...]]:
        # Connections stay with this client: a copy, or another process, makes its own.
        return _client, self._made_of

    @property
    def uri(self) -> str:
        """The address that this thread called last, else the configured ones."""
        return self._calls.uri or ",".join(self._locate())

    @property
    def calls(self) -> dict[str, int]:
        """The number of times each call was sent, without those of a lock's background threads."""
        return self._calls.counts

    @property
    def servers(self) -> KnownServers:
        """The facts that this client knows about its servers."""
        return self._calls.servers

    def pin(self, held: Holding) -> str:
        """Send this thread's calls to one server until the end of ``held``; return its key.

        A call that would go to another server, because that one went away, raises `MovedError`.
        """
        return self._calls.pin(held)

    def close(self) -> None:
        """Close the connections; the client opens new ones if it is used again."""
        self._calls.pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # -- the server

    def server_name(self) -> str:
        """Return the server's name (fb303 ``getName``)."""
        return str(self._calls.read("getName"))

    def server_version(self) -> str:
        """Return the version that the server reports; "3.0" also from 2.3."""
        return str(self._calls.read("getVersion"))

    def config_value(self, name: str) -> str:
        """Return a setting of the server, such as ``hive.txn.timeout``; empty if it has none."""
        return str(self._calls.read("get_config_value", name, ""))

    # -- databases

    def databases(self) -> list[str]:
        """Return the names of all databases."""
        if self._catalog.name is not None:
            return list(self._calls.read("get_databases", self._catalog.database("*")))
        return list(self._calls.read("get_all_databases"))

    def database(self, name: str) -> HiveDatabase:
        """Return a database."""
        with missing_namespace(name):
            found: HiveDatabase = self._calls.read(
                "get_database",
                self._catalog.database(name),
                result=lambda raw: _database(raw, name),
            )
        return found

    def create_database(self, database: HiveDatabase) -> None:
        """Create a database."""
        struct = self._catalog.mark(database_to_wire(database), _DATABASE_CATALOG)
        try:
            with named_limits(database):
                self._calls.write_bytes("create_database", wire.struct_field(1, struct) + b"\0")
        except RefusedError as error:
            if error.kind == "AlreadyExistsException":
                raise NamespaceAlreadyExistsError(
                    f"The namespace {database.name} exists already",
                    hint="Use it, or choose another name.",
                    namespace=database.name,
                ) from None
            raise

    def alter_database(self, database: HiveDatabase) -> None:
        """Replace a database's parameters and owner; a metastore ignores other changes."""
        struct = self._catalog.mark(database_to_wire(database), _DATABASE_CATALOG)
        place = wire.string_field(1, self._catalog.database(database.name))
        with missing_namespace(database.name), named_limits(database):
            self._calls.write_bytes("alter_database", place + wire.struct_field(2, struct) + b"\0")

    def drop_database(self, name: str) -> None:
        """Drop an empty database; its folder stays."""
        # Hive 2.3 answers for a missing database with a NullPointerException.
        self.database(name)
        try:
            with missing_namespace(name):
                self._calls.write("drop_database", self._catalog.database(name), False, False)
        except RefusedError as error:
            if error.kind == "InvalidOperationException":
                raise NamespaceNotEmptyError(
                    f"The namespace {name} is not empty: {one_line(error.answer)}",
                    hint="Drop or move what it holds first.",
                    namespace=name,
                ) from None
            raise

    # -- tables

    def table(self, database: str, name: str) -> HiveTable:
        """Return a table or view, with everything the server stores about it."""
        check_possible(database, name)
        request = wire.string_field(1, database) + wire.string_field(2, name) + _ABLE + b"\0"
        place = wire.string_field(1, self._catalog.database(database))
        with missing_table(database, name):
            return self._calls.newest(
                Form(
                    "get_table_req",
                    wire.struct_field(1, self._catalog.mark(request, _REQUEST_CATALOG)) + b"\0",
                    lambda raw: _asked(
                        database, [name], [result(raw, table_from_wire, nested=True)]
                    )[0],
                ),
                Form(
                    "get_table",
                    place + wire.string_field(2, name) + b"\0",
                    lambda raw: _asked(database, [name], [result(raw, table_from_wire)])[0],
                ),
            )

    def tables(self, database: str, names: Sequence[str]) -> list[HiveTable]:
        """Return the tables of these names that exist, read in pages; none without the database."""
        found: list[HiveTable] = []
        try:
            for start in range(0, len(names), _PAGE):
                found += self._page(database, names[start : start + _PAGE])
        except RefusedError as error:
            if error.kind not in _NO_DATABASE:
                raise
        return found

    def _page(self, database: str, names: Sequence[str]) -> list[HiveTable]:
        listed = wire.string_list_field(2, names) + b"\0"
        request = self._catalog.mark(
            wire.string_field(1, database) + _ABLE + listed, _REQUEST_CATALOG
        )
        return self._calls.newest(
            Form(
                "get_table_objects_by_name_req",
                wire.struct_field(1, request) + b"\0",
                lambda raw: _asked(database, names, result_list(raw, table_from_wire, nested=True)),
            ),
            Form(
                "get_table_objects_by_name",
                wire.string_field(1, self._catalog.database(database)) + listed,
                lambda raw: _asked(database, names, result_list(raw, table_from_wire)),
            ),
        )

    def table_names(self, database: str) -> list[str]:
        """Return the names of everything in a database, views included."""
        return list(self._calls.read("get_all_tables", self._catalog.database(database)))

    def table_names_of_type(self, database: str, table_type: str, pattern: str = "*") -> list[str]:
        """Return the names of the objects of one Hive type, such as ``VIRTUAL_VIEW``.

        In the pattern, ``*`` stands for any characters.
        """
        place = self._catalog.database(database)
        return list(self._calls.read("get_tables_by_type", place, pattern, table_type))

    def names_of_types(
        self, table_types: Sequence[str] = (), pattern: str = "*"
    ) -> list[tuple[str, str]]:
        """Return database and name of all objects, or those of some Hive types, by one call."""
        place = self._catalog.database("*")
        found = self._calls.read(
            "get_table_meta",
            place,
            pattern,
            list(table_types),
            convert=lambda rows: [set_facts(one, "dbName", "tableName") for one in rows],
        )
        return [(one.dbName, one.tableName) for one in found]

    def table_names_by_filter(self, database: str, condition: str) -> list[str]:
        """Return the names of the tables that satisfy a condition the server evaluates.

        RefusedError is raised if it cannot (its database lacks the comparison).
        """
        place = self._catalog.database(database)
        try:
            return list(self._calls.read("get_table_names_by_filter", place, condition, -1))
        except RefusedError as error:
            if error.kind in _NO_DATABASE:
                raise no_namespace(database) from None
            raise

    def create_table(self, table: HiveTable) -> None:
        """Create a table or view."""
        struct = self._catalog.mark(table_to_wire(table), _TABLE_CATALOG)
        try:
            with named_limits(table):
                self._calls.write_bytes("create_table", wire.struct_field(1, struct) + b"\0")
        except RefusedError as error:
            if error.kind == "AlreadyExistsException":
                raise TableAlreadyExistsError(
                    f"{table.full_name} exists already",
                    hint="Load that table, or choose another name.",
                    table=table.full_name,
                ) from None
            if error.kind == "NoSuchObjectException" or (
                error.kind == "InvalidObjectException"
                and table.database not in self._names_of_databases()
            ):
                raise no_namespace(table.database) from None
            raise

    def alter_table(
        self, database: str, name: str, table: HiveTable, context: Mapping[str, str] | None = None
    ) -> None:
        """Replace everything the server stores about a table, its name included.

        Args:
            context: The environment context, such as ``DO_NOT_UPDATE_STATS``.
        """
        encoded = wire.string_field(1, self._catalog.database(database))
        encoded += wire.string_field(2, name)
        struct = self._catalog.mark(table_to_wire(table), _TABLE_CATALOG)
        encoded += wire.struct_field(3, struct)
        if context is not None:
            encoded += wire.struct_field(4, wire.map_field(1, dict(context)) + b"\0")
        with missing_table(database, name), named_limits(table):
            self._calls.write_bytes("alter_table_with_environment_context", encoded + b"\0")

    def drop_table(self, database: str, name: str, *, delete_data: bool = False) -> None:
        """Drop a table's entry; by default its files stay."""
        with missing_table(database, name):
            self._calls.write("drop_table", self._catalog.database(database), name, delete_data)

    # -- locks

    def lock(self, database: str, table: str, *, user: str, host: str, agent: str) -> LockAnswer:
        """Request an exclusive lock on a table (which need not exist)."""
        component = ttypes.LockComponent(
            type=ttypes.LockType.EXCLUSIVE,
            level=ttypes.LockLevel.TABLE,
            dbname=database,
            tablename=table,
            # Hive 2.1 refuses a lock whose operation is unset; every version takes this one.
            operationType=ttypes.DataOperationType.NO_TXN,
        )
        request = ttypes.LockRequest([component], user=user, hostname=host, agentInfo=agent)
        with named_lock_limits(database, table):
            found: LockAnswer = self._calls.write("lock", request, convert=lock_answer)
        return found

    def check_lock(self, lock_id: int) -> LockAnswer:
        """Return a lock's state; the call is also a heartbeat.

        A lock that expired, was broken or released raises RefusedError with
        ``NoSuchLockException``.
        """
        request = ttypes.CheckLockRequest(lockid=lock_id)
        found: LockAnswer = self._calls.read("check_lock", request, convert=lock_answer)
        return found

    def heartbeat(self, lock_id: int) -> None:
        """Keep a lock from expiring.

        A lock that expired, was broken or released raises RefusedError with
        ``NoSuchLockException``.
        """
        self._calls.read("heartbeat", ttypes.HeartbeatRequest(lockid=lock_id, txnid=0))

    def unlock(self, lock_id: int) -> None:
        """Release a lock; a lock that is gone already is not an error."""
        try:
            # Safe to repeat: ids are never reused.
            self._calls.read("unlock", ttypes.UnlockRequest(lockid=lock_id))
        except RefusedError as error:
            if error.kind != "NoSuchLockException":
                raise

    def locks(self, database: str | None = None, table: str | None = None) -> list[LockRow]:
        """Return the lock table, or the part of it about one database or table."""
        request = ttypes.ShowLocksRequest(dbname=database, tablename=table)
        found: list[LockRow] = self._calls.read("show_locks", request, convert=lock_rows)
        return found

    def _names_of_databases(self) -> list[str]:
        with contextlib.suppress(MetastoreError):
            return self.databases()
        return []


def _asked(database: str, names: Sequence[str], found: list[HiveTable]) -> list[HiveTable]:
    """Return the entries of a reply; ValueError if one has another name than those asked for."""
    asked = {(stored(database), stored(name)) for name in names}
    for each in found:
        if (stored(each.database), stored(each.name)) not in asked:
            raise ValueError(f"the reply is about another entry, {each.full_name!r}")
    return found


def _database(raw: bytes, name: str) -> HiveDatabase:
    found = result(raw, database_from_wire)
    if stored(found.name) != stored(name):
        raise ValueError(f"the reply is about another entry, {found.name!r}")
    return found


def _client(
    uri: str | Callable[[], str], settings: ConnectionSettings | None, catalog: str | None
) -> HiveClient:
    return HiveClient(uri, settings, catalog=catalog)
