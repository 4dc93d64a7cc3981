"""Entries of a metastore that name somebody else's host: looking at them sends it no credential."""

from __future__ import annotations

import json
from typing import Any

import pytest

from icecomb.catalog import cli
from icecomb.catalog.hive.thrift.entity import HiveTable, StorageDescriptor
from tests.peers.listener import Listener

SETTINGS = {
    "hdfs.delegation-token": "c2VjcmV0",
    "adls.token": "c2VjcmV0",
    "adls.blob-storage-scheme": "http",
    "gcs.oauth2.token": "c2VjcmV0",
    "io.object-store.max-attempts": "1",
    "dfs.client.failover.max.attempts": "1",
}


@pytest.mark.jvm
def test_looking_at_an_entry_sends_no_credential(
    catalog: Any, metastore: Any, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = {"exception": "FileNotFoundException", "message": "x"}
    answer = json.dumps({"RemoteException": missing}).encode()
    listener = Listener(lambda *_: (404, {"Content-Type": "application/json"}, answer))
    monkeypatch.setenv("ICECOMB_CATALOG__HMS__URI", metastore.uri)
    for key, value in {**metastore.client_settings, **SETTINGS}.items():
        monkeypatch.setenv(f"ICECOMB_CATALOG__HMS__{key}", value)
    for name, start in (("web", "webhdfs://"), ("azure", "abfs://box@")):
        location = f"{start}{listener.address}/t"
        catalog.client.create_table(
            HiveTable(
                namespace,
                name,
                storage=StorageDescriptor(location=f"file:{metastore.warehouse}/planted"),
                table_type="EXTERNAL_TABLE",
                parameters={
                    "EXTERNAL": "TRUE",
                    "table_type": "ICEBERG",
                    "metadata_location": f"{location}/metadata/v1.metadata.json",
                },
            )
        )
        assert cli.main(["--catalog", "hms", "describe", f"{namespace}.{name}"]) == 1
    assert cli.main(["--catalog", "hms", "health", f"{namespace}.*"]) == 1
    listener.close()
    text = "\n".join(listener.requests)
    assert "/webhdfs/v1/t/metadata" in text
    assert "c2VjcmV0" not in text
    assert "authorization" not in text.lower()
