"""Kerberos over HTTP (RFC 4559) for the web interfaces of secured clusters."""

from __future__ import annotations

import base64
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

import requests
from requests.auth import AuthBase

from icecomb.format.storage.kerberos import SecurityContext


class SpnegoAuth(AuthBase):
    """Authentication at a name node that demands it; its cookie authenticates later requests.

    Args:
        principal: Client principal; None = the one of the ticket cache or the keytab.
        keytab: Keytab file; None = the ticket cache.
    """

    def __init__(self, principal: str | None = None, keytab: str | None = None) -> None:
        self._principal = principal
        self._keytab = keytab

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Add a hook that checks the response to a request."""
        request.hooks["response"] = [*request.hooks.get("response", ()), self._answer]
        return request

    def _answer(self, reply: requests.Response, **options: Any) -> requests.Response:
        asked = "negotiate" in reply.headers.get("WWW-Authenticate", "").lower()
        if reply.status_code != HTTPStatus.UNAUTHORIZED or not asked:
            return reply
        reply.content  # noqa: B018 - the connection is reusable only after reading everything
        reply.close()
        host = urlsplit(reply.url).hostname
        token = SecurityContext(f"HTTP/{host}", self._principal, self._keytab).step(None)
        request = reply.request.copy()
        request.headers["Authorization"] = f"Negotiate {base64.b64encode(token).decode()}"
        second: requests.Response = reply.connection.send(request, **options)
        second.history.append(reply)
        second.request = request
        return second
