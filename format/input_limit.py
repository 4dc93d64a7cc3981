"""Limits on what bytes of others may ask for: a few could take all memory, or the stack.

Tables do not reach the defaults. An environment variable of the name sets another limit.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Protocol

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
                hint=f"Give a number of {self.unit}, or unset it: the default is {self.default}.",
            )
        return int(said)


UNPACKED: Final = InputLimit("ICECOMB_MAX_UNPACKED_MIB", 2048, "MiB")
"""The most that a manifest, a list, a Puffin file's part or a block of rows may be when it is
unpacked."""
METADATA: Final = InputLimit("ICECOMB_MAX_METADATA_MIB", 256, "MiB")
"""The most that the JSON of a metadata file may be, unpacked; 100,000 snapshots have 75 MB."""
VALUES: Final = InputLimit("ICECOMB_MAX_JSON_VALUES", 10_000_000, "values")
"""The most values in such JSON, each of which may take a hundred times its bytes; 100,000 snapshots
have 2,500,000."""
LEVELS: Final = InputLimit("ICECOMB_MAX_SCHEMA_LEVELS", 100, "levels")
"""The most levels of nested types in a schema, of any format."""
TYPES: Final = InputLimit("ICECOMB_MAX_SCHEMA_TYPES", 100_000, "types")
"""The most types in an Avro schema, each reference to a named type counted as the whole type."""
FIXED: Final = InputLimit("ICECOMB_MAX_FIXED_BYTES", 1 << 16, "bytes")
"""The most bytes of a value of a fixed length: each null takes as many in memory."""
FOOTER: Final = InputLimit("ICECOMB_MAX_FOOTER_MIB", 256, "MiB")
"""The most that a Parquet footer may be; 10,000 columns of 100 row groups have 100 MB."""
REPLY: Final = InputLimit("ICECOMB_MAX_REPLY_ELEMENTS", 2_000_000, "elements")
"""The most elements of a list or map in a metastore's reply: an empty one of a byte takes 180."""
FOLDERS: Final = InputLimit("ICECOMB_MAX_FOLDER_LEVELS", 1000, "levels")
"""The most levels of folders in a listing; as many as a name node lets be made."""
TOO_DEEP: Final = "its values are nested more deeply than this program's stack allows"
"""The reason for refusing JSON whose parser ends in a `RecursionError`."""
_COMMA: Final = ord(",")
_BRACE: Final = ord("{")
"""That of an object, and with another bit of an array."""
_PIECE: Final = 1 << 16
_WHOLE: Final = re.compile("[0-9]{1,19}")
_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")
"""An escape of one half of a character beyond U+FFFF."""
_ESCAPE: Final = re.compile(
    rb"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|(?P<lone>\\u[dD][89a-fA-F]..)|\\.", re.DOTALL
)


def unpacked_bytes() -> int:
    """Return the limit `UNPACKED` in bytes."""
    return UNPACKED.value << 20


def too_large(limit: InputLimit = UNPACKED) -> str:
    """Return the reason for refusing data that are larger when unpacked."""
    return f"it is unpacked to more than the limit ({limit})"


def bounded_json(text: str | bytes) -> Any:
    """Return the value of JSON that others wrote.

    Raises:
        ValueError: If it is not JSON, or asks for too much; see `check_json`.
    """
    check_json(text.encode() if isinstance(text, str) else text)
    try:
        return json.loads(text if isinstance(text, str) else text.decode())
    except RecursionError:
        raise ValueError(TOO_DEEP) from None


def check_json(text: bytes) -> None:
    """Check what JSON may ask for before it is parsed.

    Raises:
        ValueError: If it is larger than `METADATA`, or has more values than `VALUES`; a
            UnicodeError if a text in it has half of a surrogate pair, which nothing can encode.
    """
    if len(text) > METADATA.value << 20:
        raise ValueError(f"it is larger than the limit ({METADATA})")
    if has_too_many_values(text):
        raise ValueError(f"it has more values than the limit ({VALUES})")
    if _SURROGATE.search(text):
        lone = next((found["lone"] for found in _ESCAPE.finditer(text) if found["lone"]), None)
        if lone is not None:
            raise UnicodeError(f"it has {lone!r}, half of a surrogate pair: not a character")


def has_too_many_values(text: bytes) -> bool:
    """Return whether JSON has more values than the limit `VALUES`."""
    most = VALUES.value
    return len(text) > most and _value_count(text) > most


def _value_count(text: bytes) -> int:
    """Return about how many values JSON has, by its commas and brackets, also those in texts."""
    import numpy as np

    found, count = np.frombuffer(text, np.uint8), 0
    for start in range(0, len(text), _PIECE):  # of a size that stays in the processor's cache
        piece = found[start : start + _PIECE]
        count += int(np.count_nonzero(piece == _COMMA) + np.count_nonzero(piece | 32 == _BRACE))
    return count


class Decompressor(Protocol):
    """A decompressor of Python's library, such as `zlib.decompressobj()`."""

    @property
    def eof(self) -> bool:
        """Whether the data ended."""

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        """Decompress data, to at most `max_length` bytes."""


def decompressed(
    decompressor: Decompressor, data: bytes, room: int, limit: InputLimit = UNPACKED
) -> bytes:
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
        raise ValueError(too_large(limit))
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
