"""Many clients write and read files while the name nodes change roles: nothing may be lost."""

from __future__ import annotations

import hashlib
import random
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from icecomb.format.storage.file_io import FileIO
from tests.peers.hdfs import Hdfs


def storm(cluster: Hdfs, *, clients: int, files: int, mib: int) -> None:
    """Write by many clients, `files` of `mib` MiB each, fail over from `nn1`, read, count."""
    folder = f"hdfs://ns1/warehouse/{uuid.uuid4().hex}"
    io = FileIO({**cluster.client_settings, "hdfs.user": "alice"})
    io.exists(f"{folder}/x")
    threads, sockets = threading.active_count(), _sockets()
    written = threading.Semaphore(0)

    def client(number: int) -> dict[str, str]:
        made = {}
        for turn in range(files):
            location = f"{folder}/{number}-{turn}"
            data = random.Random(f"{number}-{turn}").randbytes(mib << 20)
            io.create(location, data)
            written.release()
            assert io.read(location) == data, location
            made[location] = hashlib.md5(data, usedforsecurity=False).hexdigest()
        return made

    with ThreadPoolExecutor(clients) as pool:
        running = [pool.submit(client, number) for number in range(clients)]
        for _ in range(clients // 2):
            written.acquire()
        cluster.admin("-failover", "nn1", "nn2")
        made = {name: digest for each in running for name, digest in each.result().items()}
    assert len(made) == clients * files
    assert {each.location: each.size for each in io.list(folder)} == dict.fromkeys(made, mib << 20)
    for name, digest in made.items():
        assert hashlib.md5(io.read(name), usedforsecurity=False).hexdigest() == digest, name
    io.close()
    assert threading.active_count() <= threads
    assert _sockets() <= sockets


def _sockets() -> int:
    found = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            found.append(str(descriptor.readlink()))
    return sum(each.startswith("socket:") for each in found)
