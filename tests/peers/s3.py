"""An S3 on 127.0.0.1: `moto`, as a process of its own. It checks no signatures."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Mapping
from typing import Any

from tests.peers.store_server import StoreServer

KEY, SECRET = "AKIAICECOMBTESTS", "a secret of tests"


class S3Server(StoreServer):
    """What an S3 is told and asked."""

    @property
    def settings(self) -> Mapping[str, str]:
        return {
            "s3.endpoint": self.endpoint,
            "s3.access-key-id": KEY,
            "s3.secret-access-key": SECRET,
            "s3.region": "us-east-1",
        }

    def client(self, **others: Any) -> Any:
        """Amazon's own client: what is really there."""
        import boto3

        keys = {"aws_access_key_id": KEY, "aws_secret_access_key": SECRET}
        return boto3.client(
            "s3", endpoint_url=self.endpoint, region_name="us-east-1", **keys, **others
        )

    def bucket(self) -> str:
        """The name of a new bucket."""
        name = f"b-{uuid.uuid4().hex}"
        client = self.client()
        client.create_bucket(Bucket=name)
        client.close()
        return name

    def place(self) -> str:
        return f"s3://{self.bucket()}"


class S3(S3Server):
    """One server of moto's."""

    def command(self) -> list[str]:
        return [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)]
