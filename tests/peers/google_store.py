"""A Google Cloud Storage on 127.0.0.1: `fake-gcs-server`, in memory. It asks nobody who they are."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from pathlib import Path

import requests

from tests.peers import go_program
from tests.peers.store_server import StoreServer


def program() -> Path:
    """The server's, built once."""
    return go_program.build("github.com/fsouza/fake-gcs-server", "v1.56.1")


class GoogleStore(StoreServer):
    """One server."""

    @property
    def settings(self) -> Mapping[str, str]:
        return {"gcs.service.host": self.endpoint, "gcs.no-auth": "true"}

    def command(self) -> list[str]:
        options = {
            "scheme": "http",
            "host": "127.0.0.1",
            "port": self.port,
            "backend": "memory",
            "public-host": f"127.0.0.1:{self.port}",
            "log-level": "error",
        }
        return [str(program()), *(f"-{name}={value}" for name, value in options.items())]

    def place(self) -> str:
        name = f"b-{uuid.uuid4().hex}"
        made = requests.post(f"{self.endpoint}/storage/v1/b", json={"name": name}, timeout=30)
        made.raise_for_status()
        return f"gs://{name}"
