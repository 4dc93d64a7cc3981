"""A store's server on 127.0.0.1, as a process of its own."""

from __future__ import annotations

import socket
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tests.peers.ports import free_ports

if TYPE_CHECKING:
    from typing_extensions import Self


class StoreServer(ABC):
    """One server.

    Attributes:
        endpoint: Its URL.
        environment: Its variables; None are ours.
    """

    environment: Mapping[str, str] | None = None

    def __init__(self) -> None:
        (self.port,) = free_ports(1)
        self.endpoint = f"http://127.0.0.1:{self.port}"

    @property
    @abstractmethod
    def settings(self) -> Mapping[str, str]:
        """What a catalog or `FileIO` is told."""

    @abstractmethod
    def command(self) -> list[str]:
        """What starts it; installs it at first."""

    def start(self) -> Self:
        """Returns when it answers."""
        self._process = subprocess.Popen(
            self.command(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=self.environment,
        )
        for _ in range(600):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return self
            assert self._process.poll() is None, f"{type(self).__name__} has ended"
            time.sleep(0.1)
        self.stop()
        raise TimeoutError(f"{type(self).__name__} does not answer")

    def stop(self) -> None:
        """Ends it."""
        self._process.kill()
        self._process.wait()

    @abstractmethod
    def place(self) -> str:
        """The location of a new bucket, without a slash at the end."""
