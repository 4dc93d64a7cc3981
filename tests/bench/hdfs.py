"""HDFS: both engines beside Hadoop's own Java client, on one cluster in one run.

    python -m tests.bench.hdfs

write, read: one file of `--mib`, from beginning to end, in pieces of 8 MiB.
scan: one of eight columns of a Parquet file of 4 million rows; Java fetches and decompresses its
pages, icecomb decodes the values, too.
commit: the median of `--appends` appends of one row, beside the same on a local folder.

A ratio is of seconds: 0.5 is twice as fast as the other. Without `--conf` a cluster is started.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import uuid
from functools import partial
from pathlib import Path
from typing import Any

from icecomb.catalog.java import find_java, find_javac
from icecomb.format.storage.file_io import FileIO
from tests.bench.measure import RESULT, ROOT, clocked, compare, expect, parser, report
from tests.peers.hdfs import Hdfs
from tests.peers.ivy import pyspark_jars

_PIECE = 8 << 20
_SOURCE = Path(__file__).with_name("HdfsJava.java")
_CLASSES = ROOT / "build" / "bench" / "java"
_ROWS, _COLUMNS = 4_000_000, 8


def write(io: FileIO, location: str, mib: int) -> int:
    """Write a file piece by piece."""
    piece = random.Random(1).randbytes(_PIECE)
    with io.create_stream(location) as out:
        for _ in range(0, mib << 20, _PIECE):
            out.write(piece)
    return io.size(location)


def read(io: FileIO, location: str) -> int:
    """Read a file to its end."""
    with io.open_input(location) as source:
        return sum(len(piece) for piece in iter(lambda: source.read(_PIECE), b""))


def scan(io: FileIO, location: str) -> int:
    """Read one column."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(io.open_input(location), pre_buffer=True) as file:
        return int(file.read(["c3"]).num_rows) * 8


def commit(io: FileIO, folder: str, appends: int) -> None:
    """Append row by row."""
    import pyarrow as pa

    from icecomb.catalog import load_catalog

    catalog = load_catalog("bench", type="hadoop", warehouse=folder, **io.properties)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", pa.schema([("id", pa.int64())]))
    rows = pa.table({"id": pa.array([1], pa.int64())})
    table.append(rows)
    runs = [clocked(partial(table.append, rows)) for _ in range(appends)]
    expect(catalog.load_table("db.t").scan().count(), appends + 1, "rows")
    report(
        append_s=statistics.median(run[1] for run in runs),
        append_cpu_s=statistics.median(run[2] for run in runs),
    )


def _child(peer: str, case: str, given: argparse.Namespace) -> None:
    os.environ["HADOOP_CONF_DIR"] = given.conf
    os.environ.setdefault("HADOOP_USER_NAME", "bench")
    if peer == "java":
        _java(case, given)
        return
    io = FileIO({"hdfs.engine": peer} if peer != "local" else {})
    if case == "commit":
        with tempfile.TemporaryDirectory() as local:
            place = f"file://{local}" if peer == "local" else f"{given.place}/{uuid.uuid4().hex}"
            commit(io, place, given.appends)
        return
    io.exists(f"{given.place}/x")
    new = f"{given.place}/{uuid.uuid4().hex}"
    work = {
        "write": lambda: write(io, new, given.mib),
        "read": lambda: read(io, f"{given.place}/sequential"),
        "scan": lambda: scan(io, f"{given.place}/columns.parquet"),
    }[case]
    done, seconds, cpu = clocked(work)
    if case == "write":
        io.delete(new)
    expect(done, _expected(case, given), "bytes")
    report(work_s=seconds, work_cpu_s=cpu)


def _java(case: str, given: argparse.Namespace) -> None:
    location, more = {
        "write": (f"{given.place}/java", [given.mib]),
        "read": (f"{given.place}/sequential", []),
        "scan": (f"{given.place}/columns.parquet", ["c3"]),
    }[case]
    jars = f"{given.conf}:{_CLASSES}:{pyspark_jars()}/*"
    done = subprocess.run(
        [find_java(), "-cp", jars, _SOURCE.stem, case, location, *map(str, more)],
        check=True,
        capture_output=True,
        text=True,
    )
    (line,) = [each for each in done.stdout.splitlines() if each.startswith(RESULT)]
    figures: dict[str, Any] = json.loads(line.removeprefix(RESULT))
    expect(figures.pop("bytes"), _expected(case, given), "bytes")
    report(**figures)


def _expected(case: str, given: argparse.Namespace) -> int:
    return _ROWS * 8 if case == "scan" else given.mib << 20


def _prepare(given: argparse.Namespace) -> None:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    _CLASSES.mkdir(parents=True, exist_ok=True)
    command = [find_javac(), "-d", _CLASSES, "-cp", f"{pyspark_jars()}/*", _SOURCE]
    subprocess.run(command, check=True)
    os.environ["HADOOP_CONF_DIR"] = given.conf
    io = FileIO({})
    write(io, f"{given.place}/sequential", given.mib)
    random_numbers = np.random.default_rng(1)
    columns = {f"c{i}": random_numbers.integers(0, 2**40, _ROWS) for i in range(_COLUMNS)}
    with io.create_stream(f"{given.place}/columns.parquet") as out:
        pq.write_table(pa.table(columns), out, row_group_size=500_000)


def main() -> None:
    """Print a line a case and pair."""
    arguments = parser(__doc__)
    arguments.add_argument("--conf", help="HADOOP_CONF_DIR of a running cluster")
    arguments.add_argument("--place", default=f"/warehouse/bench-{uuid.uuid4().hex}")
    arguments.add_argument("--cases", default="write,read,scan,commit")
    arguments.add_argument("--mib", type=int, default=256)
    arguments.add_argument("--appends", type=int, default=20)
    given = arguments.parse_args()
    if given.child:
        _child(*given.child.split(":"), given)
        return
    os.environ["HADOOP_USER_NAME"] = "bench"
    cluster = None
    folder = Path(tempfile.mkdtemp())
    try:
        if not given.conf:
            cluster = Hdfs(folder).start()
            given.conf = str(cluster.conf)
        given.place = f"hdfs://{given.place}"
        sys.argv += ["--conf", given.conf, "--place", given.place]
        _prepare(given)
        for case in given.cases.split(","):
            for engine in ("webhdfs", "native"):
                given.peers = f"{engine},{'local' if case == 'commit' else 'java'}"
                compare("hdfs", given, case)
        FileIO({}).filesystem(given.place)[0].delete_dir(given.place)
    finally:
        if cluster is not None:
            cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
