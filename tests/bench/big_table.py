"""Builds a large table of format version 2 as metadata only: no data file exists.

20 columns, partitioned by day(ts) and bucket(16, id), with bounds, sizes and counts of every
column. Files come in the order of time, so that one day prunes manifests; the bounds of `key` are a
permutation, so that a range of 1 % is found in every manifest and only bounds of columns prune.
Written with fastavro alone, so that no peer plans what it has written itself.

    python -m tests.bench.big_table --files 100000 --out build/bench/big100k
    python -m tests.bench.big_table --files 100000 --out build/bench/big100kdel \\
        --position-deletes 20000 --equality-deletes 1000
    python -m tests.bench.big_table --files 1000000 --out build/bench/big1m   # takes 12 CPU minutes
    python -m tests.bench.big_table --files 100000 --times 10 --out build/bench/big10x100k

With `--times 10` each manifest is listed ten times, under names of its own: as large a table in a
tenth of the time, but each data file comes ten times.

Beside the metadata stands expected.json: predicates, and how many files each must plan.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import uuid
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from tests.bench.table_metadata import (
    COLUMNS,
    SNAPSHOT_ID,
    table_schema,
    to_bytes,
    write_manifest,
    write_manifest_list,
    write_metadata,
)

DAYS = 100
PER_MANIFEST = 2000
ROWS_PER_FILE = 100_000
_EPOCH = dt.date(1970, 1, 1)
_FIRST_DAY = (dt.date(2025, 1, 1) - _EPOCH).days
_DAY_US = 86_400_000_000
_EMPTY = dict.fromkeys(
    ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds",
     "upper_bounds", "key_metadata", "split_offsets", "equality_ids", "sort_order_id")
)  # fmt: skip
_FILE_PATH_ID = 2147483546


def build(
    location: str, files: int, position_deletes: int, equality_deletes: int, times: int
) -> None:
    """Write the table."""
    folder = Path(location) / "metadata"
    folder.mkdir(parents=True, exist_ok=True)
    kinds = {
        "data": (files, data_file, 0, 1),
        "position": (position_deletes, position_delete, 1, 2),
        "equality": (equality_deletes, equality_delete, 1, 2),
    }
    jobs = [
        (str(folder / f"{kind}-{start:08d}.avro"), kind, start, min(start + PER_MANIFEST, count))
        for kind, (count, _, _, _) in kinds.items()
        for start in range(0, count, PER_MANIFEST)
    ]
    with ProcessPoolExecutor() as pool:
        written = list(pool.map(partial(_write_one, location, files), jobs))
    manifests = [_linked(manifest, copy) for copy in range(times) for manifest in written]
    listed = str(folder / f"snap-{SNAPSHOT_ID}-1.avro")
    sequence = 2 if position_deletes or equality_deletes else 1
    write_manifest_list(listed, manifests, sequence)
    write_metadata(str(folder / "v1.metadata.json"), location, listed, sequence)
    (Path(location) / "expected.json").write_text(json.dumps(_expected(files, times)))


def data_file(number: int, files: int, location: str) -> dict[str, Any]:
    """The record of one data file."""
    day, bucket = partition_of(number, files)
    lower, upper = [], []
    for column, name, kind in COLUMNS:
        low, high = _range(number, files, column, name, kind)
        lower.append({"key": column, "value": to_bytes(kind, low)})
        upper.append({"key": column, "value": to_bytes(kind, high)})
    ids = [column for column, _, _ in COLUMNS]
    return {
        **_EMPTY,
        "content": 0,
        "file_path": data_path(number, files, location),
        "file_format": "PARQUET",
        "partition": {"ts_day": day, "id_bucket": bucket},
        "record_count": ROWS_PER_FILE,
        "file_size_in_bytes": 8_000_000 + _mix(number, 99),
        "column_sizes": [{"key": i, "value": 300_000 + _mix(number, i)} for i in ids],
        "value_counts": [{"key": i, "value": ROWS_PER_FILE} for i in ids],
        "null_value_counts": [{"key": i, "value": _mix(number, i) % 100} for i in ids],
        "nan_value_counts": [{"key": i, "value": 0} for i in (8, 9, 10)],
        "lower_bounds": lower,
        "upper_bounds": upper,
        "split_offsets": [4],
        "sort_order_id": 0,
    }


def position_delete(number: int, files: int, location: str) -> dict[str, Any]:
    """The record of a position-delete file of one data file."""
    target = number * 5 % files
    day, bucket = partition_of(target, files)
    bound = [{"key": _FILE_PATH_ID, "value": data_path(target, files, location).encode()}]
    return {
        **_EMPTY,
        "content": 1,
        "file_path": f"{location}/data/position-{number:08d}.parquet",
        "file_format": "PARQUET",
        "partition": {"ts_day": day, "id_bucket": bucket},
        "record_count": 100,
        "file_size_in_bytes": 2000,
        "lower_bounds": bound,
        "upper_bounds": bound,
    }


def equality_delete(number: int, files: int, location: str) -> dict[str, Any]:
    """The record of an equality-delete file of one partition."""
    day, bucket = partition_of(number * 100 % files, files)
    low, high = number * 1000, number * 1000 + 999
    return {
        **_EMPTY,
        "content": 2,
        "file_path": f"{location}/data/equality-{number:08d}.parquet",
        "file_format": "PARQUET",
        "partition": {"ts_day": day, "id_bucket": bucket},
        "record_count": 100,
        "file_size_in_bytes": 2000,
        "value_counts": [{"key": 1, "value": 100}],
        "null_value_counts": [{"key": 1, "value": 0}],
        "lower_bounds": [{"key": 1, "value": to_bytes("long", low)}],
        "upper_bounds": [{"key": 1, "value": to_bytes("long", high)}],
        "equality_ids": [1],
    }


def data_path(number: int, files: int, location: str) -> str:
    """Where data file `number` would be."""
    day, bucket = partition_of(number, files)
    date = (_EPOCH + dt.timedelta(days=day)).isoformat()
    name = f"{number:08d}-0-{uuid.UUID(int=number)}.parquet"
    return f"{location}/data/ts_day={date}/id_bucket={bucket}/{name}"


def _write_one(location: str, files: int, job: tuple[str, str, int, int]) -> dict[str, Any]:
    path, kind, start, stop = job
    make = {"data": data_file, "position": position_delete, "equality": equality_delete}[kind]
    records: Iterator[dict[str, Any]] = (make(n, files, location) for n in range(start, stop))
    is_data = kind == "data"
    return write_manifest(path, records, deletes=not is_data, sequence=1 if is_data else 2)


def _linked(manifest: dict[str, Any], copy: int) -> dict[str, Any]:
    """The same manifest under another name, but for copy 0."""
    path = Path(manifest["manifest_path"])
    name = path.with_name(f"{copy}-{path.name}") if copy else path
    if copy:
        name.unlink(missing_ok=True)
        name.hardlink_to(path)
    return {**manifest, "manifest_path": str(name)}


def _expected(files: int, times: int) -> dict[str, Any]:
    day = DAYS // 2
    first = _EPOCH + dt.timedelta(days=_FIRST_DAY + day)
    bounds = [f"{first + dt.timedelta(days=k)}T00:00:00+00:00" for k in (0, 1)]
    low = files * 1000 // 2
    high = low + max(files // 100, 1) * 1000 - 1
    ranges = [_key_range(n, files) for n in range(files)]
    return {
        "full": {"predicate": [], "files": files * times},
        "day": {
            "predicate": [["ts", ">=", bounds[0]], ["ts", "<", bounds[1]]],
            "files": sum(n * DAYS // files == day for n in range(files)) * times,
        },
        "bounds": {
            "predicate": [["key", ">=", low], ["key", "<=", high]],
            "files": sum(start <= high and end >= low for start, end in ranges) * times,
        },
    }


def partition_of(number: int, files: int) -> tuple[int, int]:
    """The partition tuple of data file `number`."""
    return _FIRST_DAY + number * DAYS // files, number % 16


def _range(number: int, files: int, column: int, name: str, kind: str) -> tuple[Any, Any]:
    day, some = partition_of(number, files)[0], _mix(number, column)
    if name == "ts":
        return day * _DAY_US + some, day * _DAY_US + 86_399_000_000 - some
    if name == "key":
        return _key_range(number, files)
    if kind == "string":
        return f"{name}-{some:07d}-lowest", f"{name}-{some + 5000:07d}-highest"
    if kind == "boolean":
        return False, True
    if kind == "date":
        return day, day + some % 30
    if kind == "timestamp":
        return day * _DAY_US, day * _DAY_US + some
    if kind in {"double", "float"}:
        return some / 7.0, some / 7.0 + 1000
    return some, some + 100_000


def _key_range(number: int, files: int) -> tuple[int, int]:
    """Ranges of 1000 keys: a permutation of the files."""
    prime = 7_368_787
    place = number * prime % files if files % prime else number
    return place * 1000, place * 1000 + 999


def _mix(number: int, salt: int) -> int:
    mixed = (number * 0x9E3779B97F4A7C15 + salt * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
    return (mixed ^ (mixed >> 29)) % 1_000_003


def main() -> None:
    """Build a table as the arguments say."""
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--files", type=int, default=10_000)
    arguments.add_argument("--position-deletes", type=int, default=0)
    arguments.add_argument("--equality-deletes", type=int, default=0)
    arguments.add_argument("--times", type=int, default=1, help="list each manifest so often")
    arguments.add_argument("--out", required=True, help="the table's folder")
    given = arguments.parse_args()
    location = str(Path(given.out).resolve())
    build(location, given.files, given.position_deletes, given.equality_deletes, given.times)
    expect = len(table_schema()["fields"])
    print(
        json.dumps({"measure": "big_table", "files": given.files * given.times, "columns": expect})
    )


if __name__ == "__main__":
    main()
