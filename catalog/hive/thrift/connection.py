"""One Thrift connection to one metastore: opened, authenticated, and used for calls."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from hmsclient.genthrift.hive_metastore import ThriftHiveMetastore, ttypes
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TApplicationException, TException, TMessageType, TType

from icecomb.catalog.hive.thrift import wire
from icecomb.catalog.hive.thrift.failure import UnreachableError
from icecomb.catalog.hive.thrift.known_server import KnownServers
from icecomb.catalog.hive.thrift.security import SaslSettings, TlsSettings
from icecomb.catalog.hive.thrift.settings import ConnectionSettings
from icecomb.catalog.hive.thrift.transport import Transport
from icecomb.format.errors import ConfigurationError, MetastoreError
from icecomb.format.input_limit import REPLY
from icecomb.format.secret import one_line, shown

if TYPE_CHECKING:
    from icecomb.catalog.hive.thrift.sasl import Mechanism
    from icecomb.format.storage.delegation_token import DelegationToken

DEFAULT_PORT: Final = 9083
UNDECODED: Final = (
    ValueError, IndexError, TypeError, OverflowError, MemoryError, RecursionError,
)  # fmt: skip
"""Exceptions of Thrift's decoder for replies that cannot be decoded."""
_PATIENCE: Final = 3
"""How many times longer than connecting each step of the handshake may take."""
_LARGEST: Final = 0x7FFFFFFF
_REPLIES: Final = {TMessageType.REPLY, TMessageType.EXCEPTION}


class Connection:
    """A connection and the generated client on it; it adds to ``servers`` when one goes away.

    Attributes:
        server: The server's key: the address that answered, and how often it went away before.
        made: Time of the connection, on the monotonic clock.
        missing: Names of the calls that the server is known to lack.
        in_call: Whether a call was begun whose reply was not read to its end.
    """

    def __init__(self, uri: str, settings: ConnectionSettings, servers: KnownServers) -> None:
        self.uri = uri
        self._servers = servers
        self.pid = os.getpid()
        self.made = time.monotonic()
        self.missing: set[str] = set()
        self.in_call = False
        host, port = endpoint(uri)
        try:
            plug = socket.create_connection((host, port), timeout=settings.connect_timeout_s)
        except OSError as error:
            raise UnreachableError(
                f"The metastore {uri} cannot be reached: {error.strerror or error}",
                hint="Check the address, and that the metastore runs.",
                uri=uri,
            ) from error
        peer = plug.getpeername()
        self._address = f"{peer[0]}:{peer[1]}"
        self.server = f"{self._address} {servers.life(uri)}"
        plug.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        plug.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        # A busy server may take a while for its first answers; another service never gives them.
        patience_s = _PATIENCE * settings.connect_timeout_s
        plug.settimeout(patience_s)
        if settings.tls is not None:
            plug = self._private(plug, host, settings.tls)
        self._transport = Transport(plug, patience_s)
        self._protocol = NumberedProtocol(self._transport)
        self.thrift = ThriftHiveMetastore.Client(self._protocol)
        try:
            self._introduce(host, settings)
        except BaseException:
            self.close()
            raise
        self._transport.timeout_s = settings.timeout_s
        self._transport.largest = settings.largest_reply

    @property
    def is_open(self) -> bool:
        """Whether the connection can be used for calls."""
        return bool(self._transport.isOpen())

    @property
    def reply(self) -> bytes:
        """The bytes of the last reply."""
        return self._transport.reply

    @property
    def has_sent(self) -> bool:
        """Whether any byte was sent since `expect_reply`."""
        return self._transport.sent

    def expect_reply(self) -> None:
        """Begin a new call."""
        self.in_call = True
        self._transport.sent = False

    def check_reply(self) -> None:
        """Check that the reply is a result, or nothing: Thrift ignores exceptions of new kinds."""
        reply = self.reply
        if wire.first_id(reply, wire.reply_body(reply)) not in {None, 0}:
            raise TProtocolException(
                TProtocolException.INVALID_DATA, "unknown result: an exception of no known kind"
            )

    def is_stale(self) -> bool:
        """Return whether the server has closed it (or sent something unrequested).

        A connection inherited by a forked process is stale, too: its replies belong to the parent.
        """
        if self.pid != os.getpid():
            return True
        stale = self._transport.is_readable()
        if stale:
            self._servers.went_away(self.uri, suspect=False)
        return stale

    def give_up(self) -> None:
        """Close the connection because the server does not answer properly."""
        self._servers.went_away(self.uri, suspect=True)
        self.close()

    def close(self) -> None:
        """Close the socket; the server then frees its thread."""
        self._transport.close()

    def __del__(self) -> None:
        # Absent when the constructor failed.
        if transport := getattr(self, "_transport", None):
            transport.close()

    def call_with_bytes(self, method: str, arguments: bytes) -> None:
        """Send a call with encoded arguments; the generated client reads the reply if it can."""
        self._protocol.writeMessageBegin(method, TMessageType.CALL, 0)
        self._transport.write(arguments)
        self._protocol.writeMessageEnd()
        self._transport.flush()
        self._receive(method)

    def call_for_bytes(self, method: str, *arguments: Any) -> None:
        """Send a call by the generated client, which reads the reply if it can."""
        getattr(self.thrift, f"send_{method}")(*arguments)
        self._receive(method)

    def _receive(self, method: str) -> None:
        """Read the reply to a call; `reply` has its bytes, an exception raises TException."""
        receive = getattr(self.thrift, f"recv_{method}", self._skip)
        try:
            receive()
        except TypeError:
            # Values of SKEWED BY are a map with lists as keys, which no Python dict accepts.
            self._transport.rewind()
            self._skip()

    def _skip(self) -> None:
        """Read the bytes of a reply without decoding its result.

        TApplicationException is raised if the server does not know the call either.
        """
        _, kind, _ = self._protocol.readMessageBegin()
        if kind == TMessageType.EXCEPTION:
            error = TApplicationException()
            error.read(self._protocol)
            self._protocol.readMessageEnd()
            raise error
        self._protocol.skip(TType.STRUCT)
        self._protocol.readMessageEnd()

    def _private(self, plug: socket.socket, host: str, tls: TlsSettings) -> socket.socket:
        try:
            return tls.wrap(plug, host)
        except OSError as error:
            import ssl

            plug.close()
            if isinstance(error, ssl.SSLCertVerificationError):
                what = f"failed TLS verification: {error.verify_message}"
                hint = "Name its authority in hive.metastore.truststore.path (PEM)."
            else:
                what = f"does not speak TLS: {error}"
                hint = "Check the port, and whether the metastore has hive.metastore.use.SSL."
            raise UnreachableError(
                f"The metastore {self.uri} {what}", hint=hint, uri=self.uri
            ) from error

    def _introduce(self, host: str, settings: ConnectionSettings) -> None:
        if (sasl := settings.sasl or self._own()) is not None:
            self._authenticate(host, sasl, settings)
        if settings.user is None:
            return
        user, _, groups = settings.user.partition(":")
        try:
            self.thrift.set_ugi(user, groups.split(",") if groups else [user])
        except TApplicationException:
            # A server that authenticates by other means does not know the call.
            return
        except ttypes.MetaException as error:
            # the cause is printed, too
            error.message = one_line(error.message)
            raise UnreachableError(
                f"The metastore {self.uri} rejected the login: {error.message}",
                hint="Name its warehouse instead of its address.",
                uri=self.uri,
            ) from error
        except (TException, OSError, EOFError, *UNDECODED) as error:
            raise UnreachableError(
                f"The metastore {self.uri} accepts connections but does not talk "
                f"{'plain ' if settings.tls is None else ''}Thrift: {one_line(error)}",
                hint="It may want Kerberos (hive.metastore.sasl.enabled) or TLS "
                "(hive.metastore.use.SSL), or be another service.",
                uri=self.uri,
            ) from error

    def _own(self) -> SaslSettings | None:
        """Return the login to this user's embedded metastore; None for a server of others.

        Where one was, another user of the machine may listen by now.
        """
        if not self._address.startswith(("127.", "::1:", "::ffff:127.")):
            return None
        from icecomb.catalog.configuration.metastore_folder import find, record

        port = endpoint(self.uri)[1]
        if found := find("127.0.0.1", port):
            self._servers.embedded.add(self.uri)
            return SaslSettings.of(found.client_settings)
        if (was := record(port)) or self.uri in self._servers.embedded:
            raise UnreachableError(
                f"{self.uri} is the address of an embedded metastore of yours that has ended: who "
                "answers there now may be anybody, and was sent nothing",
                hint="Name its warehouse instead of its address (`icecomb metastore start` prints "
                "the new one)"
                + (f"; if another metastore has the port now, delete {was}." if was else "."),
                uri=self.uri,
            )
        return None

    def _digest(self, token: DelegationToken, sasl: SaslSettings) -> Mechanism:
        """Return the login by a token; with an embedded metastore's, to that server only."""
        from icecomb.catalog.configuration.metastore_folder import SIGNATURE, announces
        from icecomb.catalog.hive.thrift.sasl import Digest

        if token.service != SIGNATURE:
            return Digest(token, sasl.protection)
        port = endpoint(self.uri)[1]
        if not any(announces(each, port) for each in sasl.token_files):
            raise UnreachableError(
                f"The embedded metastore whose token would be sent to {self.uri} has ended, or "
                "been started again at another port: nothing was sent",
                hint="Name its warehouse instead of its address (`icecomb metastore start` prints "
                "the new one).",
                uri=self.uri,
            )
        return Digest(token, sasl.protection, realm=self._address)

    def _authenticate(self, host: str, sasl: SaslSettings, settings: ConnectionSettings) -> None:
        from icecomb.catalog.hive.thrift.sasl import Kerberos, negotiate

        mechanism: Mechanism
        token = sasl.token
        if token is None and sasl.proxy_user is not None:
            token = self._token_of(sasl.proxy_user, sasl, settings)
        try:
            if token is not None:
                mechanism = self._digest(token, sasl)
            else:
                mechanism = Kerberos(
                    sasl.service_at(host), sasl.principal, sasl.keytab, sasl.protection
                )
            negotiate(self._transport, mechanism)
        except UnreachableError:
            raise
        except MetastoreError as error:
            raise UnreachableError(
                f"The metastore {self.uri} rejected the login: {error.message}",
                hint=error.hint,
                uri=self.uri,
            ) from error
        except (TException, OSError) as error:
            raise UnreachableError(
                f"The metastore {self.uri} closed the connection during authentication: "
                f"{one_line(error)}",
                hint="Check that it has hive.metastore.sasl.enabled, and its log.",
                uri=self.uri,
            ) from error

    def _token_of(
        self, user: str, sasl: SaslSettings, settings: ConnectionSettings
    ) -> DelegationToken:
        """Request a token for acting for a user, in this client's own name."""
        from icecomb.format.storage.delegation_token import DelegationToken

        ourselves = replace(settings, sasl=replace(sasl, proxy_user=None, token_files=()))
        own = Connection(self.uri, ourselves, self._servers)
        try:
            return DelegationToken.of_url_text(own.thrift.get_delegation_token(user, user))
        except (TException, OSError, EOFError, *UNDECODED) as error:
            raise UnreachableError(
                f"The metastore {self.uri} does not allow acting for {user}: "
                f"{one_line(getattr(error, 'message', None) or error)}",
                hint="Set hadoop.proxyuser.<login>.hosts and .groups in its core-site.xml; or "
                f"start an application as {user} (spark-submit --proxy-user).",
                uri=self.uri,
            ) from error
        finally:
            own.close()


def endpoint(uri: str) -> tuple[str, int]:
    """Return host and port of ``thrift://host:port`` (the port is optional)."""
    try:
        parts = urlsplit(uri if "://" in uri else f"thrift://{uri}")
        host, port = parts.hostname, parts.port or DEFAULT_PORT
    except ValueError:
        host, port = None, 0
    # A user name or password would appear in every message that names the address.
    if not host or parts.scheme != "thrift" or parts.path.strip("/") or "@" in parts.netloc:
        raise ConfigurationError(
            f"{shown('uri', uri)!r} is not the address of a Hive metastore",
            hint="Write it as thrift://host:9083; separate several with commas.",
        )
    return host, port


def is_missing_call(error: Any) -> bool:
    """Return whether an error says that the server does not have this call."""
    return (
        isinstance(error, TApplicationException)
        and error.type == TApplicationException.UNKNOWN_METHOD
    )


class NumberedProtocol(TBinaryProtocolAccelerated):  # type: ignore[misc]
    """The binary protocol with calls that carry running numbers, and replies that repeat them.

    A proxy, or a server whose client gave up a call and went on, may send the reply to another
    call, which would report a change as done that may not have happened.
    """

    _called = ("", 0)
    _fast_decode: Callable[..., Any] | None

    def __init__(self, transport: Transport) -> None:
        super().__init__(transport)
        if self._fast_decode is not None:
            self._fast_decode = partial(_decode, self._fast_decode)

    def writeMessageBegin(self, name: str, type: int, seqid: int) -> None:  # noqa: A002, ARG002, N802 - thrift's
        """Begin a call."""
        self._called = (name, self._called[1] % _LARGEST + 1)
        super().writeMessageBegin(name, type, self._called[1])

    def readMessageBegin(self) -> tuple[str, int, int]:  # noqa: N802 - thrift's
        """Begin a reply; it must be the one to the last call."""
        self.container_length_limit = REPLY.value
        name, kind, number = super().readMessageBegin()
        if (name, number) != self._called or kind not in _REPLIES:
            raise TProtocolException(
                TProtocolException.INVALID_DATA,
                f"the reply to another call came: {name[:80]!r}, number {number}",
            )
        return name, kind, number


def _decode(decode: Callable[..., Any], *given: Any) -> Any:
    """Decode by Thrift's decoder in C, whose words do not say what a length is compared with."""
    try:
        return decode(*given)
    except OverflowError as error:
        raise TProtocolException(
            TProtocolException.SIZE_LIMIT, f"its reply has a list longer than the limit ({REPLY})"
        ) from error
