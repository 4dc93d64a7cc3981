"""Hadoop's S3A, and the part of Amazon's SDK that it and Iceberg's S3FileIO need: 20 MB, not 600."""

from __future__ import annotations

from pathlib import Path

from tests.peers.ivy import fetch, fetch_all
from tests.peers.s3 import KEY, SECRET

_SDK = "2.35.4"
_OLDER_SDK = "1.12.262"
_OLDER_MODULES = (
    *("aws-java-sdk-s3", "aws-java-sdk-core", "aws-java-sdk-kms", "aws-java-sdk-sts"),
    *("aws-java-sdk-dynamodb", "jmespath-java"),
)
_STREAMS = "software.amazon.s3.analyticsaccelerator:analyticsaccelerator-s3:1.3.1"
_MODULES = ("s3", "sts", "s3-transfer-manager", "apache-client", "netty-nio-client")
_FILE_IO_SDK = "2.57.8"
"""The SDK of Iceberg 1.12 is one that has Apache's fifth client."""
_FILE_IO = ("s3", "sts", "kms", "apache5-client")


def sdk_jars() -> list[Path]:
    """Amazon's SDK, as far as S3 goes."""
    folder = fetch_all(*(f"software.amazon.awssdk:{name}:{_SDK}" for name in _MODULES))
    return sorted(folder.glob("*.jar"))


def file_io_jars() -> list[Path]:
    """What Iceberg Java's S3FileIO needs beside its runtime."""
    folder = fetch_all(*(f"software.amazon.awssdk:{name}:{_FILE_IO_SDK}" for name in _FILE_IO))
    return sorted(folder.glob("*.jar"))


def s3a_jars(pyspark: Path) -> list[Path]:
    """S3A of the Hadoop in a folder of pyspark's jars, and the SDK."""
    (hadoop,) = pyspark.glob("hadoop-client-api-*.jar")
    version = hadoop.stem.removeprefix("hadoop-client-api-")
    s3a = fetch(f"org.apache.hadoop:hadoop-aws:{version}")
    if version.startswith("3.3."):
        older = (fetch(f"com.amazonaws:{name}:{_OLDER_SDK}") for name in _OLDER_MODULES)
        return [s3a, *older]
    return [s3a, fetch(_STREAMS), *sdk_jars()]


def s3a_settings(endpoint: str) -> dict[str, str]:
    """Hadoop's settings for an S3 of the tests."""
    return {
        "fs.s3a.endpoint": endpoint,
        "fs.s3a.endpoint.region": "us-east-1",
        "fs.s3a.path.style.access": "true",
        "fs.s3a.access.key": KEY,
        "fs.s3a.secret.key": SECRET,
    }
