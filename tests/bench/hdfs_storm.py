"""Many clients write and read files while the name nodes change roles: nothing may be lost.

    python -m tests.bench.hdfs_storm --clients 100 --mib 10

Each client (a thread) creates files and reads each back; in the middle the active name node fails
over. Afterwards every file is there once and whole, and no thread or socket is left. An end by an
error is a finding; the figures are one JSON line.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import shutil
import tempfile
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from icecomb.format.storage.file_io import FileIO
from tests.bench.measure import expect, print_line
from tests.peers.hdfs import Hdfs


def storm(cluster: Hdfs, *, clients: int, files: int, mib: int) -> dict[str, float]:
    """Write, fail over, read, count.

    Args:
        cluster: Highly available, `nn1` active.
        clients: So many at once.
        files: So many of each client.
        mib: Of each file.

    Returns:
        How long all of it, the fail-over and the slowest file took, in seconds.

    Raises:
        SystemExit: something was lost, or is left.
    """
    folder = f"hdfs://ns1/warehouse/{uuid.uuid4().hex}"
    properties = {**cluster.client_settings, "hdfs.user": "alice"}
    io = FileIO(properties)
    io.exists(f"{folder}/x")
    threads, sockets = threading.active_count(), _sockets()
    written = threading.Semaphore(0)
    slowest = [0.0] * clients

    def client(number: int) -> dict[str, str]:
        made = {}
        for turn in range(files):
            location = f"{folder}/{number}-{turn}"
            data = random.Random(f"{number}-{turn}").randbytes(mib << 20)
            started = time.perf_counter()
            io.create(location, data)
            written.release()
            expect(io.read(location) == data, True, location)
            slowest[number] = max(slowest[number], time.perf_counter() - started)
            made[location] = hashlib.md5(data, usedforsecurity=False).hexdigest()
        return made

    started = time.perf_counter()
    with ThreadPoolExecutor(clients) as pool:
        running = [pool.submit(client, number) for number in range(clients)]
        for _ in range(clients // 2):
            written.acquire()
        before = time.perf_counter()
        cluster.admin("-failover", "nn1", "nn2")
        failover_s = time.perf_counter() - before
        made = {name: digest for each in running for name, digest in each.result().items()}
    seconds = time.perf_counter() - started
    expect(len(made), clients * files, "files made")
    found = {each.location: each.size for each in io.list(folder)}
    expect(found, dict.fromkeys(made, mib << 20), "files")
    for name, digest in made.items():
        read = hashlib.md5(io.read(name), usedforsecurity=False).hexdigest()
        expect(read, digest, name)
    io.close()
    expect(max(threading.active_count() - threads, 0), 0, "threads left")
    expect(max(_sockets() - sockets, 0), 0, "sockets left")
    return {
        "seconds": round(seconds, 1),
        "failover_s": round(failover_s, 1),
        "slowest_file_s": round(max(slowest), 1),
    }


def _sockets() -> int:
    found = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            found.append(str(descriptor.readlink()))
    return sum(each.startswith("socket:") for each in found)


def main() -> None:
    """Start two name nodes, and let it storm."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--files", type=int, default=2, help="of each client")
    parser.add_argument("--mib", type=int, default=10)
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    cluster = Hdfs(folder, ha=True)
    try:
        print_line("hdfs_storm", **vars(given), **storm(cluster.start(), **vars(given)))
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
