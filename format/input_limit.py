"""Limits on what bytes of others may ask for: a few could take all memory, or the stack.

Tables do not reach the defaults. An environment variable of the name sets another limit.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Protocol

from icecomb.format.errors import ConfigurationError, SchemaError


@dataclass(frozen=True, slots=True)
class InputLimit:
    """A limit, of a counted unit, that the environment variable `name` sets."""

    name: str
    default: int
    unit: str

    def __str__(self) -> str:
        return f"{self.name}: {self.value} {self.unit}"

    @property
    def value(self) -> int:
        """The present limit."""
        said = os.environ.get(self.name)
        if said is None:
            return self.default
        if not (said.isascii() and said.isdigit() and int(said[:9]) > 0 and len(said) < 10):
            raise ConfigurationError(
                f"{self.name} cannot be {said!r}",
                hint=f"give a number of {self.unit}, or unset it: the default is {self.default}",
            )
        return int(said)


UNPACKED: Final = InputLimit("ICECOMB_MAX_UNPACKED_MIB", 2048, "MiB")
"""The most that a packed metadata file, a manifest, a list, a Puffin file's part or a block of rows
may be when it is unpacked."""
LEVELS: Final = InputLimit("ICECOMB_MAX_SCHEMA_LEVELS", 100, "levels")
"""The most levels of nested types in a schema, of any format."""
TOO_DEEP: Final = "its values are nested more deeply than this program's stack allows"
"""The reason for refusing JSON whose parser ends in a `RecursionError`."""
_WHOLE: Final = re.compile("[0-9]{1,19}")


def unpacked_bytes() -> int:
    """Return the limit `UNPACKED` in bytes."""
    return UNPACKED.value << 20


def too_large() -> str:
    """Return the reason for refusing data larger than `UNPACKED`."""
    return f"it is unpacked to more than the limit ({UNPACKED})"


class Decompressor(Protocol):
    """A decompressor of Python's library, such as `zlib.decompressobj()`."""

    @property
    def eof(self) -> bool:
        """Whether the data ended."""

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        """Decompress data, to at most `max_length` bytes."""


def decompressed(decompressor: Decompressor, data: bytes, room: int) -> bytes:
    """Decompress data to its end with a new decompressor.

    It raises ValueError if the data is damaged, ends too early, or becomes more than `room` bytes,
    and MemoryError if memory does not suffice.
    """
    try:
        found = decompressor.decompress(data, room + 1)
    except MemoryError:
        raise
    except Exception as error:  # zlib, bz2 and lzma have errors of their own
        raise ValueError(str(error)) from error
    if len(found) > room:
        raise ValueError(too_large())
    if not decompressor.eof:
        raise ValueError("it ends too early")
    return found


def whole_number(text: str) -> int | None:
    """Return the number that a text of others is; None if it is none, or longer than any long."""
    return int(text) if _WHOLE.fullmatch(text) else None


class _Level(threading.local):
    depth = 0


_LEVEL: Final = _Level()


@contextmanager
def one_level() -> Iterator[None]:
    """Count one level of nesting while a type is read; SchemaError beyond `LEVELS`."""
    _LEVEL.depth += 1
    try:
        if _LEVEL.depth > LEVELS.value:
            raise SchemaError(
                f"Its types are nested more deeply than the limit ({LEVELS})",
                hint=f"If the table is really so, set {LEVELS.name} to more levels.",
            )
        yield
    finally:
        _LEVEL.depth -= 1
