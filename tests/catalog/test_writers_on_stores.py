"""Writers of one table in a folder of an object store, behind a network that loses and delays."""

from __future__ import annotations

import random
import threading

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog
from icecomb.format.errors import IcecombError
from tests.peers.s3_proxy import FAULTS as ALL, MIDDLE_FAULTS, S3Proxy
from tests.peers.store_proxies import AzureProxy, GoogleProxy

FAULTS = [each for each in (*ALL, *MIDDLE_FAULTS) if each != "replace"]
SCHEMA = pa.schema([("id", pa.int64())])


PROXIES = {
    "s3": S3Proxy,
    "google_store": GoogleProxy,
    "azurite": AzureProxy,
    "other_s3": S3Proxy,
}


@pytest.mark.full(
    "each fault alone is in the gate's faults of a store, two writers at once in its catalogs'"
)
@pytest.mark.seeds(1)
@pytest.mark.parametrize("name", PROXIES)
def test_what_is_reported_is_there_once(request, monkeypatch, name, seed):
    monkeypatch.setattr("icecomb.format.storage.object_store.creation.FIRST_S", 0.01)
    server = request.getfixturevalue(name)
    proxy = PROXIES[name](server.endpoint)
    place = {"type": "hadoop", "warehouse": f"{server.place()}/w"}
    direct = load_catalog("direct", **place, **server.settings)
    direct.create_namespace("n")
    direct.create_table("n.t", SCHEMA, properties={"commit.retry.num-retries": "100"})
    chance, lock = random.Random(seed), threading.Lock()
    reported, refused = [], []

    def choose(_):
        with lock:
            return chance.choice(FAULTS) if chance.random() < 0.1 else ""

    def write(number):
        settings = {**proxy.settings(server.settings), "io.object-store.max-attempts": "6"}
        catalog = load_catalog("faulty", **place, **settings)
        try:
            catalog.load_table("n.t").append(pa.table({"id": [number]}, SCHEMA))
        except IcecombError as error:
            refused.append(error)
        else:
            reported.append(number)
        finally:
            catalog.close()

    proxy.choose = choose
    threads = [threading.Thread(target=write, args=(number,)) for number in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    proxy.choose = lambda _: ""
    proxy.release()
    proxy.close()
    there = direct.load_table("n.t").scan().to_arrow()["id"].to_pylist()
    direct.close()
    assert len(there) == len(set(there))
    assert set(reported) <= set(there)
    assert len(reported) >= 8, refused
