"""The list of a snapshot's manifests: one Avro file a snapshot (spec: Manifest Lists)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from icecomb.format.avro.avro_container import (
    ContainerWriter,
    parse_container,
    plain_form,
    read_records,
)
from icecomb.format.avro.avro_schema import avro_schema, plain_schema
from icecomb.format.errors import CorruptFileError, ValidationError
from icecomb.format.manifests.manifest import ManifestContent, ManifestFile, PartitionFieldSummary
from icecomb.format.manifests.manifest_schema import MANIFEST_FILE_NAMES, manifest_file_type

if TYPE_CHECKING:
    from icecomb.format.file_io import FileIO
    from icecomb.format.snapshot import Snapshot

_REQUIRED = ("manifest_path", "manifest_length")
_COUNTS = (
    "added_files_count",
    "existing_files_count",
    "deleted_files_count",
    "added_rows_count",
    "existing_rows_count",
    "deleted_rows_count",
)


@dataclass(frozen=True, slots=True)
class ManifestList:
    """A manifest list that was written: what stands in it, and how.

    Attributes:
        format_version: 1 or 2.
        manifests: All manifests of the snapshot, in the order of the list.
        records: Their records, encoded.
    """

    format_version: int
    manifests: tuple[ManifestFile, ...]
    records: tuple[bytes, ...]


def read_manifests(io: FileIO, snapshot: Snapshot) -> tuple[ManifestFile, ...]:
    """The manifests of a snapshot, in the order of its list.

    A snapshot of format version 1 may name its manifests itself; then what a list would say about
    each is taken from the manifest's own file.
    """
    if snapshot.manifest_list:
        return read_manifest_list(io, snapshot.manifest_list)
    return tuple(
        _describe(io, location, snapshot.snapshot_id) for location in snapshot.manifests or ()
    )


def read_manifest_list(io: FileIO, location: str) -> tuple[ManifestFile, ...]:
    """Read a manifest list.

    Raises:
        CorruptFileError: The file is no manifest list; the message names it.
    """
    container = parse_container(io.read(location), location)
    records = read_records(container, plain_form(container, MANIFEST_FILE_NAMES))
    return tuple(_manifest_file(record, location) for record in records)


def write_manifest_list(
    io: FileIO,
    location: str,
    manifests: Iterable[ManifestFile],
    *,
    format_version: int,
    snapshot_id: int,
    parent_snapshot_id: int | None,
    sequence_number: int = 0,
    codec: str = "gzip",
    parent: ManifestList | None = None,
) -> ManifestList:
    """Write a manifest list.

    Args:
        io: Creates the file.
        location: Its name.
        manifests: All manifests of the snapshot, with their sequence numbers assigned.
        format_version: 1 or 2.
        snapshot_id: The snapshot.
        parent_snapshot_id: Its parent, if any.
        sequence_number: That of the commit; format version 1 has none.
        codec: A value of `write.manifest.compression-codec`.
        parent: The list that `manifests` was made from; records in there are not encoded again.

    Raises:
        ValidationError: A manifest of deletes in format version 1, or one without a number.
    """
    struct = manifest_file_type(format_version)
    schema = avro_schema(struct, "manifest_file")
    metadata = {
        "snapshot-id": str(snapshot_id),
        "parent-snapshot-id": "null" if parent_snapshot_id is None else str(parent_snapshot_id),
        "format-version": str(format_version),
        "iceberg.schema": json.dumps({**struct.to_json(), "schema-id": 0}, separators=(",", ":")),
    }
    if format_version > 1:
        metadata["sequence-number"] = str(sequence_number)
    out = ContainerWriter(schema, plain_schema(schema, MANIFEST_FILE_NAMES), metadata, codec=codec)
    manifests = tuple(manifests)
    known = _encoded(parent, format_version)
    records = []
    for manifest in manifests:
        record = known.get(id(manifest))
        if record is None:
            record = out.add(_record(manifest, format_version))
        else:
            out.add_encoded(record)
        records.append(record)
    io.create(location, out.finish())
    return ManifestList(format_version, manifests, tuple(records))


def _encoded(parent: ManifestList | None, format_version: int) -> dict[int, bytes]:
    """The records of a list by the identity of their manifests, which is cheaper than equality."""
    if parent is None or parent.format_version != format_version:
        return {}
    return dict(zip(map(id, parent.manifests), parent.records, strict=True))


def _record(manifest: ManifestFile, format_version: int) -> dict[str, Any]:
    if format_version == 1 and manifest.content is not ManifestContent.DATA:
        raise ValidationError(f"{manifest.manifest_path}: format version 1 has no delete files")
    if manifest.sequence_number < 0 or manifest.min_sequence_number < 0:
        raise ValidationError(f"{manifest.manifest_path} has no sequence number yet")
    counts: dict[str, Any] = {name: getattr(manifest, name) for name in _COUNTS}
    if format_version > 1 and None in counts.values():
        missing = next(name for name, count in counts.items() if count is None)
        raise ValidationError(
            f"{manifest.manifest_path} states no {missing}, which format version 2 requires"
        )
    partitions = manifest.partitions
    return {
        "manifest_path": manifest.manifest_path,
        "manifest_length": manifest.manifest_length,
        "partition_spec_id": manifest.partition_spec_id,
        "content": manifest.content.value,
        "sequence_number": manifest.sequence_number,
        "min_sequence_number": manifest.min_sequence_number,
        "added_snapshot_id": manifest.added_snapshot_id,
        **counts,
        "partitions": None if partitions is None else [_summary_record(s) for s in partitions],
        "key_metadata": manifest.key_metadata,
    }


def _summary_record(summary: PartitionFieldSummary) -> dict[str, Any]:
    return {
        "contains_null": summary.contains_null,
        "contains_nan": summary.contains_nan,
        "lower_bound": summary.lower_bound,
        "upper_bound": summary.upper_bound,
    }


def _manifest_file(record: Mapping[str, Any], location: str) -> ManifestFile:
    for name in _REQUIRED:
        if record.get(name) is None:
            raise CorruptFileError(
                f"{location} is an Avro file but no manifest list: no {name}", path=location
            )
    partitions = record.get("partitions")
    try:
        return ManifestFile(
            manifest_path=record["manifest_path"],
            manifest_length=record["manifest_length"],
            partition_spec_id=record.get("partition_spec_id") or 0,
            content=ManifestContent(record.get("content") or 0),
            sequence_number=record.get("sequence_number") or 0,
            min_sequence_number=record.get("min_sequence_number") or 0,
            added_snapshot_id=record.get("added_snapshot_id"),
            **{name: record.get(name) for name in _COUNTS},
            partitions=None if partitions is None else tuple(map(_summary, partitions)),
            key_metadata=record.get("key_metadata"),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptFileError(
            f"{location} holds a manifest that cannot be read: {error}", path=location
        ) from error


def _summary(record: Mapping[str, Any]) -> PartitionFieldSummary:
    return PartitionFieldSummary(
        bool(record["contains_null"]),
        record.get("contains_nan"),
        record.get("lower_bound"),
        record.get("upper_bound"),
    )


def _describe(io: FileIO, location: str, snapshot_id: int) -> ManifestFile:
    from icecomb.format.manifests.manifest_decoder import count_manifest

    data = io.read(location)
    spec_id = parse_container(data, location).text("partition-spec-id")
    manifest = ManifestFile(
        manifest_path=location,
        manifest_length=len(data),
        partition_spec_id=int(spec_id) if spec_id else 0,
        added_snapshot_id=snapshot_id,
    )
    return count_manifest(data, manifest)
