"""Logging of calls to other processes: the time of each at DEBUG, of slow ones at INFO."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

SLOW_S: Final = 1.0
"""Calls that take at least this many seconds are slow."""


@contextmanager
def timed(log: logging.Logger, *call: str) -> Iterator[None]:
    """Log how long a call, named by words without secrets, takes, and whether it fails."""
    begun = time.monotonic()
    failure = ""
    try:
        yield
    except Exception as error:
        failure = f", {type(error).__name__}"
        raise
    finally:
        taken = time.monotonic() - begun
        level = logging.INFO if taken >= SLOW_S else logging.DEBUG
        log.log(level, "%s: %.0f ms%s", " ".join(call), taken * 1000, failure)
