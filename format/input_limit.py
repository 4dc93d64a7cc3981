"""Limits on what bytes of others may ask for: a few could take all memory, or the stack.

Tables do not reach the defaults. An environment variable of the name sets another limit.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from icecomb.format.errors import ConfigurationError, SchemaError


@dataclass(frozen=True, slots=True)
class InputLimit:
    """A limit.

    Attributes:
        name: The environment variable that sets it.
        default: The limit without that variable.
        unit: What is counted.
    """

    name: str
    default: int
    unit: str

    def __str__(self) -> str:
        return f"{self.name}: {self.value} {self.unit}"

    @property
    def value(self) -> int:
        """The present limit.

        Raises:
            ConfigurationError: If the variable is not a positive number.
        """
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
"""The most types in one another in a schema, of any format."""
TOO_DEEP: Final = "its values are nested more deeply than this program's stack allows"
"""What is the matter with JSON that ends in a `RecursionError`."""


def unpacked_bytes() -> int:
    """Return the limit `UNPACKED` in bytes."""
    return UNPACKED.value << 20


def too_large() -> str:
    """Return what is the matter with bytes that are larger than `UNPACKED`."""
    return f"it is unpacked to more than the limit ({UNPACKED})"


class _Level(threading.local):
    depth = 0


_LEVEL: Final = _Level()


@contextmanager
def one_level() -> Iterator[None]:
    """Count one type inside of another while it is read.

    Raises:
        SchemaError: If there are more than `LEVELS`.
    """
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
