"""An S3 far away, beside PyIceberg on the same one: versitygw behind a line that takes 20 ms.

    python -m tests.bench.object_store

plan: a scan of all of a table with `--manifests` manifests of ten files.
append: 32 files, one a partition; PyIceberg's pointer is in SQLite, icecomb's is an object.
read: all rows of 64 files.
commit: one row; `serial` is how many requests came one after another.
purge: 10,000 keys that hold nothing; the peer `one_by_one` is icecomb with a request a key: the
seconds are those of 300 keys, times 33.
upload: a file of `--mib`; `rise_mb` is by how much the memory of the process grew.

`--server moto` is another S3; it is one process of Python, and measures itself.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from tests.bench.big_table import data_file
from tests.bench.measure import ROOT, clocked, compare, expect, memory_mb, parser, report
from tests.bench.peer import load_peer
from tests.bench.table_metadata import (
    SNAPSHOT_ID,
    write_manifest,
    write_manifest_list,
    write_metadata,
)
from tests.peers.ports import free_ports
from tests.peers.s3 import KEY, S3, SECRET
from tests.peers.s3_proxy import S3Proxy
from tests.peers.versity_gateway import VersityGateway

_PER_MANIFEST = 10
_APPENDED, _READ, _ROWS = 32, 64, 50_000
_PURGED, _ONE_BY_ONE = 10_000, 300
_CASES = "plan,append,read,commit,purge,upload"


class Gateway(VersityGateway):
    """As S3 does, it keeps connections open."""

    def command(self) -> list[str]:
        program, *others = super().command()
        return [program, "--keep-alive", *others]


def settings(endpoint: str) -> dict[str, str]:
    """The properties of a client of this S3."""
    return {
        "s3.endpoint": endpoint,
        "s3.access-key-id": KEY,
        "s3.secret-access-key": SECRET,
        "s3.region": "us-east-1",
    }


def _rows(partitions: int, each: int) -> Any:
    import numpy as np
    import pyarrow as pa

    numbers = np.arange(partitions * each)
    columns = {f"c{i}": numbers * (i + 7919) % 1_000_003 for i in range(4)}
    part = pa.array(numbers // each, pa.int64())
    return pa.table({"part": part, **{name: pa.array(c) for name, c in columns.items()}})


def _catalog(peer: str, given: argparse.Namespace) -> Any:
    warehouse = f"{given.place}/{uuid.uuid4().hex}"
    found = settings(given.endpoint)
    if peer == "pyiceberg":
        from pyiceberg.catalog.sql import SqlCatalog

        return SqlCatalog("bench", uri="sqlite://", warehouse=warehouse, **found)
    from icecomb.catalog import load_catalog

    return load_catalog("bench", type="hadoop", warehouse=warehouse, **found)


def _new_table(peer: str, catalog: Any, schema: Any) -> Any:
    catalog.create_namespace("db")
    return load_peer(peer).create(catalog, "t", schema, "part")


def _opened(peer: str, metadata: str, given: argparse.Namespace) -> Any:
    if peer == "pyiceberg":
        from pyiceberg.table import StaticTable

        return StaticTable.from_metadata(metadata, settings(given.endpoint))
    from icecomb.catalog import open_table

    return open_table(metadata, **settings(given.endpoint))


def _plan(peer: str, given: argparse.Namespace) -> None:
    table = _opened(peer, f"{given.place}/planned/metadata/v1.metadata.json", given)
    found, seconds, cpu = clocked(lambda: sum(1 for _ in table.scan().plan_files()))
    expect(found, given.manifests * _PER_MANIFEST, "files")
    report(plan_s=seconds, plan_cpu_s=cpu)


def _append(peer: str, given: argparse.Namespace) -> None:
    rows = _rows(_APPENDED, 1000)
    table = _new_table(peer, _catalog(peer, given), rows.schema)
    table.append(rows)
    _, seconds, cpu = clocked(lambda: table.append(rows))
    expect(len(list(table.scan().plan_files())), 2 * _APPENDED, "files")
    report(append_s=seconds, append_cpu_s=cpu)


def _read(peer: str, given: argparse.Namespace) -> None:
    table = _opened(peer, given.read, given)
    table.scan().to_arrow()  # what is imported and connected at first is no part of it
    found, seconds, cpu = clocked(lambda: table.scan().to_arrow())
    expect(found.num_rows, _READ * _ROWS, "rows")
    report(read_s=seconds, read_cpu_s=cpu)


def _commit(given: argparse.Namespace) -> None:
    proxy = S3Proxy(given.direct, latency_s=given.latency / 1000)
    catalog = _catalog("icecomb", argparse.Namespace(place=given.place, endpoint=proxy.endpoint))
    rows = _rows(1, 1)
    table = _new_table("icecomb", catalog, rows.schema)
    table.append(rows)
    with proxy.fresh():
        _, seconds, _ = clocked(lambda: table.append(rows))
        report(commit_s=seconds, requests=len(proxy.requests), serial=proxy.serial())
    proxy.close()


def _purge(peer: str, given: argparse.Namespace) -> None:
    from icecomb.format.storage.file_io import FileIO

    io = FileIO(settings(given.endpoint))
    names = [f"{given.place}/gone/{number}" for number in range(_PURGED)]
    io.exists(names[0])
    if peer == "one_by_one":
        _, seconds, _ = clocked(lambda: [io.delete([name]) for name in names[:_ONE_BY_ONE]])
        seconds *= _PURGED / _ONE_BY_ONE
    else:
        _, seconds, _ = clocked(lambda: io.delete(names))
    report(purge_s=seconds)


def _upload(given: argparse.Namespace) -> None:
    from icecomb.format.storage.file_io import FileIO

    io = FileIO(settings(given.endpoint))
    small, large = (f"{given.place}/{uuid.uuid4().hex}" for _ in range(2))
    io.create(small, b"")
    piece, before = bytes(range(256)) * 4096, memory_mb("VmRSS")

    def write() -> None:
        with io.create_stream(large) as out:
            for _ in range(given.mib):
                out.write(piece)

    _, seconds, cpu = clocked(write)
    expect(io.size(large), given.mib << 20, "bytes")
    io.delete([small, large])
    report(upload_s=seconds, upload_cpu_s=cpu, rise_mb=memory_mb() - before)


def _child(peer: str, case: str, given: argparse.Namespace) -> None:
    cases: dict[str, Callable[[], None]] = {
        "plan": partial(_plan, peer, given),
        "append": partial(_append, peer, given),
        "read": partial(_read, peer, given),
        "commit": partial(_commit, given),
        "purge": partial(_purge, peer, given),
        "upload": partial(_upload, given),
    }
    cases[case]()


def _upload_planned(server: Any, bucket: str, count: int) -> None:
    """A table of metadata only, whose manifests nobody has planned before."""
    location = f"s3://{bucket}/planned"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        manifests = []
        for number in range(count):
            local = folder / f"{number:06d}.avro"
            first = number * _PER_MANIFEST
            files = (
                data_file(n, count * _PER_MANIFEST, location)
                for n in range(first, first + _PER_MANIFEST)
            )
            manifest = write_manifest(str(local), files, deletes=False, sequence=1)
            manifests.append({**manifest, "manifest_path": f"{location}/metadata/{local.name}"})
        listed = f"snap-{SNAPSHOT_ID}-1.avro"
        write_manifest_list(str(folder / listed), manifests, 1)
        target = f"{location}/metadata/{listed}"
        write_metadata(str(folder / "v1.metadata.json"), location, target, 1)
        client = server.client()

        def put(path: Path) -> None:
            client.put_object(
                Bucket=bucket, Key=f"planned/metadata/{path.name}", Body=path.read_bytes()
            )

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(put, folder.iterdir()))


def _read_table(server: Any, place: str) -> str:
    catalog = _catalog("icecomb", argparse.Namespace(place=place, endpoint=server.endpoint))
    rows = _rows(_READ, _ROWS)
    table = _new_table("icecomb", catalog, rows.schema)
    table.append(rows)
    return str(table.metadata_location)


@contextmanager
def line(server: Any, latency: int) -> Iterator[str]:
    """A slow line in a process of its own: it must not take the clients' time."""
    (port,) = free_ports(1)
    target = server.endpoint.rpartition(":")[2]
    command = [sys.executable, "-m", "tests.bench.slow_line", str(port), target, str(latency)]
    with subprocess.Popen(command, cwd=ROOT) as process:
        try:
            time.sleep(2)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()


def main() -> None:
    """Start the servers, or be the child."""
    arguments = parser(__doc__)
    arguments.add_argument("--cases", default=_CASES)
    arguments.add_argument("--latency", type=int, default=20, help="milliseconds a request")
    arguments.add_argument("--server", default="versitygw", choices=["versitygw", "moto"])
    arguments.add_argument("--manifests", type=int, default=1000)
    arguments.add_argument("--mib", type=int, default=1024)
    for hidden in ("--endpoint", "--direct", "--place", "--read"):
        arguments.add_argument(hidden, help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.child:
        peer, case = given.child.split(":")
        _child(peer, case, given)
        return
    cases = given.cases.split(",")
    server: Any = S3().start() if given.server == "moto" else Gateway().start()
    try:
        place = f"s3://{server.bucket()}" if given.server == "moto" else server.place()
        bucket = place.removeprefix("s3://")
        if "plan" in cases:
            _upload_planned(server, bucket, given.manifests)
        read = _read_table(server, place) if "read" in cases else ""
        with line(server, given.latency) as endpoint:
            sys.argv += ["--endpoint", endpoint, "--direct", server.endpoint]
            sys.argv += ["--place", place, "--read", read]
            for case in cases:
                given.peers = {
                    "commit": "icecomb",
                    "upload": "icecomb",
                    "purge": "icecomb,one_by_one",
                }.get(case, "icecomb,pyiceberg")
                compare("object_store", given, case, latency_ms=given.latency)
    finally:
        server.stop()


if __name__ == "__main__":
    main()
