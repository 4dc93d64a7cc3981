"""Delegation tokens from Hadoop's token files (``HADOOP_TOKEN_FILE_LOCATION``) or from memory."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from icecomb.format.errors import ConfigurationError
from icecomb.format.secret import remember_secret

FILE_VARIABLE: Final = "HADOOP_TOKEN_FILE_LOCATION"
_MAGIC: Final = b"HDTS"


MEMORY: Final = "memory:"
"""Prefix of a token source that is not a file: its tokens were passed to `give_tokens`."""
_given: Final[dict[str, tuple[DelegationToken, ...]]] = {}


@dataclass(frozen=True, slots=True)
class DelegationToken:
    """A token that a service issued to a user, accepted there instead of a Kerberos ticket.

    Attributes:
        identifier: Identifies the owner; opaque to icecomb.
        service: Distinguishes tokens of several services of one kind; often empty.
        written: The whole token, as Hadoop's `Token` serializes itself.
        kind: Kind of token, such as ``HIVE_DELEGATION_TOKEN``.
    """

    identifier: bytes
    password: bytes = field(repr=False)
    service: str = ""
    written: bytes = field(repr=False, default=b"")
    kind: str = ""

    @property
    def url_text(self) -> str:
        """The token as WebHDFS takes it in a query."""
        text = base64.urlsafe_b64encode(self.written).decode().rstrip("=")
        remember_secret(text)
        return text

    @classmethod
    def of_url_text(cls, text: str) -> DelegationToken:
        """Decode a token that Hadoop's ``Token.encodeToUrlString`` wrote; errors hide it."""
        try:
            data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
            return _Reader(data, 0).token()
        except (ValueError, IndexError):
            raise ConfigurationError(
                "The text given as a Hadoop delegation token is not one",
                hint="Give it as GETDELEGATIONTOKEN or Token.encodeToUrlString writes it.",
            ) from None


def give_tokens(name: str, tokens: Iterable[str]) -> str:
    """Keep tokens of the owner `name` in memory; return a source to pass to `find_tokens`.

    They replace tokens of the same name, and are in the form that `DelegationToken.of_url_text`
    reads.
    """
    source = f"{MEMORY}{name}"
    _given[source] = tuple(map(DelegationToken.of_url_text, tokens))
    return source


def token_sources(listed: str | None) -> tuple[str, ...]:
    """Return the sources to search for tokens, in order.

    Those are the listed sources, then the file named by the environment; that one is left out if
    any tokens are held in memory, as those belong to another user or are newer.

    Args:
        listed: ``hadoop.token.files``: comma-separated files, or one file with commas in its name.
    """
    named = [listed] if listed and Path(listed).is_file() else (listed or "").split(",")
    found = [each.strip() for each in named]
    if not any(each.startswith(MEMORY) for each in found):
        found.append(os.environ.get(FILE_VARIABLE, ""))
    return tuple(filter(None, found))


def find_token(path: str, kind: str, service: str | None = None) -> DelegationToken | None:
    """Return the first token of a kind in a token source; for any service by default."""
    found = (one for one in find_tokens(path) if one.kind == kind)
    return next((one for one in found if service is None or one.service == service), None)


def find_tokens(path: str) -> tuple[DelegationToken, ...]:
    """Read the tokens that a token source holds now.

    It is a file in the format of Hadoop's ``Credentials`` (version 0, Writable), or the result of
    `give_tokens`.
    """
    if path.startswith(MEMORY):
        return _given.get(path, ())
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise ConfigurationError(
            f"The token file {path} ({FILE_VARIABLE}) cannot be read: {error.strerror}",
            hint="Check the path and its permissions.",
        ) from error
    if data[:5] != _MAGIC + b"\0":
        raise ConfigurationError(
            f"{path} ({FILE_VARIABLE}) is not a token file in Hadoop's first format",
            hint="hadoop dtutil print FILE shows what it holds.",
        )
    reader = _Reader(data, 5)
    found = []
    try:
        for _ in range(reader.number()):
            reader.block()
            found.append(reader.token())
    except IndexError as error:
        raise ConfigurationError(
            f"{path} ({FILE_VARIABLE}) ends early", hint="Have the token file written again."
        ) from error
    return tuple(found)


class _Reader:
    """A reader of Hadoop's variable-length integers and the blocks they prefix."""

    def __init__(self, data: bytes, position: int) -> None:
        self._data = data
        self.position = position

    def number(self) -> int:
        first = int.from_bytes(self._take(1), "big", signed=True)
        if first >= -112:
            return first
        negative = first < -120
        size = -119 - first - 1 if negative else -111 - first - 1
        value = int.from_bytes(self._take(size), "big")
        return ~value if negative else value

    def token(self) -> DelegationToken:
        begin = self.position
        identifier, password = self.block(), self.block()
        kind, service = self.text(), self.text()
        written = self._data[begin : self.position]
        return DelegationToken(identifier, password, service, written, kind)

    def block(self) -> bytes:
        return self._take(self.number())

    def text(self) -> str:
        return self.block().decode(errors="replace")

    def _take(self, size: int) -> bytes:
        end = self.position + size
        if size < 0 or end > len(self._data):
            raise IndexError
        found = self._data[self.position : end]
        self.position = end
        return found


def token_file(token: DelegationToken, kind: str) -> bytes:
    """Return the bytes of a token file with one token, written as of kind `kind`."""
    service = token.service.encode()
    parts = (token.identifier, token.password, kind.encode(), service)
    alias = service or kind.encode()
    written = b"".join(_number(len(part)) + part for part in parts)
    return _MAGIC + b"\0" + _number(1) + _number(len(alias)) + alias + written + _number(0)


def _number(value: int) -> bytes:
    """Encode a nonnegative number as Hadoop's variable-length integer."""
    if value <= 127:
        return bytes([value])
    digits = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return (-112 - len(digits)).to_bytes(1, "big", signed=True) + digits
