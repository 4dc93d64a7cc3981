"""The libraries that are compared: the same few functions for each."""

from __future__ import annotations

import importlib
from typing import Any


def load_peer(name: str) -> Any:
    """The functions of `peer_<name>`; the library itself is imported when they are called."""
    return importlib.import_module(f"tests.bench.peer_{name}")
