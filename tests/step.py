"""Commands of the gate, run side by side."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence


class Step:
    """A command that runs at once; what it prints is kept until `show` is called.

    A file keeps it and no pipe: a server that outlived the command would hold a pipe open.

    Args:
        name: What the verdict calls it.
        command: The program and its arguments.
        environment: Variables beside those of this process.
    """

    def __init__(
        self, name: str, command: Sequence[str], environment: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self.seconds = 0.0
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the step
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=self._said,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(environment or {})},
        )
        self._waiting = threading.Thread(target=self._wait, args=[time.monotonic()], daemon=True)
        self._waiting.start()

    def show(self) -> Step:
        """Prints what it said so far, and what it says until it ends, and how long it took."""
        print(f"\n== {self.name}", flush=True)
        file, shown = self._said.fileno(), 0
        while True:
            ended = not self._waiting.is_alive()
            while said := os.pread(file, 1 << 16, shown):
                shown += len(said)
                sys.stdout.buffer.write(said)
            sys.stdout.flush()
            if ended:
                print(f"-- {self.name}: {self.seconds:.0f} s", flush=True)
                return self
            self._waiting.join(0.2)

    def wait(self) -> Step:
        """Until it ends, without a word."""
        self._waiting.join()
        return self

    @property
    def failed(self) -> bool:
        """Whether it ended with another code than 0."""
        return self._process.returncode != 0

    @property
    def said(self) -> str:
        """All that it printed."""
        self._said.seek(0)
        return self._said.read().decode(errors="replace")

    @property
    def failures(self) -> list[str]:
        """What pytest says in one line of each test that failed."""
        return [line for line in self.said.splitlines() if line.startswith(("FAILED ", "ERROR "))]

    def _wait(self, started: float) -> None:
        self._process.wait()
        self.seconds = time.monotonic() - started
