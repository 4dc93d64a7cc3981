"""Calls to a metastore: sent on a pooled connection, failures converted to icecomb's errors.

A call that only reads is repeated once when its connection breaks, on another metastore if several
are configured; a call that changes something never is: see `failure` for what is known then.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TApplicationException, TException
from thrift.transport.TTransport import TTransportException

from icecomb.catalog.hive.thrift.connection import UNDECODED, Connection, is_missing_call
from icecomb.catalog.hive.thrift.failure import (
    UNEXPLAINED,
    MissingCallError,
    MovedError,
    RefusedError,
    ReplyLostError,
    UnreachableError,
)
from icecomb.catalog.hive.thrift.known_server import KnownServers
from icecomb.catalog.hive.thrift.pool import ConnectionPool, Failover
from icecomb.catalog.hive.thrift.settings import ConnectionSettings
from icecomb.format.call_log import timed
from icecomb.format.errors import MetastoreError
from icecomb.format.holding import Holding
from icecomb.format.secret import one_line

_T = TypeVar("_T")
_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Form(Generic[_T]):
    """One of several forms of a call, depending on the server's version.

    The arguments are encoded; ``result`` converts the reply's bytes to a value.
    """

    method: str
    arguments: bytes
    result: Callable[[bytes], _T]


class Calls:
    """The sender of calls, used by every thread of a client.

    The addresses are asked of ``locate`` before each new connection.
    """

    def __init__(self, locate: Callable[[], tuple[str, ...]], settings: ConnectionSettings) -> None:
        self._settings = settings
        self.servers = KnownServers()
        """What this client knows about servers."""
        self._failover = Failover(locate, settings, self.servers)
        self.pool = ConnectionPool(
            self._failover.connect,
            size=settings.pool_size,
            wait_s=settings.pool_wait_s,
            idle_s=settings.idle_s,
            lifetime_s=settings.lifetime_s,
        )
        self._thread = threading.local()
        self.counts: dict[str, int] = {}
        """Number of times each call was sent, by the server's name of it.

        Calls of daemon threads (a lock's heartbeat, a late release) are not counted.
        """

    @property
    def uri(self) -> str | None:
        """The address of the metastore that this thread called last."""
        return getattr(self._thread, "uri", None)

    def pin(self, held: Holding) -> str:
        """Send this thread's calls to one server until the end of ``held``; return its key.

        A call that would go elsewhere, because the server went away, raises `MovedError` instead.
        """
        if self._pin is None:
            with Holding() as lent, lent:
                server = self.pool.borrow(lent, None).server
            held.add(self._unpin)
            self._thread.pin = server
        return str(self._pin)

    def _unpin(self) -> None:
        self._thread.pin = None

    @property
    def _pin(self) -> str | None:
        return getattr(self._thread, "pin", None)

    def read(
        self,
        method: str,
        *arguments: Any,
        result: Callable[[bytes], Any] | None = None,
        convert: Callable[[Any], Any] | None = None,
    ) -> Any:
        """Send a call that changes nothing (or nothing more when repeated).

        Args:
            *arguments: The arguments of the generated client's method.
            result: Converts the reply's bytes to a value; default the generated client's value.
            convert: Converts the generated client's value; a ValueError means that the reply
                cannot be decoded.
        """

        def send(connection: Connection) -> Any:
            if result is None:
                return _converted(getattr(connection.thrift, method)(*arguments), convert)
            connection.call_for_bytes(method, *arguments)
            return result(connection.reply)

        return self._twice(method, send)

    def newest(self, *forms: Form[_T]) -> _T:
        """Send a reading call in the first of ``forms``, newest first, that the server has.

        Missing calls are remembered per connection: another server may have them.
        """
        *newer, oldest = forms
        for form in newer:
            with suppress(MissingCallError):
                return self._form(form)
        return self._form(oldest)

    def write(
        self, method: str, *arguments: Any, convert: Callable[[Any], Any] | None = None
    ) -> Any:
        """Send a call that changes something; ``convert`` as of `read`."""
        return self.send(
            method, lambda one: _converted(getattr(one.thrift, method)(*arguments), convert)
        )

    def write_bytes(self, method: str, arguments: bytes) -> None:
        """Send a call that changes something, with encoded arguments."""
        self.send(method, lambda one: one.call_with_bytes(method, arguments))

    def send(self, method: str, send: Callable[[Connection], _T]) -> _T:
        """Send one call on a pooled connection.

        UnreachableError means that it was not sent, ReplyLostError that it was sent and the
        connection broke, MissingCallError that the server does not have the call.
        """
        with Holding() as held, held:
            connection = self.pool.borrow(held, self._pin)
            self._thread.uri = connection.uri
            if self._pin not in {None, connection.server}:
                raise MovedError(
                    f"The metastore is {connection.uri} since the previous one went away",
                    hint="Try again.",
                    uri=connection.uri,
                    call=method,
                )
            if method in connection.missing:
                raise _missing(connection, method, f"Invalid method name: {method!r}")
            connection.expect_reply()
            if not threading.current_thread().daemon:
                self.counts[method] = self.counts.get(method, 0) + 1
            try:
                with timed(_LOG, connection.uri, method):
                    answer = send(connection)
                connection.check_reply()
            except TApplicationException as error:
                if error.type == TApplicationException.MISSING_RESULT:
                    raise self._broken(connection, method, error) from None
                connection.in_call = False
                if is_missing_call(error):
                    connection.missing.add(method)
                    raise _missing(connection, method, str(error.message)) from None
                raise _refused(connection, method, error) from None
            except (
                TTransportException,
                TProtocolException,
                OSError,
                EOFError,
                *UNDECODED,
            ) as error:
                raise self._broken(connection, method, error) from error
            except TException as error:
                connection.in_call = False
                raise _refused(connection, method, error) from None
            connection.in_call = False
            return answer

    def _form(self, form: Form[_T]) -> _T:
        def send(connection: Connection) -> _T:
            connection.call_with_bytes(form.method, form.arguments)
            return form.result(connection.reply)

        return self._twice(form.method, send)

    def _twice(self, method: str, send: Callable[[Connection], _T]) -> _T:
        try:
            return self.send(method, send)
        except ReplyLostError as error:
            _LOG.info("%s; it only reads, and is repeated", error.message)
            return self.send(method, send)

    def _broken(self, connection: Connection, method: str, error: Exception) -> MetastoreError:
        kind = ReplyLostError if connection.has_sent else UnreachableError
        connection.give_up()
        late = (
            isinstance(error, TTransportException) and error.type == TTransportException.TIMED_OUT
        )
        what = f"did not answer within {self._settings.timeout_s:g} s"
        return kind(
            f"the metastore {connection.uri} {what if late else f'broke off: {one_line(error)}'} "
            f"(call {method})",
            hint="Check that the metastore still runs, and look at its log.",
            uri=connection.uri,
            call=method,
        )


def _converted(value: Any, convert: Callable[[Any], Any] | None) -> Any:
    return value if convert is None else convert(value)


def _missing(connection: Connection, method: str, answer: str) -> MissingCallError:
    return MissingCallError(
        f"The metastore {connection.uri} does not have the call {method}",
        hint="Use a metastore of a version that has it: Hive 2.3, 3.1 or 4.",
        kind="TApplicationException",
        answer=answer,
    )


def _refused(connection: Connection, method: str, error: Any) -> RefusedError:
    answer = str(getattr(error, "message", None) or error).strip()
    kind = type(error).__name__
    hint = UNEXPLAINED
    if "HIVE_LOCKS" in answer and "not exist" in answer:
        hint = "Its database lacks the lock tables; run `schematool -initSchema`."
    elif "The following columns have types incompatible" in answer:
        hint = (
            "Set hive.metastore.disallow.incompatible.col.type.changes=false on the metastore: "
            "it compares columns by position."
        )
    elif "Cannot update parameter with JDO" in answer:
        hint = (
            "The metastore runs with hive.metastore.try.direct.sql=false: set it to true, or "
            "hive.check-and-put=true on the catalog, which finds that out and relies on locks."
        )
    return RefusedError(
        f"The metastore {connection.uri} refused {method}: {one_line(answer) or kind}",
        kind=kind,
        answer=answer,
        hint=hint,
        uri=connection.uri,
        call=method,
    )
