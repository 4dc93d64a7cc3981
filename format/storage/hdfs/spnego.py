"""Kerberos over HTTP (RFC 4559) for the web interfaces of secured clusters."""

from __future__ import annotations

import base64
import re
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlsplit

import requests
from requests.auth import AuthBase

from icecomb.format.errors import IcecombError
from icecomb.format.storage.kerberos import GssError, SecurityContext
from icecomb.format.storage.storage_property import HADOOP_FALLBACK

_PROOF: Final = re.compile(r"\bnegotiate +([A-Za-z0-9+/]+=*)", re.IGNORECASE)


class SpnegoAuth(AuthBase):
    """Authentication at a name node that demands it; its cookie authenticates later requests.

    Args:
        principal: Client principal; None = the one of the ticket cache or the keytab.
        keytab: Keytab file; None = the ticket cache.

    Attributes:
        proven: `host:port` of the servers that have proven to be who they are.
    """

    def __init__(self, principal: str | None = None, keytab: str | None = None) -> None:
        self._principal = principal
        self._keytab = keytab
        self.proven: set[str] = set()

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Add a hook that logs in where a response demands it, and checks who answers."""
        request.hooks["response"] = [*request.hooks.get("response", ()), self._answer]
        return request

    def _answer(self, reply: requests.Response, **options: Any) -> requests.Response:
        asked = "negotiate" in reply.headers.get("WWW-Authenticate", "").lower()
        if reply.status_code != HTTPStatus.UNAUTHORIZED or not asked:
            return reply
        reply.content  # noqa: B018 - the connection is reusable only after reading everything
        reply.close()
        host = urlsplit(reply.url).hostname
        context = SecurityContext(f"HTTP/{host}", self._principal, self._keytab)
        token = context.step(None)
        request = reply.request.copy()
        request.headers["Authorization"] = f"Negotiate {base64.b64encode(token).decode()}"
        second: requests.Response = reply.connection.send(request, **options)
        second.history.append(reply)
        second.request = request
        try:
            _take_proof(context, second)
            if context.established:
                self.proven.add(urlsplit(reply.url).netloc)
            _check(second, proven=context.established)
        except IcecombError:
            second.close()
            raise
        return second

    def check(self, reply: requests.Response) -> None:
        """Check that a response comes from a server that has proven who it is.

        One that asks for a login (401) needs no proof.
        """
        _check(reply, proven=urlsplit(reply.url).netloc in self.proven)


def _check(reply: requests.Response, *, proven: bool) -> None:
    parts = urlsplit(reply.url)
    if reply.status_code != HTTPStatus.UNAUTHORIZED and not proven:
        raise GssError(
            f"{parts.netloc} does not prove that it is HTTP/{parts.hostname}: its answer "
            f"(HTTP {reply.status_code}) is not believed",
            hint="Check the ticket (klist), the address of the name node and the proxies on the "
            f"way there; {HADOOP_FALLBACK}=true allows clusters without security.",
        )


def _take_proof(context: SecurityContext, reply: requests.Response) -> None:
    """Check the server's proof, if any, that it has its service's key (mutual authentication)."""
    proof = _PROOF.search(reply.headers.get("WWW-Authenticate", ""))
    if proof is not None:
        context.step(base64.b64decode(proof[1]))
