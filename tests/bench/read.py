"""Reading a whole table into Arrow, or batch by batch, without and with deletes of both kinds.

    python -m tests.bench.read --work build/bench/read

The table is built once: 10 files of 2M rows; the position deletes are every 100th row of every file,
the equality delete file has 100k keys (PyIceberg refuses it).
The floor is `pyarrow.dataset` on the same files: `--peers icecomb,pyarrow` compares with that
(it reads the deleted rows, too).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.bench.measure import (
    clocked,
    compare,
    expect,
    load_peer,
    memory_mb,
    parser,
    report,
    run_child,
)
from tests.bench.rows import COLUMNS, arrow_rows
from tests.bench.table_metadata import (
    UNPARTITIONED,
    table_schema,
    to_bytes,
    write_manifest,
    write_manifest_list,
    write_metadata,
)

_EVERY = 100
_KEYS = 100_000
_PATH_ID, _POSITION_ID = 2147483546, 2147483545
_EMPTY = dict.fromkeys(
    ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds",
     "upper_bounds", "key_metadata", "split_offsets", "equality_ids", "sort_order_id")
)  # fmt: skip


def build(folder: Path, rows: int, files: int) -> None:
    """Write data, deletes, and a metadata file with and one without the deletes."""
    (folder / "data").mkdir(parents=True, exist_ok=True)
    (folder / "metadata").mkdir(exist_ok=True)
    schema, each = table_schema(COLUMNS), rows // files
    made = [_write_file(folder, number, each) for number in range(files)]
    data = write_manifest(
        f"{folder}/metadata/data.avro",
        (pair[0] for pair in made),
        spec=UNPARTITIONED,
        schema=schema,
    )
    deletes = write_manifest(
        f"{folder}/metadata/deletes.avro",
        (pair[1] for pair in made),
        deletes=True,
        sequence=2,
        spec=UNPARTITIONED,
        schema=schema,
    )
    keys = write_manifest(
        f"{folder}/metadata/keys.avro",
        [_write_keys(folder, rows)],
        deletes=True,
        sequence=2,
        spec=UNPARTITIONED,
        schema=schema,
    )
    for name, manifests in (
        ("plain", [data]),
        ("deletes", [data, deletes]),
        ("keys", [data, keys]),
    ):
        listed = f"{folder}/metadata/snap-{name}.avro"
        write_manifest_list(listed, manifests, 2)
        path = f"{folder}/metadata/{name}.metadata.json"
        write_metadata(path, str(folder), listed, 2, spec=UNPARTITIONED, schema=schema)


def measure(arguments: argparse.Namespace, name: str, case: str) -> None:
    """One process."""
    kind, how = case.split("-")
    folder = Path(arguments.work).resolve()
    wanted = arguments.rows
    read: Callable[[], Any]
    stream: Callable[[], Any]
    if name == "pyarrow":
        import pyarrow.dataset as ds

        dataset = ds.dataset([str(path) for path in _data_files(folder)])
        read, stream, version = dataset.to_table, dataset.to_batches, pa.__version__
    else:
        wanted -= {"plain": 0, "deletes": arguments.rows // _EVERY, "keys": _KEYS}[kind]
        peer = load_peer(name)
        table = peer.open_table(f"{folder}/metadata/{kind}.metadata.json", {})
        expect(sum(1 for _ in peer.tasks(table, [])), arguments.files, "files")
        read, stream, version = (
            lambda: peer.to_arrow(table),
            lambda: peer.batches(table),
            peer.version(),
        )
    before = memory_mb("VmRSS")
    work = (lambda: len(read())) if how == "table" else (lambda: sum(map(len, stream())))
    found, read_s, read_cpu_s = clocked(work)
    expect(found, wanted, name)
    report(
        rows=found,
        read_s=read_s,
        read_cpu_s=read_cpu_s,
        before_mb=before,
        peak_mb=memory_mb(),
        version=version,
    )


def _data_files(folder: Path) -> list[Path]:
    return sorted(path for path in (folder / "data").iterdir() if "deletes" not in path.name)


def _write_keys(folder: Path, rows: int) -> dict[str, Any]:
    """An equality delete file of ids, all over the table."""
    ids = pa.array(range(0, rows, rows // _KEYS), pa.int64())
    field = pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})
    path = folder / "data" / "key-deletes.parquet"
    pq.write_table(pa.table([ids], schema=pa.schema([field])), path, compression="zstd")
    return {
        **_EMPTY,
        "file_format": "PARQUET",
        "partition": {},
        "content": 2,
        "equality_ids": [1],
        "file_path": str(path),
        "record_count": len(ids),
        "file_size_in_bytes": path.stat().st_size,
    }


def _write_file(folder: Path, number: int, rows: int) -> tuple[dict[str, Any], dict[str, Any]]:
    table = arrow_rows(rows, number * rows)
    ids = [str(column) for column, _, _ in COLUMNS]
    fields = [
        field.with_metadata({"PARQUET:field_id": i})
        for field, i in zip(table.schema, ids, strict=True)
    ]
    path = folder / "data" / f"{number:05d}.parquet"
    pq.write_table(table.cast(pa.schema(fields)), path, compression="zstd", row_group_size=1 << 20)
    positions = pa.array(range(0, rows, _EVERY), pa.int64())
    delete_fields = [
        pa.field("file_path", pa.string(), False, {"PARQUET:field_id": str(_PATH_ID)}),
        pa.field("pos", pa.int64(), False, {"PARQUET:field_id": str(_POSITION_ID)}),
    ]
    paths = pa.repeat(pa.scalar(str(path)), len(positions))
    delete_path = folder / "data" / f"{number:05d}-deletes.parquet"
    deleted = pa.table([paths, positions], schema=pa.schema(delete_fields))
    pq.write_table(deleted, delete_path, compression="zstd")
    common: dict[str, Any] = {**_EMPTY, "file_format": "PARQUET", "partition": {}}
    bound = [{"key": _PATH_ID, "value": str(path).encode()}]
    first, last = number * rows, (number + 1) * rows - 1
    data = {
        **common,
        "content": 0,
        "file_path": str(path),
        "record_count": rows,
        "file_size_in_bytes": path.stat().st_size,
        "value_counts": [{"key": column, "value": rows} for column, _, _ in COLUMNS],
        "lower_bounds": [{"key": 1, "value": to_bytes("long", first)}],
        "upper_bounds": [{"key": 1, "value": to_bytes("long", last)}],
    }
    delete = {
        **common,
        "content": 1,
        "file_path": str(delete_path),
        "record_count": len(positions),
        "file_size_in_bytes": delete_path.stat().st_size,
        "lower_bounds": bound,
        "upper_bounds": bound,
    }
    return data, delete


def main() -> None:
    """Print a line a case."""
    arguments = parser(__doc__)
    arguments.add_argument("--work", required=True, help="a scratch folder")
    arguments.add_argument("--rows", type=int, default=20_000_000)
    arguments.add_argument("--files", type=int, default=10)
    arguments.add_argument(
        "--cases",
        default="plain-table,deletes-table,keys-table,plain-stream,deletes-stream,keys-stream",
    )
    given = arguments.parse_args()
    folder = Path(given.work).resolve()
    if given.child == "build":
        build(folder, given.rows, given.files)
        report(built=True)
    elif given.child:
        measure(given, *given.child.split(":"))
    else:
        if not (folder / "metadata" / "keys.metadata.json").exists():
            expect(run_child("build"), {"built": True}, "build")
        for case in given.cases.split(","):
            compare("read", given, case, rows=given.rows)


if __name__ == "__main__":
    main()
