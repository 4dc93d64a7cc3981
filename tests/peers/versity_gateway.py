"""A second S3 on 127.0.0.1: `versitygw` over a folder. It checks signatures and all conditions."""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.peers import go_program
from tests.peers.store_server import StoreServer

KEY, SECRET = "AKIAICECOMBTESTS", "a secret of tests"


def program() -> Path:
    """The server's, built once."""
    return go_program.build("github.com/versity/versitygw/cmd/versitygw", "v1.8.0")


class VersityGateway(StoreServer):
    """One server."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = Path(tempfile.mkdtemp())
        self.environment = {
            **os.environ,
            "ROOT_ACCESS_KEY": KEY,
            "ROOT_SECRET_KEY": SECRET,
        }

    @property
    def settings(self) -> Mapping[str, str]:
        return {
            "s3.endpoint": self.endpoint,
            "s3.access-key-id": KEY,
            "s3.secret-access-key": SECRET,
            "s3.region": "us-east-1",
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

    def client(self) -> Any:
        """Amazon's own client."""
        import boto3

        keys = {"aws_access_key_id": KEY, "aws_secret_access_key": SECRET}
        return boto3.client("s3", endpoint_url=self.endpoint, region_name="us-east-1", **keys)

    def place(self) -> str:
        name = f"b-{uuid.uuid4().hex}"
        client = self.client()
        client.create_bucket(Bucket=name)
        client.close()
        return f"s3://{name}"
