"""SASL under Thrift, as metastores with ``hive.metastore.sasl.enabled`` require it.

Each message of the negotiation is a status byte, a length in four bytes, and a body; afterwards
everything is sent in frames of a length in four bytes and a body that the mechanism sealed.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Protocol

from icecomb.catalog.hive.thrift.transport import Transport
from icecomb.format.errors import MetastoreError
from icecomb.format.secret import one_line
from icecomb.format.storage.delegation_token import DelegationToken
from icecomb.format.storage.kerberos import GssError, SecurityContext

_START: Final = 1
_OK: Final = 2
_COMPLETE: Final = 5
_LONGEST: Final = 1 << 20
_ROUNDS: Final = 16
"""The most challenges of one login; those of Hive's metastores have three at most."""
_CHALLENGE: Final = 4096
"""The most bytes of a challenge of DIGEST-MD5; RFC 2831 allows 2,048."""
_DIRECTIVE: Final = re.compile(r'([\w-]+)\s*=\s*(?:"([^"]*)"|([^,]*))')
_LAYERS: Final = {"auth": 1, "auth-int": 2, "auth-conf": 4}


class SaslError(MetastoreError):
    """The authentication with the metastore failed."""


class Mechanism(Protocol):
    """One way of authenticating."""

    name: str

    def answer(self, challenge: bytes | None) -> bytes:
        """Return the response to the server's challenge; None stands for the beginning."""

    @property
    def complete(self) -> bool:
        """Whether the server, too, has authenticated."""

    def wrap(self, data: bytes) -> bytes:
        """Implement `icecomb.catalog.hive.thrift.transport.Seal`."""

    def unwrap(self, data: bytes) -> bytes:
        """Implement `icecomb.catalog.hive.thrift.transport.Seal`."""


def negotiate(transport: Transport, mechanism: Mechanism) -> None:
    """Authenticate to the server; the transport seals what it sends from then on."""
    _send(transport, _START, mechanism.name.encode())
    _send(transport, _OK, mechanism.answer(None))
    for _ in range(_ROUNDS):
        status, size = _header(transport.receive_raw(5))
        if status not in {_OK, _COMPLETE, 3, 4} or size > _LONGEST:
            raise SaslError(
                "its answer is not SASL: it does not ask for authentication",
                hint="Check that hive.metastore.sasl.enabled is true on the metastore, too.",
            )
        body = transport.receive_raw(size)
        if status not in {_OK, _COMPLETE}:
            raise SaslError(
                f"it refused the client: {one_line(body.decode(errors='replace'))}",
                hint="Look at the metastore's log, and check kerberos.principal or the token; name "
                "its warehouse instead of its address if it is one of your own.",
            )
        if status == _COMPLETE:
            if body:
                mechanism.answer(body)
            if not mechanism.complete:
                raise SaslError(
                    "it did not prove who it is",
                    hint="Check the address: another server may answer there.",
                )
            transport.seal = mechanism
            return
        _send(transport, _OK, mechanism.answer(body))
    raise SaslError(
        f"it asks for more than {_ROUNDS} messages of a login",
        hint="Check the address: another server may answer there.",
    )


@contextmanager
def _failures() -> Iterator[None]:
    try:
        yield
    except GssError as error:
        raise MetastoreError(error.message, hint=error.hint) from None


class Kerberos:
    """The mechanism GSSAPI (RFC 4752).

    Args:
        service: The metastore's principal, as ``hive/host.example.com@REALM``.
        principal: The client's principal; None for that of the ticket cache or keytab.
        keytab: The file with the client's key; None for the ticket cache.
        protection: ``auth``, ``auth-int`` or ``auth-conf``; None for the weakest that the
            metastore accepts.
    """

    name = "GSSAPI"

    def __init__(
        self,
        service: str,
        principal: str | None = None,
        keytab: str | None = None,
        protection: str | None = None,
    ) -> None:
        self._wanted = protection
        with _failures():
            self._context = SecurityContext(service, principal, keytab)
        self._quality: str | None = None

    @property
    def complete(self) -> bool:
        """Whether the protection of messages is agreed upon."""
        return self._quality is not None

    def answer(self, challenge: bytes | None) -> bytes:
        """Return a Kerberos token, and after those the choice of protection."""
        if not self._context.established:
            with _failures():
                return self._context.step(challenge)
        if challenge is None or self._quality is not None:
            raise SaslError(
                "it continues after the end of the negotiation",
                hint="Look at the metastore's log, and check that its version is supported.",
            )
        with _failures():
            offer = self._context.unwrap(challenge)
        if len(offer) != 4:
            raise SaslError(
                "it offers no protection that icecomb knows",
                hint="Look at the metastore's log, and check that its version is supported.",
            )
        offered = [name for name, bit in _LAYERS.items() if offer[0] & bit]
        if self._wanted not in {None, *offered} or not offered:
            raise SaslError(
                f"it protects messages by {', '.join(offered) or 'nothing that icecomb knows'}",
                hint="Set hadoop.rpc.protection as the metastore has it.",
            )
        self._quality = self._wanted or offered[0]
        size = offer[1:] if self._quality != "auth" else bytes(3)
        return self._context.wrap(bytes([_LAYERS[self._quality]]) + size, encrypt=False)

    def wrap(self, data: bytes) -> bytes:
        """Return the data signed or encrypted, as agreed upon."""
        if self._quality == "auth":
            return data
        with _failures():
            return self._context.wrap(data, encrypt=self._quality == "auth-conf")

    def unwrap(self, data: bytes) -> bytes:
        """Return the data that the metastore signed or encrypted."""
        if self._quality == "auth":
            return data
        with _failures():
            return self._context.unwrap(data)


class Digest:
    """The mechanism DIGEST-MD5 (RFC 2831) for a delegation token, without sealing of messages.

    Args:
        protection: As of `Kerberos`: what a server offers does not count here, as nothing proves
            who offers it.
        realm: The realm that the server must have: its address, where a login that is relayed to
            another server must not be valid.
    """

    name = "DIGEST-MD5"

    def __init__(
        self, token: DelegationToken, protection: str | None = None, realm: str | None = None
    ) -> None:
        if protection not in {None, "auth"}:
            raise SaslError(
                f"hadoop.rpc.protection asks for {protection}, and with a delegation token icecomb "
                "seals no messages: nothing was sent",
                hint="Use Kerberos (no token); or TLS (hive.metastore.use.SSL) with "
                "hadoop.rpc.protection=authentication",
            )
        self._user = base64.b64encode(token.identifier).decode()
        self._password = base64.b64encode(token.password).decode()
        self._realm = realm
        self._expected: str | None = None
        self.complete = False

    def answer(self, challenge: bytes | None) -> bytes:
        """Return the response to the server's nonce; afterwards, check the server's proof."""
        if challenge is None:
            return b""
        told = _directives(challenge)
        if self._expected is not None:
            proof = told.get("rspauth", "").encode()
            if not hmac.compare_digest(proof, self._expected.encode()):
                raise SaslError(
                    "it does not know the token's password",
                    hint="Check the address: another server may answer there.",
                )
            self.complete = True
            return b""
        if "auth" not in told.get("qop", "auth").split(","):
            raise SaslError(
                "it wants messages sealed, which icecomb does not support with delegation tokens",
                hint="Set hadoop.rpc.protection to authentication,... there, or use Kerberos.",
            )
        if "nonce" not in told:
            raise _not_digest()
        realm, nonce, mine = told.get("realm", ""), told["nonce"], secrets.token_hex(16)
        if self._realm not in {None, realm}:
            raise SaslError(
                f"it is not the server at {self._realm} but says that it is at {one_line(realm)!r}",
                hint="Name its warehouse instead of its address; one that an older version of "
                "icecomb started has to be stopped first: `icecomb metastore stop`.",
            )
        target = "null/default"
        secret = _md5(f"{self._user}:{realm}:{self._password}".encode())
        first = _md5(secret + f":{nonce}:{mine}".encode()).hex()

        def response(method: str) -> str:
            second = _md5(f"{method}:{target}".encode()).hex()
            return _md5(f"{first}:{nonce}:00000001:{mine}:auth:{second}".encode()).hex()

        self._expected = response("")
        return (
            f'charset=utf-8,username="{self._user}",realm="{realm}",nonce="{nonce}",nc=00000001,'
            f'cnonce="{mine}",digest-uri="{target}",qop=auth,maxbuf=65536,'
            f"response={response('AUTHENTICATE')}"
        ).encode()

    def wrap(self, data: bytes) -> bytes:
        """Return the data unchanged."""
        return data

    def unwrap(self, data: bytes) -> bytes:
        """Return the data unchanged."""
        return data


def _send(transport: Transport, status: int, body: bytes) -> None:
    transport.send_raw(bytes([status]) + len(body).to_bytes(4, "big") + body)


def _header(data: bytes) -> tuple[int, int]:
    return data[0], int.from_bytes(data[1:], "big")


def _md5(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).digest()


def _directives(challenge: bytes) -> dict[str, str]:
    """Parse directives such as ``a=b,c="d,e"``."""
    try:
        text = challenge[: _CHALLENGE + 1].decode()
    except UnicodeDecodeError:
        raise _not_digest() from None
    if len(challenge) > _CHALLENGE:
        raise _not_digest()
    return {name: quoted or plain for name, quoted, plain in _DIRECTIVE.findall(text)}


def _not_digest() -> SaslError:
    return SaslError(
        "its challenge is not one of DIGEST-MD5",
        hint="Check the address: another server may answer there.",
    )
