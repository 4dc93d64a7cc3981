"""An S3 on 127.0.0.1: `moto`, as a process of its own. It checks no signatures."""

from __future__ import annotations

import http.client
import subprocess
import sys
import time
import uuid
from typing import Any

from tests.peers.ports import free_ports

KEY, SECRET = "AKIAICECOMBTESTS", "a secret of tests"


class S3:
    """A server.

    Attributes:
        endpoint: Its URL.
        settings: What a catalog or `FileIO` is told.
    """

    def __init__(self) -> None:
        (self.port,) = free_ports(1)
        self.endpoint = f"http://127.0.0.1:{self.port}"
        self.settings = {
            "s3.endpoint": self.endpoint,
            "s3.access-key-id": KEY,
            "s3.secret-access-key": SECRET,
            "s3.region": "us-east-1",
        }

    def start(self) -> S3:
        """Returns when it answers."""
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)]
        self._process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        for _ in range(600):
            if self._answers():
                return self
            assert self._process.poll() is None, "moto has ended"
            time.sleep(0.1)
        self.stop()
        raise TimeoutError("moto does not answer")

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", "/moto-api/")
            connection.getresponse().read()
        except OSError:
            return False
        finally:
            connection.close()
        return True

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()

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
