"""Metadata files and manifests written from plain records, with nothing but fastavro and json."""

from __future__ import annotations

import json
import struct
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import fastavro

SNAPSHOT_ID = 1_000_000_001
_NOW_MS = 1_760_000_000_000
COLUMNS = (
    (1, "id", "long"), (2, "ts", "timestamptz"), (3, "key", "long"), (4, "i1", "int"),
    (5, "i2", "int"), (6, "l1", "long"), (7, "l2", "long"), (8, "d1", "double"),
    (9, "d2", "double"), (10, "f1", "float"), (11, "s1", "string"), (12, "s2", "string"),
    (13, "s3", "string"), (14, "s4", "string"), (15, "dt", "date"), (16, "t2", "timestamp"),
    (17, "b1", "boolean"), (18, "dec", "decimal(18, 2)"), (19, "s5", "string"),
    (20, "s6", "string"),
)  # fmt: skip
"""Id, name and type of each column."""
SPEC: dict[str, Any] = {
    "spec-id": 0,
    "fields": [
        {"source-id": 2, "field-id": 1000, "name": "ts_day", "transform": "day"},
        {"source-id": 1, "field-id": 1001, "name": "id_bucket", "transform": "bucket[16]"},
    ],
}
UNPARTITIONED: dict[str, Any] = {"spec-id": 0, "fields": []}
_PACKED = {
    "long": "<q", "timestamp": "<q", "timestamptz": "<q", "int": "<i", "date": "<i",
    "double": "<d", "float": "<f",
}  # fmt: skip


def table_schema(columns: Sequence[tuple[int, str, str]] = COLUMNS) -> dict[str, Any]:
    """The columns as a schema in JSON."""
    fields = [{"id": i, "name": n, "required": False, "type": t} for i, n, t in columns]
    return {"type": "struct", "schema-id": 0, "fields": fields}


def to_bytes(kind: str, value: Any) -> bytes:
    """A bound (spec: Appendix D, binary); text is cut as writers cut it."""
    if kind in _PACKED:
        return struct.pack(_PACKED[kind], value)
    if kind == "boolean":
        return b"\x01" if value else b"\x00"
    if kind.startswith("decimal"):
        size = (value + (value < 0)).bit_length() // 8 + 1
        return bytes(value.to_bytes(size, "big", signed=True))
    return str(value).encode()[:16]


def write_manifest(
    path: str,
    records: Iterable[dict[str, Any]],
    *,
    deletes: bool = False,
    sequence: int = 1,
    spec: dict[str, Any] = SPEC,
    schema: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Write files as added entries; returns the manifest's record for a manifest list."""
    files = list(records)
    entries = [
        {"status": 1, "snapshot_id": SNAPSHOT_ID, "sequence_number": None,
         "file_sequence_number": None, "data_file": file}
        for file in files
    ]  # fmt: skip
    metadata = {
        "schema": json.dumps(schema or table_schema()),
        "schema-id": "0",
        "partition-spec": json.dumps(spec["fields"]),
        "partition-spec-id": "0",
        "format-version": "2",
        "content": "deletes" if deletes else "data",
    }
    parsed = fastavro.parse_schema(_manifest_schema(spec))
    with Path(path).open("wb") as out:
        fastavro.writer(out, parsed, entries, "deflate", 64_000, metadata)
    names = [field["name"] for field in spec["fields"]]
    return {
        "manifest_path": path,
        "manifest_length": Path(path).stat().st_size,
        "partition_spec_id": 0,
        "content": int(deletes),
        "sequence_number": sequence,
        "min_sequence_number": sequence,
        "added_snapshot_id": SNAPSHOT_ID,
        "added_files_count": len(files),
        "existing_files_count": 0,
        "deleted_files_count": 0,
        "added_rows_count": sum(file["record_count"] for file in files),
        "existing_rows_count": 0,
        "deleted_rows_count": 0,
        "partitions": [_summary([file["partition"][name] for file in files]) for name in names],
        "key_metadata": None,
    }


def write_manifest_list(
    path: str, manifests: Sequence[dict[str, Any]], sequence: int, snapshot_id: int = SNAPSHOT_ID
) -> None:
    """Write the manifest list of a snapshot."""
    metadata = {
        "format-version": "2",
        "snapshot-id": str(snapshot_id),
        "parent-snapshot-id": "null",
        "sequence-number": str(sequence),
    }
    parsed = fastavro.parse_schema(_LIST_SCHEMA)
    with Path(path).open("wb") as out:
        fastavro.writer(out, parsed, manifests, "deflate", metadata=metadata)


def write_metadata(
    path: str,
    location: str,
    manifest_list: str,
    sequence: int,
    *,
    spec: dict[str, Any] = SPEC,
    schema: dict[str, Any] | None = None,
) -> None:
    """Write the metadata of a table of one snapshot."""
    snapshot = {
        "snapshot-id": SNAPSHOT_ID,
        "sequence-number": sequence,
        "timestamp-ms": _NOW_MS,
        "manifest-list": manifest_list,
        "summary": {"operation": "append"},
        "schema-id": 0,
    }
    Path(path).write_text(json.dumps(metadata_json(location, [snapshot], spec, schema)))


def long_history(location: str, snapshots: int, log: int) -> dict[str, Any]:
    """The metadata of a table of many snapshots and as many log entries as given."""
    start, at = 10**18, 1_700_000_000_000
    history = [
        {
            "snapshot-id": start + n,
            **({"parent-snapshot-id": start + n - 1} if n else {}),
            "sequence-number": n + 1,
            "timestamp-ms": at + n * 60_000,
            "manifest-list": f"{location}/metadata/snap-{start + n}-1-{uuid.UUID(int=n)}.avro",
            "schema-id": 0,
            "summary": {
                "operation": "append", "added-data-files": "16", "added-records": "1000000",
                "added-files-size": "123456789", "changed-partition-count": "16",
                "total-records": str(10**6 * (n + 1)), "total-data-files": str(16 * (n + 1)),
                "total-files-size": str(123456789 * (n + 1)), "total-delete-files": "0",
                "total-position-deletes": "0", "total-equality-deletes": "0",
                "spark.app.id": f"application_1700000000000_{n:06d}", "engine-name": "spark",
                "engine-version": "3.5.6",
            },
        }
        for n in range(snapshots)
    ]  # fmt: skip
    made = metadata_json(location, history, UNPARTITIONED, None)
    made["metadata-log"] = [
        {
            "timestamp-ms": at + n * 60_000,
            "metadata-file": f"{location}/metadata/{n:05d}-{uuid.UUID(int=n)}.metadata.json",
        }
        for n in range(log)
    ]
    return made


def metadata_json(
    location: str,
    snapshots: list[dict[str, Any]],
    spec: dict[str, Any],
    schema: dict[str, Any] | None,
) -> dict[str, Any]:
    """Table metadata with this history on branch main."""
    schema = schema or table_schema()
    last = snapshots[-1]
    return {
        "format-version": 2,
        "table-uuid": str(uuid.UUID(int=42)),
        "location": location,
        "last-sequence-number": last["sequence-number"],
        "last-updated-ms": last["timestamp-ms"],
        "last-column-id": max(field["id"] for field in schema["fields"]),
        "current-schema-id": 0,
        "schemas": [schema],
        "default-spec-id": 0,
        "partition-specs": [spec],
        "last-partition-id": max([999, *(field["field-id"] for field in spec["fields"])]),
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "properties": {},
        "current-snapshot-id": last["snapshot-id"],
        "refs": {"main": {"snapshot-id": last["snapshot-id"], "type": "branch"}},
        "snapshots": snapshots,
        "snapshot-log": [
            {"timestamp-ms": one["timestamp-ms"], "snapshot-id": one["snapshot-id"]}
            for one in snapshots
        ],
        "metadata-log": [],
    }


def _summary(values: list[int]) -> dict[str, Any]:
    return {
        "contains_null": False,
        "contains_nan": None,
        "lower_bound": to_bytes("int", min(values)),
        "upper_bound": to_bytes("int", max(values)),
    }


def _optional(name: str, field_id: int, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": ["null", kind], "default": None, "field-id": field_id}


def _required(name: str, field_id: int, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "field-id": field_id}


def _map(key_id: int, value_id: int, value: str) -> dict[str, Any]:
    fields = [_required("key", key_id, "int"), _required("value", value_id, value)]
    pair = {"type": "record", "name": f"k{key_id}_v{value_id}", "fields": fields}
    return {"type": "array", "logicalType": "map", "items": pair}


def _manifest_schema(spec: dict[str, Any]) -> dict[str, Any]:
    kinds = {"day": {"type": "int", "logicalType": "date"}}
    partition = [
        _optional(field["name"], field["field-id"], kinds.get(field["transform"], "int"))
        for field in spec["fields"]
    ]
    file = [
        _required("content", 134, "int"),
        _required("file_path", 100, "string"),
        _required("file_format", 101, "string"),
        _required("partition", 102, {"type": "record", "name": "r102", "fields": partition}),
        _required("record_count", 103, "long"),
        _required("file_size_in_bytes", 104, "long"),
        _optional("column_sizes", 108, _map(117, 118, "long")),
        _optional("value_counts", 109, _map(119, 120, "long")),
        _optional("null_value_counts", 110, _map(121, 122, "long")),
        _optional("nan_value_counts", 137, _map(138, 139, "long")),
        _optional("lower_bounds", 125, _map(126, 127, "bytes")),
        _optional("upper_bounds", 128, _map(129, 130, "bytes")),
        _optional("key_metadata", 131, "bytes"),
        _optional("split_offsets", 132, {"type": "array", "items": "long", "element-id": 133}),
        _optional("equality_ids", 135, {"type": "array", "items": "int", "element-id": 136}),
        _optional("sort_order_id", 140, "int"),
    ]
    entry = [
        _required("status", 0, "int"),
        _optional("snapshot_id", 1, "long"),
        _optional("sequence_number", 3, "long"),
        _optional("file_sequence_number", 4, "long"),
        _required("data_file", 2, {"type": "record", "name": "r2", "fields": file}),
    ]
    return {"type": "record", "name": "manifest_entry", "fields": entry}


_SUMMARY_SCHEMA = {
    "type": "record",
    "name": "r508",
    "fields": [
        _required("contains_null", 509, "boolean"),
        _optional("contains_nan", 518, "boolean"),
        _optional("lower_bound", 510, "bytes"),
        _optional("upper_bound", 511, "bytes"),
    ],
}
_LIST_SCHEMA = {
    "type": "record",
    "name": "manifest_file",
    "fields": [
        _required("manifest_path", 500, "string"),
        _required("manifest_length", 501, "long"),
        _required("partition_spec_id", 502, "int"),
        _required("content", 517, "int"),
        _required("sequence_number", 515, "long"),
        _required("min_sequence_number", 516, "long"),
        _required("added_snapshot_id", 503, "long"),
        _required("added_files_count", 504, "int"),
        _required("existing_files_count", 505, "int"),
        _required("deleted_files_count", 506, "int"),
        _required("added_rows_count", 512, "long"),
        _required("existing_rows_count", 513, "long"),
        _required("deleted_rows_count", 514, "long"),
        _optional(
            "partitions", 507, {"type": "array", "items": _SUMMARY_SCHEMA, "element-id": 508}
        ),
        _optional("key_metadata", 519, "bytes"),
    ],
}
