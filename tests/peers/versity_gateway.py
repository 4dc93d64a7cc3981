"""A second S3 on 127.0.0.1: `versitygw` over a folder. It checks signatures and all conditions."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from tests.peers import go_program
from tests.peers.s3 import KEY, SECRET, S3Server


def program() -> Path:
    """The server's, built once."""
    return go_program.build("github.com/versity/versitygw/cmd/versitygw", "v1.8.0")


class VersityGateway(S3Server):
    """One server."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = Path(tempfile.mkdtemp())
        self.environment = {
            **os.environ,
            "ROOT_ACCESS_KEY": KEY,
            "ROOT_SECRET_KEY": SECRET,
        }

    def command(self) -> list[str]:
        # not every folder for temporary files has the attributes it would keep with each file
        for name in ("data", "metadata"):
            (self._folder / name).mkdir()
        command = [str(program()), "--quiet", "--port", f"127.0.0.1:{self.port}", "posix"]
        return [*command, "--sidecar", str(self._folder / "metadata"), str(self._folder / "data")]

    def stop(self) -> None:
        super().stop()
        shutil.rmtree(self._folder)
