"""The list of a snapshot's manifests: one Avro file per snapshot (spec: Manifest Lists)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeVar

from icecomb.format.avro.container import (
    AvroContainer,
    ContainerWriter,
    RecordForm,
    parse_container,
    plain_form,
)
from icecomb.format.avro.records import read_records
from icecomb.format.avro.schema import avro_schema, plain_schema
from icecomb.format.errors import CorruptFileError, ValidationError, reason_of
from icecomb.format.input_limit import whole_number
from icecomb.format.manifests.manifest import ManifestContent, ManifestFile, PartitionFieldSummary
from icecomb.format.manifests.schema import MANIFEST_FILE_NAMES, manifest_file_type
from icecomb.format.storage.file_system import create_own
from icecomb.format.storage.location import check_local_names

if TYPE_CHECKING:
    from icecomb.format.spec.snapshot import Snapshot
    from icecomb.format.storage.file_io import FileIO

T = TypeVar("T")

_BLOCK_BYTES: Final = 16_000
"""Encoded size of a block: cheap for a commit to compress, yet large enough to compress well."""
_ADDED: Final = ("added-data-files", "added-delete-files")
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
class ListBlock:
    """The manifests in one block of a list's Avro file, as encoded and as compressed records.

    Attributes:
        is_full: Whether no more records will be added.
    """

    manifests: tuple[ManifestFile, ...]
    records: tuple[bytes, ...]
    packed: bytes
    is_full: bool


@dataclass(frozen=True, slots=True)
class ManifestList:
    """A manifest list that was written.

    New manifests come first and blocks are filled from the end: the next commit compresses only the
    first block again and copies the others.
    """

    format_version: int
    codec: str
    blocks: tuple[ListBlock, ...]

    def manifests(self) -> list[ManifestFile]:
        """Return all manifests of the snapshot, in the order of the list."""
        return [manifest for block in self.blocks for manifest in block.manifests]

    def count(self) -> int:
        """Return the number of manifests."""
        return sum(len(block.manifests) for block in self.blocks)


def read_manifests(
    io: FileIO, snapshot: Snapshot, known: Container[str] = ()
) -> tuple[ManifestFile, ...]:
    """Read the manifests of a snapshot, without `known` ones, in the order of its list.

    A snapshot of format version 1 may name its manifests itself; their descriptions are then taken
    from the manifests' own files.
    """
    if snapshot.manifest_list:
        return read_manifest_list(io, snapshot, known)
    return tuple(
        _describe(io, location, snapshot.snapshot_id)
        for location in snapshot.manifests or ()
        if location not in known
    )


def read_manifest_list(
    io: FileIO, snapshot: Snapshot, known: Container[str] = (), data: bytes | None = None
) -> tuple[ManifestFile, ...]:
    """Read the manifests in the list of a snapshot; see `read_manifests`.

    An invalid list is read once more, as a proxy or a cache may have responded with another file or
    a page of its own; the second result is final.
    """
    location = str(snapshot.manifest_list)
    data = io.read(location) if data is None else data
    try:
        found = decode_manifest_list(parse_manifest_list(data, snapshot), known)
    except CorruptFileError:
        found = decode_manifest_list(parse_manifest_list(io.read(location), snapshot), known)
    check_local_names(io, location, [manifest.manifest_path for manifest in found])
    return found


def read_each_list(
    io: FileIO, snapshots: Iterable[Snapshot], read: Callable[[Snapshot], T]
) -> Iterator[T]:
    """Yield the result of `read`, which runs in threads of `FileIO.each`, for each snapshot."""
    chosen = list(snapshots)
    location = next((one.manifest_list for one in chosen if one.manifest_list), None)
    return map(read, chosen) if location is None else io.each(location, read, chosen)


def parse_manifest_list(data: bytes, snapshot: Snapshot) -> AvroContainer:
    """Parse the list of a snapshot and check that it belongs to the snapshot.

    All known writers state the snapshot in the header: the response of a store or a proxy to
    another request would hide the snapshot's files from an expiration or a search for orphans.
    """
    location = str(snapshot.manifest_list)
    container = parse_container(data, location)
    stated = container.text("snapshot-id")
    if whole_number(stated or "") not in {None, snapshot.snapshot_id}:
        raise CorruptFileError(
            f"{location} was read as the manifest list of snapshot {stated}, where the table"
            f" names it for snapshot {snapshot.snapshot_id}",
            hint="Try again: a proxy or a cache may have responded with another file."
            " If that fails, restore the file from a backup, or read another snapshot.",
            path=location,
        )
    counts = (snapshot.summary.get(key, "") for key in _ADDED)
    added = sum(int(count) for count in counts if re.fullmatch("[0-9]{1,18}", count))
    if added and not container.record_count:
        raise CorruptFileError(
            f"{location} was read as an empty manifest list, but the snapshot says that it added"
            f" files ({added})",
            hint="Try again: a proxy may have truncated the response."
            " If that fails, restore the file from a backup, or read another snapshot.",
            path=location,
        )
    return container


def decode_manifest_list(
    container: AvroContainer, known: Container[str] = ()
) -> tuple[ManifestFile, ...]:
    """Decode a manifest list; see `read_manifests`."""
    records = read_records(container, plain_form(container, MANIFEST_FILE_NAMES))
    return tuple(
        manifest_of(record, container.location)
        for record in records
        if record.get("manifest_path") not in known
    )


def write_manifest_list(
    io: FileIO,
    location: str,
    manifests: Iterable[ManifestFile],
    *,
    format_version: int,
    snapshot_id: int,
    parent_snapshot_id: int | None,
    sequence_number: int = 0,
    first_row_id: int = 0,
    codec: str = "gzip",
    parent: ManifestList | None = None,
) -> ManifestList:
    """Write a manifest list.

    Args:
        manifests: All manifests of the snapshot, with their sequence numbers and first row ids
            assigned.
        sequence_number: Sequence number of the commit; format version 1 has none.
        first_row_id: The table's next row id before the commit; format version 3 only.
        codec: A value of `write.manifest.compression-codec`.
        parent: The list that `manifests` was derived from, whose records and blocks are reused.
    """
    form, record_type = _form(format_version)
    metadata = {
        "snapshot-id": str(snapshot_id),
        "parent-snapshot-id": "null" if parent_snapshot_id is None else str(parent_snapshot_id),
        "format-version": str(format_version),
        "iceberg.schema": record_type,
    }
    if format_version > 1:
        metadata["sequence-number"] = str(sequence_number)
    if format_version > 2:
        metadata["first-row-id"] = str(first_row_id)
    out = ContainerWriter(form, metadata, codec=codec)
    manifests = tuple(manifests)
    reusable: tuple[ListBlock, ...] = ()
    if parent is not None and (parent.format_version, parent.codec) == (format_version, codec):
        reusable = parent.blocks
    kept = _kept_blocks(reusable, manifests)
    fresh = manifests[: len(manifests) - sum(len(block.manifests) for block in kept)]
    # by identity, which is cheaper than equality; a block holds on to its manifests
    known = {
        id(manifest): record
        for block in reusable[: len(reusable) - len(kept)]
        for manifest, record in zip(block.manifests, block.records, strict=True)
    }
    records = [known.get(id(m)) or out.encode(_record(m, format_version)) for m in fresh]
    blocks = (*_new_blocks(out, fresh, records), *kept)
    for block in blocks:
        out.add_block(len(block.manifests), block.packed)
    create_own(io, location, out.finish())
    return ManifestList(format_version, codec, blocks)


@cache
def _form(format_version: int) -> tuple[RecordForm, str]:
    """Return the form of a list's records, and their Iceberg type as JSON."""
    struct = manifest_file_type(format_version)
    schema = avro_schema(struct, "manifest_file")
    text = json.dumps({**struct.to_json(), "schema-id": 0}, separators=(",", ":"))
    return RecordForm.of(schema, plain_schema(schema, MANIFEST_FILE_NAMES)), text


def _kept_blocks(
    blocks: Sequence[ListBlock], manifests: tuple[ManifestFile, ...]
) -> Sequence[ListBlock]:
    """Return the full blocks at the end that hold the last of these manifests."""
    end = len(manifests)
    for number in range(len(blocks), 0, -1):
        block = blocks[number - 1]
        start = end - len(block.manifests)
        if not block.is_full or start < 0 or manifests[start:end] != block.manifests:
            return blocks[number:]
        end = start
    return blocks


def _new_blocks(
    out: ContainerWriter, manifests: tuple[ManifestFile, ...], records: Sequence[bytes]
) -> list[ListBlock]:
    """Pack these manifests into blocks, filled from the last one on."""
    blocks: list[ListBlock] = []
    end, size = len(records), 0
    for start in range(end - 1, -1, -1):
        size += len(records[start])
        if size >= _BLOCK_BYTES or start == 0:
            part = tuple(records[start:end])
            packed = out.pack(part)
            blocks.append(ListBlock(manifests[start:end], part, packed, size >= _BLOCK_BYTES))
            end, size = start, 0
    return blocks[::-1]


def _record(manifest: ManifestFile, format_version: int) -> dict[str, Any]:
    if format_version == 1 and manifest.content is not ManifestContent.DATA:
        raise ValidationError(
            f"{manifest.manifest_path}: format version 1 has no delete files",
            hint="Upgrade the table to format version 2.",
            path=manifest.manifest_path,
        )
    if manifest.sequence_number < 0 or manifest.min_sequence_number < 0:
        raise ValidationError(
            f"{manifest.manifest_path} has no sequence number yet",
            hint="Give it the number of its snapshot by assign_sequence_number.",
            path=manifest.manifest_path,
        )
    counts: dict[str, Any] = {name: getattr(manifest, name) for name in _COUNTS}
    if format_version > 1 and None in counts.values():
        missing = next(name for name, count in counts.items() if count is None)
        raise ValidationError(
            f"{manifest.manifest_path} states no {missing}, which format version 2 requires",
            hint="Count its entries first, as with_counts does.",
            path=manifest.manifest_path,
        )
    is_data = manifest.content is ManifestContent.DATA
    if format_version > 2 and is_data and manifest.first_row_id is None:
        raise ValidationError(
            f"{manifest.manifest_path} has no first row id yet",
            hint="Give it one by assign_first_row_ids.",
            path=manifest.manifest_path,
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
        "first_row_id": manifest.first_row_id if is_data else None,
    }


def _summary_record(summary: PartitionFieldSummary) -> dict[str, Any]:
    return {
        "contains_null": summary.contains_null,
        "contains_nan": summary.contains_nan,
        "lower_bound": summary.lower_bound,
        "upper_bound": summary.upper_bound,
    }


def manifest_of(record: Mapping[str, Any], location: str) -> ManifestFile:
    """Return the manifest that a record of a list, by `MANIFEST_FILE_NAMES`, describes."""
    for name in _REQUIRED:
        if record.get(name) is None:
            raise CorruptFileError(
                f"{location} is an Avro file but not a manifest list: no {name}",
                hint="Check that the location is right; if so, read an older snapshot.",
                path=location,
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
            first_row_id=record.get("first_row_id"),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptFileError(
            f"{location} holds a manifest that cannot be read: {reason_of(error)}",
            hint="Read an older snapshot, or restore the file from a backup.",
            path=location,
        ) from error


def _summary(record: Mapping[str, Any]) -> PartitionFieldSummary:
    return PartitionFieldSummary(
        bool(record["contains_null"]),
        record.get("contains_nan"),
        record.get("lower_bound"),
        record.get("upper_bound"),
    )


def _describe(io: FileIO, location: str, snapshot_id: int) -> ManifestFile:
    from icecomb.format.manifests.decoder import count_manifest

    data = io.read(location)
    spec_id = parse_container(data, location).text("partition-spec-id")
    manifest = ManifestFile(
        manifest_path=location,
        manifest_length=len(data),
        partition_spec_id=int(spec_id) if spec_id else 0,
        added_snapshot_id=snapshot_id,
    )
    return count_manifest(data, manifest)
