"""What this process has seen of metastores going away, by address; every client adds to it."""

from __future__ import annotations

import threading
import time
from typing import Final

_SUSPECT_S: Final = 60.0
"""For so long after it broke an address is tried after the others."""

_guard: Final = threading.Lock()
_lives: Final[dict[str, int]] = {}
_suspects: Final[dict[str, float]] = {}


def life(address: str) -> int:
    """Counts how often the server at ``address`` went away: another one may have its place."""
    return _lives.get(address, 0)


def went_away(address: str, *, suspect: bool) -> None:
    """The server at ``address`` closed a connection, or does not answer.

    Args:
        address: As ``thrift://host:port``.
        suspect: Whether others are to be tried before it for a while.
    """
    with _guard:
        _lives[address] = life(address) + 1
        if suspect:
            _suspects[address] = time.monotonic()


def is_suspect(address: str) -> bool:
    """Whether it failed a short time ago."""
    since = _suspects.get(address)
    return since is not None and time.monotonic() - since < _SUSPECT_S
