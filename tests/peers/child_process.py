"""Processes that a test starts."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any


@contextmanager
def ended(*processes: subprocess.Popen[Any]) -> Iterator[None]:
    """Kills those that still run at the end, and closes their pipes, also when the test fails.

    A process or a pipe that is left open would be a warning, so an error, in a later test.
    """
    with ExitStack() as stack:
        for process in processes:
            stack.enter_context(process)
            stack.callback(process.kill)
        yield
