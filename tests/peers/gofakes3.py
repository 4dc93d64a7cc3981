"""A second S3 on 127.0.0.1: `gofakes3`, in memory.

Whole objects it creates on a condition, atomically; of completed uploads it passes the condition over.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from tests.peers import go_program
from tests.peers.store_server import StoreServer

KEY, SECRET = "AKIAICECOMBTESTS", "a secret of tests"


class GoFakeS3(StoreServer):
    """One server."""

    @property
    def settings(self) -> Mapping[str, str]:
        return {
            "s3.endpoint": self.endpoint,
            "s3.access-key-id": KEY,
            "s3.secret-access-key": SECRET,
            "s3.region": "us-east-1",
        }

    def command(self) -> list[str]:
        program = go_program.build("github.com/johannesboyne/gofakes3/cmd/gofakes3", "v1.2.0")
        return [str(program), "-backend", "memory", "-host", f"127.0.0.1:{self.port}"]

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
