"""Failures of calls to the metastore, distinguished by what is known about their effect."""

from __future__ import annotations

from typing import Final

from icecomb.format.errors import MetastoreError

UNEXPLAINED: Final = "look at the metastore's log"
"""The hint for an answer that says nothing more; callers that know more replace it."""


class UnreachableError(MetastoreError):
    """No connection: the call was never sent, so it had no effect."""


class MovedError(UnreachableError):
    """The server to be called went away; another one replaced it, and was not called."""


class ReplyLostError(MetastoreError):
    """The connection broke after sending: the call may or may not have taken effect."""


class RefusedError(MetastoreError):
    """An exception of the server, of a kind such as ``NoSuchObjectException``.

    The server's own message is ``answer``.
    """

    def __init__(
        self, message: str, *, kind: str, answer: str, hint: str | None = None, **context: object
    ) -> None:
        super().__init__(message, hint=hint, **context)
        self.kind = kind
        self.answer = answer


class MissingCallError(RefusedError):
    """This server does not have the call (it was added later, or removed)."""
