"""The metastore's calls as methods that take and return our own values.

The newest form of a call is tried first and the older one is remembered per client where a server
lacks it: ``get_table_req`` (Hive 2.3 and later) before ``get_table``, which Hive 4.0.1 removed.

Each thread has a connection of its own. A call that only reads is repeated once on a new
connection when the old one breaks; a call that changes something never is: see `failure` for what
is known then.
"""

from __future__ import annotations

import base64
import contextlib
import getpass
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from hmsclient.genthrift.hive_metastore import ttypes
from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TApplicationException, TException
from thrift.transport.TTransport import TTransportException

from icecomb.catalog.hive import wire
from icecomb.catalog.hive.connection import Connection, endpoint, is_missing_call
from icecomb.catalog.hive.entity import (
    FieldSchema,
    HiveDatabase,
    HivePartition,
    HiveTable,
    LockAnswer,
    LockRow,
    LockState,
    StorageDescriptor,
)
from icecomb.catalog.hive.failure import (
    MissingCallError,
    RefusedError,
    ReplyLostError,
    UnreachableError,
)
from icecomb.catalog.hive.thrift_codec import (
    database_from_wire,
    database_to_wire,
    lock_row,
    partition_from_wire,
    partition_to_wire,
    table_from_wire,
    table_to_wire,
)
from icecomb.format.errors import (
    IcecombError,
    MetastoreError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "FieldSchema",
    "HiveClient",
    "HiveDatabase",
    "HivePartition",
    "HiveTable",
    "LockAnswer",
    "LockRow",
    "LockState",
    "StorageDescriptor",
    "partition_from_json",
    "partition_to_json",
    "table_from_json",
    "table_to_json",
]

_T = TypeVar("_T")
_PAGE: Final = 500
CONNECT_TIMEOUT_S: Final = 10.0
REPLY_TIMEOUT_S: Final = 180.0


@dataclass(frozen=True, slots=True)
class _Form(Generic[_T]):
    """One of the forms in which servers know a call, and how its reply's bytes become a value."""

    method: str
    arguments: tuple[Any, ...]
    result: Callable[[Any, bytes], _T]


class HiveClient:
    """A Hive metastore 2.3, 3.x or 4.x.

    Args:
        uri: ``thrift://host:port``, several separated by commas (the first that answers is used),
            or a function that returns it, asked again whenever a connection has to be made.
        timeout_s: How long a reply may take.
        connect_timeout_s: How long each address may take to accept a connection.
        user: Sent by ``set_ugi`` after connecting: the server makes folders as this user.
            None = not sent.
    """

    def __init__(
        self,
        uri: str | Callable[[], str],
        *,
        timeout_s: float = REPLY_TIMEOUT_S,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        user: str | None = None,
    ) -> None:
        if isinstance(uri, str):
            addresses = _addresses(uri)
            self.key = ",".join(addresses)
            self._locate: Callable[[], tuple[str, ...]] = lambda: addresses
        else:
            self._locate = lambda: _addresses(uri())
            self.key = f"{id(self):x}"
        """The same for every thread, whichever of the addresses it is connected to."""
        self._timeout_s = timeout_s
        self._connect_timeout_s = connect_timeout_s
        self._user = user
        self._local = threading.local()
        self._open: dict[threading.Thread, Connection] = {}
        self._guard = threading.Lock()
        self._missing: set[str] = set()
        self.calls: dict[str, int] = {}
        """How often each call was sent, by the server's name of it."""

    # -- connections

    @property
    def uri(self) -> str:
        """The address of this thread's connection, else the configured ones."""
        current = getattr(self._local, "connection", None)
        return current.uri if current else ",".join(self._locate())

    def close(self) -> None:
        """Closes every thread's connection; the client opens new ones if it is used again."""
        with self._guard:
            connections, self._open = self._open, {}
        for connection in connections.values():
            connection.close()

    def disconnect(self) -> None:
        """Closes this thread's connection: for a thread that is about to end."""
        current: Connection | None = getattr(self._local, "connection", None)
        if current is not None:
            self._discard(current)

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
        """What the server calls itself (fb303 ``getName``)."""
        return str(self._read("getName"))

    def server_version(self) -> str:
        """What the server says its version is; "3.0" also from 2.3."""
        return str(self._read("getVersion"))

    def config_value(self, name: str, default: str = "") -> str:
        """A setting of the server, as ``hive.txn.timeout``."""
        return str(self._read("get_config_value", name, default))

    # -- databases

    def databases(self) -> list[str]:
        """The names of all databases."""
        return list(self._read("get_all_databases"))

    def database(self, name: str) -> HiveDatabase:
        """One database.

        Raises:
            NoSuchNamespaceError: there is none of this name.
        """
        with _missing_namespace(name):
            found: HiveDatabase = self._read(
                "get_database", name, result=lambda _, raw: _one(raw, database_from_wire)
            )
        return found

    def create_database(self, database: HiveDatabase) -> None:
        """Makes a database.

        Raises:
            NamespaceAlreadyExistsError: the name is taken.
        """
        arguments = wire.struct_field(1, database_to_wire(database)) + b"\0"
        try:
            self._write_bytes("create_database", arguments)
        except RefusedError as error:
            if error.kind == "AlreadyExistsException":
                raise NamespaceAlreadyExistsError(
                    f"the namespace {database.name} exists already", namespace=database.name
                ) from error
            raise

    def alter_database(self, database: HiveDatabase) -> None:
        """Replaces a database's parameters and owner; a metastore ignores other changes."""
        body = wire.struct_field(2, database_to_wire(database))
        with _missing_namespace(database.name):
            self._write_bytes("alter_database", wire.string_field(1, database.name) + body + b"\0")

    def drop_database(self, name: str) -> None:
        """Drops an empty database; its folder is left alone.

        Raises:
            NoSuchNamespaceError: there is none of this name.
            NamespaceNotEmptyError: it still holds tables, views or functions.
        """
        # Hive 2.3 answers for a missing database with a NullPointerException.
        self.database(name)
        try:
            with _missing_namespace(name):
                self._write("drop_database", name, False, False)
        except RefusedError as error:
            if error.kind == "InvalidOperationException":
                raise NamespaceNotEmptyError(
                    f"the namespace {name} is not empty: {error.answer}",
                    hint="drop or move what it holds first",
                    namespace=name,
                ) from error
            raise

    # -- tables

    def table(self, database: str, name: str) -> HiveTable:
        """One table or view, with everything the server knows about it.

        Raises:
            NoSuchTableError: there is none of this name.
        """
        with _missing_table(database, name):
            request = ttypes.GetTableRequest(database, name)
            return self._newest(
                _Form(
                    "get_table_req",
                    (request,),
                    lambda _, raw: _one(raw, table_from_wire, nested=True),
                ),
                _Form("get_table", (database, name), lambda _, raw: _one(raw, table_from_wire)),
            )

    def tables(self, database: str, names: Sequence[str]) -> list[HiveTable]:
        """The tables of these names that exist, fetched in pages."""
        found: list[HiveTable] = []
        for page in _pages(names, _PAGE):
            request = ttypes.GetTablesRequest(database, page)
            found += self._newest(
                _Form(
                    "get_table_objects_by_name_req",
                    (request,),
                    lambda _, raw: _many(raw, table_from_wire, nested=True),
                ),
                _Form(
                    "get_table_objects_by_name",
                    (database, page),
                    lambda _, raw: _many(raw, table_from_wire),
                ),
            )
        return found

    def table_names(self, database: str) -> list[str]:
        """The names of everything in a database, views included."""
        return list(self._read("get_all_tables", database))

    def table_names_of_type(self, database: str, table_type: str) -> list[str]:
        """The names of the objects of one Hive type, as ``VIRTUAL_VIEW``."""
        return list(self._read("get_tables_by_type", database, "*", table_type))

    def table_names_by_filter(self, database: str, condition: str) -> list[str]:
        """The names of the tables that satisfy a condition the server evaluates.

        Raises:
            NoSuchNamespaceError: there is no such database.
            RefusedError: the server cannot evaluate it (its own database lacks the comparison).
        """
        try:
            return list(self._read("get_table_names_by_filter", database, condition, -1))
        except RefusedError as error:
            if error.kind in {"UnknownDBException", "NoSuchObjectException"}:
                raise _no_namespace(database) from error
            raise

    def create_table(self, table: HiveTable) -> None:
        """Makes a table or view.

        Raises:
            TableAlreadyExistsError: the name is taken.
            NoSuchNamespaceError: there is no such database.
        """
        arguments = wire.struct_field(1, table_to_wire(table)) + b"\0"
        try:
            self._write_bytes("create_table", arguments)
        except RefusedError as error:
            if error.kind == "AlreadyExistsException":
                raise TableAlreadyExistsError(
                    f"{table.full_name} exists already", table=table.full_name
                ) from error
            if error.kind == "NoSuchObjectException" or (
                error.kind == "InvalidObjectException"
                and table.database not in self._names_of_databases()
            ):
                raise _no_namespace(table.database) from error
            raise

    def alter_table(
        self, database: str, name: str, table: HiveTable, context: Mapping[str, str] | None = None
    ) -> None:
        """Replaces what the server knows about a table, its name included.

        Args:
            database: Where the table is now.
            name: Its name now.
            table: What it becomes.
            context: The environment context, as ``DO_NOT_UPDATE_STATS``.

        Raises:
            NoSuchTableError: there is none of this name.
            RefusedError, ReplyLostError, UnreachableError: see `failure`.
        """
        encoded = wire.string_field(1, database) + wire.string_field(2, name)
        encoded += wire.struct_field(3, table_to_wire(table))
        if context is not None:
            encoded += wire.struct_field(4, wire.map_field(1, dict(context)) + b"\0")
        with _missing_table(database, name):
            self._write_bytes("alter_table_with_environment_context", encoded + b"\0")

    def drop_table(self, database: str, name: str, *, delete_data: bool = False) -> None:
        """Drops a table's entry; by default its files stay.

        Raises:
            NoSuchTableError: there is none of this name.
        """
        with _missing_table(database, name):
            self._write("drop_table", database, name, delete_data)

    # -- partitions

    def partition_names(self, database: str, table: str) -> list[str]:
        """The names of all partitions, as ``dt=2024-01-01/hour=3`` (values escaped)."""
        with _missing_table(database, table):
            return list(self._read("get_partition_names", database, table, -1))

    def partitions(self, database: str, table: str, names: Sequence[str]) -> list[HivePartition]:
        """The partitions of these names that exist; ask for a page of some hundreds at a time."""
        with _missing_table(database, table):
            found: list[HivePartition] = self._read(
                "get_partitions_by_names",
                database,
                table,
                list(names),
                result=lambda _, raw: _many(raw, partition_from_wire),
            )
        return found

    def all_partitions(
        self, database: str, table: str, page: int = _PAGE
    ) -> Iterator[list[HivePartition]]:
        """All partitions in pages, in bounded memory: names first, then partitions by name."""
        for names in _pages(self.partition_names(database, table), page):
            yield self.partitions(database, table, names)

    def add_partitions(self, partitions: Sequence[HivePartition]) -> int:
        """Adds partitions (all or none); returns how many."""
        encoded = wire.struct_list_field(1, [partition_to_wire(one) for one in partitions])
        self._write_bytes("add_partitions", encoded + b"\0")
        return len(partitions)

    def alter_partitions(
        self, database: str, table: str, partitions: Sequence[HivePartition]
    ) -> None:
        """Replaces what the server knows of existing partitions (all or none)."""
        encoded = wire.string_field(1, database) + wire.string_field(2, table)
        encoded += wire.struct_list_field(3, [partition_to_wire(one) for one in partitions])
        encoded += wire.struct_field(4, wire.map_field(1, {"DO_NOT_UPDATE_STATS": "true"}) + b"\0")
        with _missing_table(database, table):
            self._write_bytes("alter_partitions_with_environment_context", encoded + b"\0")

    def drop_partition(self, database: str, table: str, values: Sequence[str]) -> None:
        """Drops one partition's entry; its files stay."""
        with _missing_table(database, table):
            self._write("drop_partition", database, table, list(values), False)

    # -- locks

    def lock(self, database: str, table: str, *, user: str, host: str, agent: str) -> LockAnswer:
        """Asks for an exclusive lock on a table (which need not exist)."""
        component = ttypes.LockComponent(
            type=ttypes.LockType.EXCLUSIVE,
            level=ttypes.LockLevel.TABLE,
            dbname=database,
            tablename=table,
            # Hive 2.1 refuses a lock whose operation is unset; every version takes this one.
            operationType=ttypes.DataOperationType.NO_TXN,
        )
        request = ttypes.LockRequest([component], user=user, hostname=host, agentInfo=agent)
        answer = self._write("lock", request)
        return LockAnswer(answer.lockid, LockState(answer.state))

    def check_lock(self, lock_id: int) -> LockAnswer:
        """Where a lock stands; asking is also a heartbeat.

        Raises:
            RefusedError: ``NoSuchLockException``: it expired, was broken or released.
        """
        answer = self._read("check_lock", ttypes.CheckLockRequest(lockid=lock_id))
        return LockAnswer(answer.lockid, LockState(answer.state))

    def heartbeat(self, lock_id: int) -> None:
        """Keeps a lock from expiring.

        Raises:
            RefusedError: ``NoSuchLockException``: it expired, was broken or released.
        """
        self._read("heartbeat", ttypes.HeartbeatRequest(lockid=lock_id, txnid=0))

    def unlock(self, lock_id: int) -> None:
        """Releases a lock; that it is gone already is no error."""
        with contextlib.suppress(_LockGoneError):
            try:
                self._write("unlock", ttypes.UnlockRequest(lockid=lock_id))
            except RefusedError as error:
                if error.kind == "NoSuchLockException":
                    raise _LockGoneError from error
                raise

    def locks(self, database: str | None = None, table: str | None = None) -> list[LockRow]:
        """The lock table, or the part of it about one database or table."""
        request = ttypes.ShowLocksRequest(dbname=database, tablename=table)
        return [lock_row(one) for one in self._read("show_locks", request).locks or ()]

    # -- machinery

    def _names_of_databases(self) -> list[str]:
        with contextlib.suppress(MetastoreError):
            return self.databases()
        return []

    def _newest(self, newer: _Form[_T], older: _Form[_T]) -> _T:
        if newer.method not in self._missing:
            try:
                return self._form(newer)
            except MissingCallError:
                self._missing.add(newer.method)
        return self._form(older)

    def _form(self, form: _Form[_T]) -> _T:
        found: _T = self._read(form.method, *form.arguments, result=form.result)
        return found

    def _read(
        self, method: str, *arguments: Any, result: Callable[[Any, bytes], Any] | None = None
    ) -> Any:
        def send(connection: Connection) -> Any:
            answer = getattr(connection.thrift, method)(*arguments)
            return result(answer, connection.transport.reply) if result else answer

        try:
            return self._call(method, send)
        except ReplyLostError:
            return self._call(method, send)

    def _write(self, method: str, *arguments: Any) -> Any:
        return self._call(method, lambda one: getattr(one.thrift, method)(*arguments))

    def _write_bytes(self, method: str, arguments: bytes) -> None:
        self._call(method, lambda one: one.call_with_bytes(method, arguments))

    def _call(self, method: str, send: Callable[[Connection], _T]) -> _T:
        connection = self._connection()
        connection.transport.sent = False
        self.calls[method] = self.calls.get(method, 0) + 1
        try:
            return send(connection)
        except TApplicationException as error:
            if is_missing_call(error):
                raise MissingCallError(
                    f"the metastore {connection.uri} does not have the call {method}",
                    kind="TApplicationException",
                    answer=str(error.message),
                ) from error
            raise self._refused(connection, method, error) from error
        except (TTransportException, TProtocolException, OSError, EOFError, ValueError) as error:
            raise self._broken(connection, method, error) from error
        except TException as error:
            raise self._refused(connection, method, error) from error
        except BaseException:
            # An interrupt leaves half a conversation behind: nobody may continue it.
            self._discard(connection)
            raise

    def _connection(self) -> Connection:
        current: Connection | None = getattr(self._local, "connection", None)
        if current is not None:
            if self._open.get(threading.current_thread()) is current and not current.is_stale():
                return current
            self._discard(current)
        connection = self._connect()
        self._local.connection = connection
        with self._guard:
            dead = [thread for thread in self._open if not thread.is_alive()]
            orphans = [self._open.pop(thread) for thread in dead]
            self._open[threading.current_thread()] = connection
        for orphan in orphans:
            orphan.close()
        return connection

    def _connect(self) -> Connection:
        addresses = self._locate()
        failures: list[IcecombError] = []
        for address in addresses:
            try:
                connection = Connection(address, self._connect_timeout_s, self._timeout_s)
            except UnreachableError as error:
                failures.append(error)
                continue
            if self._user is not None:
                try:
                    connection.thrift.set_ugi(self._user, [self._user])
                except (TException, OSError) as error:
                    connection.close()
                    failures.append(_unusable(address, error))
                    continue
            return connection
        if len(failures) == 1:
            raise failures[0]
        raise UnreachableError(
            f"none of the metastores {', '.join(addresses)} can be reached: "
            + "; ".join(failure.message for failure in failures),
            hint="check the addresses, and that a metastore runs",
        )

    def _discard(self, connection: Connection) -> None:
        with self._guard:
            if self._open.get(threading.current_thread()) is connection:
                del self._open[threading.current_thread()]
        connection.close()
        if getattr(self._local, "connection", None) is connection:
            del self._local.connection

    def _broken(self, connection: Connection, method: str, error: Exception) -> MetastoreError:
        self._discard(connection)
        kind = ReplyLostError if connection.transport.sent else UnreachableError
        late = (
            isinstance(error, TTransportException) and error.type == TTransportException.TIMED_OUT
        )
        what = f"did not answer within {self._timeout_s:g} s" if late else f"broke off: {error}"
        return kind(
            f"the metastore {connection.uri} {what} (call {method})",
            hint="check that a Hive metastore without SASL or TLS listens there, and its log",
            uri=connection.uri,
            call=method,
        )

    def _refused(self, connection: Connection, method: str, error: Any) -> RefusedError:
        answer = str(getattr(error, "message", None) or error).strip()
        kind = type(error).__name__
        hint = None
        if "HIVE_LOCKS" in answer and "not exist" in answer:
            hint = "its database lacks the lock tables; run `schematool -initSchema`"
        elif "The following columns have types incompatible" in answer:
            hint = (
                "set hive.metastore.disallow.incompatible.col.type.changes=false on the metastore: "
                "it compares columns by position"
            )
        return RefusedError(
            f"the metastore {connection.uri} refused {method}: {answer or kind}",
            kind=kind,
            answer=answer,
            hint=hint,
            uri=connection.uri,
            call=method,
        )


class _LockGoneError(Exception):
    pass


def current_user() -> str:
    """The name this process acts under, as Hadoop would tell it."""
    import os

    return os.environ.get("HADOOP_USER_NAME") or getpass.getuser()


def table_to_json(table: HiveTable) -> dict[str, Any]:
    """A table for a journal, which `table_from_json` turns back, byte for byte."""
    encoded = base64.b64encode(table_to_wire(table)).decode("ascii")
    return {"database": table.database, "name": table.name, "thrift-binary": encoded}


def table_from_json(value: Mapping[str, Any]) -> HiveTable:
    """The table that `table_to_json` wrote."""
    return table_from_wire(base64.b64decode(value["thrift-binary"]))


def partition_to_json(partition: HivePartition) -> dict[str, Any]:
    """A partition for a journal: what `partition_from_json` turns back, byte for byte."""
    encoded = base64.b64encode(partition_to_wire(partition)).decode("ascii")
    return {"values": list(partition.values), "thrift-binary": encoded}


def partition_from_json(value: Mapping[str, Any]) -> HivePartition:
    """The partition that `partition_to_json` wrote."""
    return partition_from_wire(base64.b64decode(value["thrift-binary"]))


def _addresses(uri: str) -> tuple[str, ...]:
    addresses = tuple(part.strip() for part in uri.split(",") if part.strip())
    for address in addresses or ("",):
        endpoint(address)
    return addresses


def _unusable(address: str, error: Exception) -> UnreachableError:
    return UnreachableError(
        f"the metastore {address} accepts connections but does not talk plain Thrift: {error}",
        hint="it may want Kerberos or TLS, or be another service",
        uri=address,
    )


def _pages(names: Sequence[str], size: int) -> Iterator[list[str]]:
    for start in range(0, len(names), size):
        yield list(names[start : start + size])


def _result(raw: bytes, *, nested: bool) -> wire.Field:
    found = wire.find(raw, wire.reply_body(raw), 0)
    if found is not None and nested:
        found = wire.find(raw, found.value, 1)
    if found is None:
        raise ValueError("the reply has no result")
    return found


def _one(raw: bytes, convert: Callable[[bytes], _T], *, nested: bool = False) -> _T:
    found = _result(raw, nested=nested)
    return convert(raw[found.value : found.end])


def _many(raw: bytes, convert: Callable[[bytes], _T], *, nested: bool = False) -> list[_T]:
    found = _result(raw, nested=nested)
    return [convert(item) for item in wire.list_items(raw, found.value)]


def _no_namespace(name: str) -> NoSuchNamespaceError:
    return NoSuchNamespaceError(
        f"there is no namespace {name}",
        hint="list_namespaces() names those that exist",
        namespace=name,
    )


@contextlib.contextmanager
def _missing_namespace(name: str) -> Iterator[None]:
    try:
        yield
    except RefusedError as error:
        if error.kind == "NoSuchObjectException":
            raise _no_namespace(name) from error
        raise


@contextlib.contextmanager
def _missing_table(database: str, name: str) -> Iterator[None]:
    try:
        yield
    except RefusedError as error:
        # Hive answers an alter of a missing table with InvalidOperationException.
        gone = error.kind == "InvalidOperationException" and (
            "table not found" in error.answer or f"{name} doesn't exist" in error.answer
        )
        if gone or error.kind in {"NoSuchObjectException", "UnknownTableException"}:
            raise NoSuchTableError(
                f"there is no table {database}.{name}", table=f"{database}.{name}"
            ) from error
        raise
