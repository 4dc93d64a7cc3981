"""Migrations in an object store whose journals' requests something on the way repeats or answers for itself."""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icecomb.catalog import migrate
from icecomb.catalog.hive.catalog import HiveCatalog
from icecomb.catalog.hive.thrift.entity import FieldSchema, HiveDatabase, HivePartition, HiveTable
from icecomb.format.storage.object_store import creation
from tests.catalog.migrate.conftest import PARQUET
from tests.peers.s3_proxy import MIDDLE_FAULTS, S3Proxy
from tests.rings import sampled

_NUMBERS = itertools.count()
WRITES = {"PutObject", "CompleteMultipartUpload"}


class Store:
    """A metastore's catalog by a proxy before the store, and one that looks past it."""

    def __init__(self, metastore: Any, s3: Any) -> None:
        self.proxy = S3Proxy(s3.endpoint)
        self.place = f"s3://{s3.bucket()}"
        place = {"uri": metastore.uri, "warehouse": self.place}
        self.faulty = HiveCatalog("faulty", {**place, **self.proxy.settings(s3.settings)})
        self.direct = HiveCatalog("direct", {**place, **s3.settings})

    def table(self) -> str:
        """A Hive table of two partitions of one row each."""
        client, name = self.direct.client, f"t{next(_NUMBERS)}"
        if "stored" not in client.databases():
            client.create_database(HiveDatabase("stored", location=f"{self.place}/stored"))
        columns = (FieldSchema("id", "bigint"),)
        storage = replace(PARQUET, columns=columns, location=f"{self.place}/{name}")
        keys, external = (FieldSchema("k", "int"),), {"EXTERNAL": "TRUE"}
        entry = HiveTable("stored", name, storage=storage, partition_keys=keys)
        client.create_table(replace(entry, parameters=external, table_type="EXTERNAL_TABLE"))
        parts = []
        for k in (1, 2):
            place = f"{storage.location}/k={k}"
            file = io.BytesIO()
            pq.write_table(pa.table({"id": [k]}), file)
            self.direct.io.create(f"{place}/part-0.parquet", file.getvalue())
            there = replace(storage, location=place)
            parts.append(HivePartition("stored", name, (str(k),), storage=there))
        client.partitions.add(parts)
        return f"stored.{name}"

    def close(self) -> None:
        self.faulty.close()
        self.direct.close()
        self.proxy.close()


@pytest.fixture(scope="module")
def store(metastore: Any, s3: Any) -> Iterator[Store]:
    found = Store(metastore, s3)
    yield found
    found.close()


@pytest.mark.parametrize("fault", sampled(MIDDLE_FAULTS, keep=1))
def test_what_a_migration_says_is_true_whatever_stands_before_the_store(
    store: Store, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    """Each file of the journal, and the metadata, meet the fault once, and no command fails for it."""
    monkeypatch.setattr(creation, "FIRST_S", 0.001)
    name = store.table()
    before = list(store.direct.client.partitions.pages(*name.split(".")))
    met: set[str] = set()

    def choose(asked: Any) -> str:
        ours = "/_icecomb_migration/" in asked.path or asked.path.endswith(".metadata.json")
        if asked.name not in WRITES or not ours or asked.path in met:
            return ""
        met.add(asked.path)
        return fault

    with store.proxy.fresh():
        store.proxy.choose = choose
        assert migrate.apply(store.faulty, name).rows == 2
        assert any("/_icecomb_migration/" in path for path in met)
        rows = store.direct.load_table(name).scan().to_arrow().to_pylist()
        assert sorted(row["id"] for row in rows) == [1, 2]
        assert migrate.verify(store.direct, name).difference_count == 0
        assert migrate.revert(store.faulty, name, dry_run=False).done
    after = list(store.direct.client.partitions.pages(*name.split(".")))
    assert after == before
    assert migrate.status(store.direct, name)["state"] == "reverted"
