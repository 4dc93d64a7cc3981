"""A table's paths rewritten: `rewrite_table_path` beside the procedure of Iceberg's runtime in Spark 4.1.

    python -m tests.bench.relocation --work build/bench/relocation
    python -m tests.bench.relocation --work build/bench/relocation --latency 30 --peers icecomb

manifests: `--manifests` of them, of a hundred data files each, which do not exist.
deletes: `--deletes` Parquet files of position deletes in manifests of a hundred, one for a data file.
vectors: deletion vectors of `--vectors` data files, in 20 Puffin files; Iceberg reads none before 1.11.

With `--latency`, which is for icecomb alone, the tables are on an S3 that takes so many milliseconds.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from icecomb.catalog import load_catalog, open_table
from tests.bench.big_table import data_file, position_delete
from tests.bench.measure import (
    Figures,
    clocked,
    expect,
    in_turn,
    memory_mb,
    parser,
    print_runs,
    report,
    run_child,
)
from tests.bench.object_store import Gateway, line, settings
from tests.bench.spark_read import Contestant, Sparks
from tests.bench.table_metadata import (
    SNAPSHOT_ID,
    write_manifest,
    write_manifest_list,
    write_metadata,
)

_PER_MANIFEST: Final = 100
_POSITIONS: Final = 200
_PUFFINS: Final = 20
_CASES: Final = ("manifests", "deletes", "vectors")


def _count(case: str, given: argparse.Namespace) -> int:
    return {
        "manifests": given.manifests * _PER_MANIFEST,
        "deletes": given.deletes,
        "vectors": given.vectors,
    }[case]


def make(case: str, folder: Path, location: str, given: argparse.Namespace) -> None:
    """Write a table of format version 2 whose paths begin with a location."""
    count = _count(case, given)
    (folder / "metadata").mkdir(parents=True)
    (folder / "data").mkdir()
    starts = range(0, count, _PER_MANIFEST)
    manifests = []

    def written(name: str, records: list[dict[str, Any]], *, deletes: bool) -> None:
        path = folder / "metadata" / name
        made = write_manifest(str(path), records, deletes=deletes, sequence=1 + deletes)
        manifests.append({**made, "manifest_path": f"{location}/metadata/{name}"})

    for start in starts:
        numbers = range(start, min(start + _PER_MANIFEST, count))
        data = [data_file(n, count, location) for n in numbers]
        written(f"data-{start:08d}.avro", data, deletes=False)
        if case == "deletes":
            files = [_position_delete(n, count, folder, location) for n in numbers]
            written(f"deletes-{start:08d}.avro", files, deletes=True)
    listed = f"snap-{SNAPSHOT_ID}-1.avro"
    write_manifest_list(str(folder / "metadata" / listed), manifests, 2)
    target = f"{location}/metadata/{listed}"
    write_metadata(str(folder / "metadata" / "v1.metadata.json"), location, target, 2)


def _position_delete(number: int, count: int, folder: Path, location: str) -> dict[str, Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    record = position_delete(number, count, location)
    (bound,) = record["lower_bounds"]
    columns = {
        "file_path": pa.array([bound["value"].decode()] * _POSITIONS),
        "pos": pa.array(range(0, 7 * _POSITIONS, 7), pa.int64()),
    }
    ids = {"file_path": "2147483546", "pos": "2147483545"}
    fields = [
        pa.field(name, column.type, False, {"PARQUET:field_id": ids[name]})
        for name, column in columns.items()
    ]
    path = folder / "data" / record["file_path"].rpartition("/")[2]
    pq.write_table(pa.table(columns, schema=pa.schema(fields)), path, compression="zstd")
    size = path.stat().st_size
    return {**record, "record_count": _POSITIONS, "file_size_in_bytes": size}


def make_vectors(root: str, given: argparse.Namespace) -> None:
    """Write a table of format version 3 by icecomb."""
    import pyarrow as pa

    lake = load_catalog("lake", type="hadoop", warehouse=root, **_properties(given))
    if ("db",) not in lake.list_namespaces():
        lake.create_namespace("db")
    numbers = range(given.vectors * 10)
    rows = pa.table({"id": [n % 10 for n in numbers], "part": [n // 10 for n in numbers]})
    properties = {"format-version": "3", "write.delete.mode": "merge-on-read"}
    table = lake.create_table("db.vectors", rows.schema, properties=properties)
    with table.update_spec() as update:
        update.add_identity("part")
    table.append(rows)
    each = -(-given.vectors // _PUFFINS)
    for start in range(0, given.vectors, each):
        table.delete(f"id = 3 and part >= {start} and part < {start + each}")


def _properties(given: argparse.Namespace) -> dict[str, str]:
    return settings(given.endpoint) if given.endpoint else {}


def _child(case: str, given: argparse.Namespace) -> None:
    table = open_table(f"{given.root}/db/{case}", **_properties(given))
    staging = f"{given.root}/staged-{uuid.uuid4()}"
    done, wall, cpu = clocked(
        lambda: table.maintenance.rewrite_table_path(
            table.location(), "/somewhere/else", staging_location=staging
        )
    )
    deletes = 0 if case == "manifests" else _count(case, given)
    expect(done.rewritten_delete_file_paths_count, deletes, case)
    report(wall_s=wall, cpu_s=cpu, peak_mb=memory_mb())


def _make(case: str, root: str, given: argparse.Namespace, server: Any) -> None:
    place = f"{root}/db/{case}"
    if case == "vectors":
        make_vectors(root, given)
    elif server is None:
        make(case, Path(place), place, given)
    else:
        folder = given.work / case
        make(case, folder, place, given)
        client, bucket = server.client(), root.removeprefix("s3://")

        def put(path: Path) -> None:
            key = f"db/{case}/{path.relative_to(folder)}"
            client.put_object(Bucket=bucket, Key=key, Body=path.read_bytes())

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(put, (path for path in folder.rglob("*") if path.is_file())))


def _measure(case: str, peers: list[str], sparks: Sparks, given: argparse.Namespace) -> None:
    place = f"{given.work}/warehouse/db/{case}"

    def run(peer: str, turn: int) -> Figures:
        if peer == "icecomb":
            return run_child(case)
        call = (
            f"CALL lake.system.rewrite_table_path(table => 'db.{case}', source_prefix => '{place}',"
            f" target_prefix => '/somewhere/else', staging_location => '{given.work}/java-{turn}')"
        )
        return sparks.timed(Contestant(peer, call))[1]

    runs = in_turn(peers, run, given.repeat, warm=int(len(peers) > 1))
    labels = {"files": _count(case, given), "latency_ms": given.latency}
    print_runs("relocation", runs, [("icecomb", "iceberg")], case=case, **labels)


def main() -> None:
    """Print a line a case."""
    arguments = parser(__doc__)
    arguments.set_defaults(peers="icecomb,iceberg")
    arguments.add_argument("--work", type=Path, required=True, help="for the tables; emptied")
    arguments.add_argument("--manifests", type=int, default=1000)
    arguments.add_argument("--deletes", type=int, default=5000)
    arguments.add_argument("--vectors", type=int, default=2000)
    arguments.add_argument("--latency", type=int, default=0, help="milliseconds a request; of S3")
    arguments.add_argument("--cases", default=",".join(_CASES))
    for hidden in ("--endpoint", "--root"):
        arguments.add_argument(hidden, default="", help=argparse.SUPPRESS)
    given = arguments.parse_args()
    given.work = given.work.resolve()
    if given.child:
        _child(given.child, given)
        return
    shutil.rmtree(given.work, ignore_errors=True)
    given.work.mkdir(parents=True)
    peers = given.peers.split(",")
    with ExitStack() as stack:
        server = None
        root = f"{given.work}/warehouse"
        if given.latency:
            server = Gateway().start()
            stack.callback(server.stop)
            given.endpoint = server.endpoint
            root = server.place()
        for case in given.cases.split(","):
            _make(case, root, given, server)
        if server is not None:
            given.endpoint = stack.enter_context(line(server, given.latency))
        sys.argv += ["--endpoint", given.endpoint, "--root", root]
        sparks = Sparks(given.work, [one for one in peers if one != "icecomb"], stack)
        for case in given.cases.split(","):
            _measure(case, peers, sparks, given)


if __name__ == "__main__":
    main()
