"""Tables with files that are only named: any size, any number of rows, and deletes as wanted."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from icecomb.catalog import Table, load_catalog
from icecomb.catalog.catalog import Catalog
from icecomb.format.manifests.manifest import DataFile, DataFileContent, FileFormat
from icecomb.format.manifests.manifest_list import read_manifests, write_manifest_list
from icecomb.format.operation.append import FastAppend
from icecomb.format.operation.row_delta import RowDelta
from icecomb.format.rows.values.metadata_columns import DELETE_FILE_PATH

KB, MB, GB = 1 << 10, 1 << 20, 1 << 30
SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string())])
_NUMBERS = itertools.count()


def lake_in(folder: Path) -> Catalog:
    lake = load_catalog("lake", type="hadoop", warehouse=str(folder))
    lake.create_namespace_if_not_exists("db")
    return lake


def new_table(folder: Path, name: str = "t", *, by_day: bool = False, **properties: str) -> Table:
    """An empty table; its commits merge no manifests, and its target size is Iceberg's 512 MB."""
    kept = {"commit.manifest-merge.enabled": "false", **properties}
    table = lake_in(folder).create_table(f"db.{name}", SCHEMA, properties=kept)
    if by_day:
        with table.update_spec() as spec:
            spec.add_identity("day")
    return table


def data(size: int, rows: int = 100, day: str | None = None, **more: Any) -> DataFile:
    path = f"/t/data/{next(_NUMBERS)}.parquet"
    return DataFile(
        **{
            "file_path": path,
            "file_size_in_bytes": size,
            "record_count": rows,
            "partition": () if day is None else (day,),
            "spec_id": 0 if day is None else 1,
            **more,
        }
    )


def repeated_snapshots(table: Table, times_ms: Sequence[int]) -> list[dict[str, Any]]:
    """Return snapshots as JSON, numbered from 1, of the files of a table's only one.

    Each has a manifest list of its own and the one before for its parent.
    """
    metadata = Path(table.metadata_location.removeprefix("file://"))
    (first,) = json.loads(metadata.read_text())["snapshots"]
    (snapshot,) = table.snapshots()
    manifests = read_manifests(table.io, snapshot)
    made = []
    for number, time_ms in enumerate(times_ms, 1):
        parent = {"parent-snapshot-id": number - 1} if number > 1 else {}
        location = f"{table.location()}/metadata/snap-{number}.avro"
        write_manifest_list(
            table.io,
            location,
            manifests,
            format_version=2,
            snapshot_id=number,
            parent_snapshot_id=parent.get("parent-snapshot-id"),
            sequence_number=number,
        )
        own = {"snapshot-id": number, "timestamp-ms": time_ms, "manifest-list": location}
        made.append(first | own | {"sequence-number": number} | parent)
    return made


def append(table: Table, *files: DataFile) -> Table:
    """One commit, one manifest."""
    producer = FastAppend(table.io)
    for file in files:
        producer.append_data_file(file)
    return table.commit(producer)


def positions(rows: int, target: DataFile | None = None, day: str | None = None) -> DataFile:
    """Position deletes of a partition; or of one file, by their bounds."""
    bounds = None if target is None else {DELETE_FILE_PATH.field_id: target.file_path.encode()}
    where = {"day": day} if target is None else {"partition": target.partition}
    made = data(10 * KB, rows, **where)  # type: ignore[arg-type]
    spec_id = made.spec_id if target is None else target.spec_id
    return _changed(made, DataFileContent.POSITION_DELETES, spec_id, lower=bounds, upper=bounds)


def equality(rows: int, day: str | None = None) -> DataFile:
    made = data(10 * KB, rows, day)
    return _changed(made, DataFileContent.EQUALITY_DELETES, made.spec_id, ids=(1,))


def delete(table: Table, *files: DataFile) -> Table:
    producer = RowDelta(table.io)
    for file in files:
        producer.add_deletes(file)
    return table.commit(producer)


def codes(table: Table) -> list[str]:
    return [found.code for found in table.maintenance.health().findings]


def finding(table: Table, code: str) -> Any:
    (found,) = [one for one in table.maintenance.health().findings if one.code == code]
    return found


def _changed(
    file: DataFile,
    content: DataFileContent,
    spec_id: int,
    *,
    lower: Any = None,
    upper: Any = None,
    ids: Any = None,
) -> DataFile:
    return DataFile(
        content=content,
        file_path=file.file_path.replace(".parquet", "-deletes.parquet"),
        partition=file.partition,
        record_count=file.record_count,
        file_size_in_bytes=file.file_size_in_bytes,
        lower_bounds=lower,
        upper_bounds=upper,
        equality_ids=ids,
        spec_id=spec_id,
    )


def vector(rows: int, target: DataFile) -> DataFile:
    """The deletion vector of a data file, in a Puffin file of many."""
    number = next(_NUMBERS)
    return DataFile(
        content=DataFileContent.POSITION_DELETES,
        file_path="/t/data/vectors.puffin",
        file_format=FileFormat.PUFFIN,
        partition=target.partition,
        record_count=rows,
        file_size_in_bytes=GB,
        referenced_data_file=target.file_path,
        content_offset=number * 10 * KB,
        content_size_in_bytes=10 * KB,
        spec_id=target.spec_id,
    )
