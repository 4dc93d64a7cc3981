"""Starting a server that a busy machine may have kept from starting."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Server = TypeVar("Server")


def started(start: Callable[[], Server]) -> Server:
    """What `start` gives, which takes new ports and folders each time; one failure is forgiven.

    The error of the second failure carries that of the first.
    """
    try:
        return start()
    except Exception:  # noqa: BLE001 - whatever it was
        return start()
