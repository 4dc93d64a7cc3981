"""Delegation tokens of Hadoop's token files, as ``HADOOP_TOKEN_FILE_LOCATION`` names one."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from icecomb.format.errors import ConfigurationError

FILE_VARIABLE: Final = "HADOOP_TOKEN_FILE_LOCATION"
_MAGIC: Final = b"HDTS"


@dataclass(frozen=True, slots=True)
class DelegationToken:
    """What a service gave to a user, good in its place of a ticket.

    Attributes:
        identifier: Says whose it is; opaque here.
        password: Proves it.
        service: Tells tokens of several services of one kind apart; often empty.
        written: The whole token, as Hadoop's `Token` writes itself.
    """

    identifier: bytes
    password: bytes = field(repr=False)
    service: str = ""
    written: bytes = field(repr=False, default=b"")

    @property
    def url_text(self) -> str:
        """As WebHDFS takes it in a query."""
        return base64.urlsafe_b64encode(self.written).decode().rstrip("=")


def find_token(path: str, kind: str, service: str | None = None) -> DelegationToken | None:
    """The token of a kind in a token file.

    Args:
        path: A file in the form of Hadoop's ``Credentials`` (version 0, Writable).
        kind: As ``HIVE_DELEGATION_TOKEN``.
        service: Only one of this service.

    Raises:
        ConfigurationError: the file cannot be read, or has another form.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise ConfigurationError(
            f"The token file {path} ({FILE_VARIABLE}) cannot be read: {error.strerror}",
            hint="check the path and its permissions",
        ) from error
    if data[:5] != _MAGIC + b"\0":
        raise ConfigurationError(
            f"{path} ({FILE_VARIABLE}) is no token file of Hadoop's first version",
            hint="hadoop dtutil print FILE shows what it holds",
        )
    reader = _Reader(data, 5)
    try:
        for _ in range(reader.number()):
            reader.block()
            begin = reader.position
            identifier, password = reader.block(), reader.block()
            found, of = reader.text(), reader.text()
            if found == kind and (service is None or of == service):
                return DelegationToken(identifier, password, of, data[begin : reader.position])
    except IndexError as error:
        raise ConfigurationError(
            f"{path} ({FILE_VARIABLE}) ends early", hint="have the token file written again"
        ) from error
    return None


class _Reader:
    """Hadoop's variable-length numbers, and blocks that begin with one."""

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
    """A token file with one token.

    Args:
        token: The token.
        kind: As ``HIVE_DELEGATION_TOKEN``.
    """
    service = token.service.encode()
    parts = (token.identifier, token.password, kind.encode(), service)
    alias = service or kind.encode()
    written = b"".join(_number(len(part)) + part for part in parts)
    return _MAGIC + b"\0" + _number(1) + _number(len(alias)) + alias + written + _number(0)


def _number(value: int) -> bytes:
    """Hadoop's variable-length form of a number that is not negative."""
    if value <= 127:
        return bytes([value])
    digits = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return (-112 - len(digits)).to_bytes(1, "big", signed=True) + digits
