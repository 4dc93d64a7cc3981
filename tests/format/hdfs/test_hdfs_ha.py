"""Two name nodes: what is written while they change roles is there, once and whole."""

from __future__ import annotations

import itertools
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog
from icecomb.format.errors import FileAlreadyExistsError, FileIOError
from icecomb.format.storage.file_io import FileIO
from tests.format.hdfs.storm import storm
from tests.peers.hdfs import Hdfs
from tests.peers.second_try import started

pytestmark = pytest.mark.full("two name nodes")

WRITERS = 6


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    cluster = started(lambda: Hdfs(tmp_path_factory.mktemp("hdfs-ha"), ha=True).start())
    yield cluster
    cluster.stop()


@pytest.fixture
def io(cluster):
    return FileIO({**cluster.client_settings, "hdfs.user": "alice"})


def test_a_standby_is_passed_over(cluster, io):
    """Also one that is asked first: it takes a CREATE as if it were active."""
    cluster.admin("-failover", "nn1", "nn2")
    other = FileIO(
        {**cluster.client_settings, "hdfs.user": "alice", "dfs.client.failover.max.attempts": "5"}
    )
    other.create("hdfs://ns1/warehouse/standby/x", b"1")
    assert other.read("hdfs://ns1/warehouse/standby/x") == b"1"
    assert [each.size for each in io.list("hdfs://ns1/warehouse/standby")] == [1]
    cluster.admin("-failover", "nn2", "nn1")


def read_by_the_active(io):
    """Wait until the data node's own client, which may have followed a failover, asks nn1 again."""
    for number in itertools.count():
        place = f"hdfs://ns1/warehouse/asked/{number}"
        io.create(place, b"1")
        try:
            assert io.read(place) == b"1"
        except FileIOError:
            assert number < 600
            time.sleep(0.1)
        else:
            return


def test_an_observer_that_is_asked_first_hides_nothing(cluster):
    """It gets the edits with the next segment only, minutes later. Data nodes ask in their own order, nn1 first."""
    if cluster.active() == "nn2":
        cluster.admin("-failover", "nn2", "nn1")
    cluster.admin("-transitionToObserver", "nn2")
    try:
        named = {"dfs.ha.namenodes.ns1": "nn2,nn1", "hdfs.user": "alice"}
        settings = {**cluster.client_settings, **named}
        read_by_the_active(FileIO(settings))
        lake = load_catalog("one", type="hadoop", warehouse="hdfs://ns1/warehouse/seen", **settings)
        lake.create_namespace("db")
        table = lake.create_table("db.t", pa.schema([("id", pa.int64())]))
        table.append(pa.table({"id": pa.array([1], pa.int64())}))
        fresh = load_catalog(
            "two", type="hadoop", warehouse=lake.properties["warehouse"], **settings
        )
        assert fresh.load_table("db.t").scan().to_arrow()["id"].to_pylist() == [1]
    finally:
        cluster.admin("-transitionToStandby", "nn2")


def test_a_storm_of_writers_survives_a_fail_over(cluster, io):
    """Each name is wanted by two writers; exactly one has it."""
    stop = threading.Event()
    done = threading.Semaphore(0)
    data = {writer: os.urandom(20_000) for writer in range(WRITERS)}

    def write(writer):
        won = []
        number = 0
        while not stop.is_set() or number < 5:
            name = f"hdfs://ns1/warehouse/storm/{writer // 2}-{number}"
            number += 1
            try:
                io.create(name, data[writer])
            except FileAlreadyExistsError:
                pass
            else:
                won.append(name)
            done.release()
        return won

    with ThreadPoolExecutor(WRITERS) as pool:
        running = [pool.submit(write, writer) for writer in range(WRITERS)]
        for _ in range(3 * WRITERS):
            done.acquire()
        cluster.admin("-failover", "nn1", "nn2")
        for _ in range(3 * WRITERS):
            done.acquire()
        stop.set()
    won = {name: writer for writer, each in enumerate(running) for name in each.result()}
    assert len(won) == sum(len(each.result()) for each in running)
    assert sorted(each.location for each in io.list("hdfs://ns1/warehouse/storm")) == sorted(won)
    assert all(io.read(name) == data[writer] for name, writer in won.items())


def test_many_clients_with_files_of_10_mib_survive_a_fail_over(cluster):
    """Every file is there once and whole, and no thread and no socket is left."""
    if cluster.active() == "nn2":
        cluster.admin("-failover", "nn2", "nn1")
    storm(cluster, clients=20, files=1, mib=10)
    cluster.admin("-failover", "nn2", "nn1")


def test_appends_to_a_table_go_on_when_the_active_name_node_is_killed(cluster):
    properties = {**cluster.client_settings, "hdfs.user": "alice"}
    catalog = load_catalog(
        "files", type="hadoop", warehouse="hdfs://ns1/warehouse/tables", **properties
    )
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", pa.schema([("id", pa.int64())]))
    active = cluster.active()
    other = "nn2" if active == "nn1" else "nn1"
    failed = []

    def append():
        for number in range(6):
            try:
                table.append(pa.table({"id": pa.array([number], pa.int64())}))
            except Exception as error:  # noqa: BLE001 - any is a failure of the test
                failed.append(error)
            if number == 1:
                middle.set()

    middle = threading.Event()
    writer = threading.Thread(target=append)
    writer.start()
    assert middle.wait(120)
    cluster.kill(active)
    cluster.admin("-failover", "--forcefence", active, other)
    writer.join()
    assert failed == []
    assert sorted(catalog.load_table("db.t").scan().to_arrow()["id"].to_pylist()) == list(range(6))
    cluster.launch(active)
