"""Writer of manifests of all format versions (spec: Manifests, Sequence Number Inheritance)."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from icecomb.format.avro.container import ContainerWriter, RecordForm
from icecomb.format.avro.schema import avro_schema, plain_schema, to_avro
from icecomb.format.errors import CorruptFileError, SchemaError, ValidationError
from icecomb.format.manifests.manifest import (
    UNASSIGNED_SEQ,
    DataFile,
    DataFileContent,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    PartitionFieldSummary,
    check_data_file,
)
from icecomb.format.manifests.schema import (
    BLOCK_SIZE_IN_BYTES,
    ENTRY_NAMES,
    EXACT_BOUNDS,
    entry_type,
    stored_partition,
)
from icecomb.format.spec.single_value import to_bytes
from icecomb.format.spec.types import (
    DoubleType,
    FloatType,
    PrimitiveType,
    StructType,
)
from icecomb.format.storage.file_system import create_own

if TYPE_CHECKING:
    from icecomb.format.spec.partition import PartitionSpec
    from icecomb.format.spec.schema import Schema
    from icecomb.format.spec.types import NestedField
    from icecomb.format.storage.file_io import FileIO

_ADDED, _EXISTING, _DELETED = (
    ManifestEntryStatus.ADDED,
    ManifestEntryStatus.EXISTING,
    ManifestEntryStatus.DELETED,
)


class EncodedEntry(NamedTuple):
    """An entry as an encoded record, with the values needed for the manifest's description.

    Attributes:
        sequence_number: Data sequence number; None if it is inherited.
        has_exact_bounds: See `DataFile`.
    """

    record: bytes
    status: ManifestEntryStatus
    record_count: int
    sequence_number: int | None
    partition: tuple[Any, ...]
    has_exact_bounds: bool = False


class ManifestWriter:
    """A writer of one manifest, which a snapshot adds.

    Args:
        codec: A value of `write.manifest.compression-codec`.
        level: Compression level; None = the codec's default.
    """

    def __init__(
        self,
        format_version: int,
        spec: PartitionSpec,
        schema: Schema,
        snapshot_id: int,
        *,
        content: ManifestContent = ManifestContent.DATA,
        codec: str = "gzip",
        level: int | None = None,
    ) -> None:
        if format_version == 1 and content is not ManifestContent.DATA:
            raise ValidationError(
                "Format version 1 has no delete files",
                hint="Upgrade the table to format version 2.",
            )
        self._version = format_version
        self._spec = spec
        self._snapshot_id = snapshot_id
        self._content = content
        self._partition = spec.partition_type(schema)
        self._files = dict.fromkeys(ManifestEntryStatus, 0)
        self._rows = dict.fromkeys(ManifestEntryStatus, 0)
        self._min_sequence_number: int | None = None
        self._has_exact_bounds = content is ManifestContent.DATA
        self._summaries = [
            _Summary(field.field_type)
            for field in self._partition.fields
            if isinstance(field.field_type, PrimitiveType)
        ]
        form, record_type = _form(format_version, self._partition)
        metadata = _metadata(format_version, spec, schema, record_type, content)
        self._out = ContainerWriter(form, metadata, codec=codec, level=level)

    def add(self, file: DataFile, sequence_number: int | None = None) -> None:
        """Track a new file.

        Args:
            sequence_number: An earlier data sequence number, for a file that replaces older
                ones; None = that of the commit, inherited.
        """
        inherits = sequence_number is None or sequence_number == UNASSIGNED_SEQ
        number = None if inherits else sequence_number
        self._write(_ADDED, self._snapshot_id, number, None, file)

    def existing(self, entry: ManifestEntry) -> None:
        """Keep a file of an earlier snapshot, with its numbers."""
        self._carry(_EXISTING, entry.snapshot_id, entry)

    def delete(self, entry: ManifestEntry) -> None:
        """Mark a file of an earlier snapshot as deleted in this one."""
        self._carry(_DELETED, self._snapshot_id, entry)

    def add_entry(self, entry: ManifestEntry) -> None:
        """Write an entry unchanged, except for values that an added one inherits when read."""
        if entry.status is _ADDED and entry.snapshot_id in (None, self._snapshot_id):
            self.add(entry.data_file, entry.sequence_number)
        else:
            self._carry(entry.status, entry.snapshot_id, entry)

    def add_encoded(self, entry: EncodedEntry) -> None:
        """Write an entry that `EntryEncoder` made for such a manifest."""
        self._out.add_encoded(entry.record)
        status, sequence_number = entry.status, entry.sequence_number
        self._files[status] += 1
        self._rows[status] += max(entry.record_count, 0)  # below zero stands for an unknown count
        if status is not _DELETED and not entry.has_exact_bounds:
            self._has_exact_bounds = False
        if status is not _DELETED and sequence_number is not None:
            least = self._min_sequence_number
            self._min_sequence_number = (
                sequence_number if least is None else min(least, sequence_number)
            )
        for summary, value in zip(self._summaries, entry.partition, strict=True):
            summary.add(value)

    def size(self) -> int:
        """Return the approximate length so far, in bytes."""
        return self._out.size()

    @property
    def entry_count(self) -> int:
        """The number of entries."""
        return sum(self._files.values())

    def finish(self, io: FileIO, location: str) -> ManifestFile:
        """Write the file; return the manifest, whose sequence number the list assigns."""
        data = self._out.finish({EXACT_BOUNDS: "true"} if self._has_exact_bounds else {})
        create_own(io, location, data)
        least = self._min_sequence_number
        return ManifestFile(
            manifest_path=location,
            manifest_length=len(data),
            partition_spec_id=self._spec.spec_id,
            content=self._content,
            sequence_number=UNASSIGNED_SEQ,
            min_sequence_number=UNASSIGNED_SEQ if least is None else least,
            added_snapshot_id=self._snapshot_id,
            added_files_count=self._files[_ADDED],
            existing_files_count=self._files[_EXISTING],
            deleted_files_count=self._files[_DELETED],
            added_rows_count=self._rows[_ADDED],
            existing_rows_count=self._rows[_EXISTING],
            deleted_rows_count=self._rows[_DELETED],
            partitions=tuple(summary.value() for summary in self._summaries),
        )

    def _carry(
        self, status: ManifestEntryStatus, snapshot_id: int | None, entry: ManifestEntry
    ) -> None:
        if self._version > 1 and entry.sequence_number is None:
            path = entry.data_file.file_path
            raise ValidationError(
                f"File {path!r} has no sequence number to keep",
                hint="The metadata is damaged: roll the table back to an older snapshot.",
                path=path,
            )
        self._write(
            status, snapshot_id, entry.sequence_number, entry.file_sequence_number, entry.data_file
        )

    def _write(
        self,
        status: ManifestEntryStatus,
        snapshot_id: int | None,
        sequence_number: int | None,
        file_sequence_number: int | None,
        file: DataFile,
    ) -> None:
        check_entry(file, self._content, self._spec)
        data_file = file_record(file, self._partition)
        if status is _ADDED or self._content is not ManifestContent.DATA:
            data_file["first_row_id"] = None  # inherited; delete files have none
        record = {"status": status.value, "snapshot_id": snapshot_id, "data_file": data_file}
        if self._version > 1:
            record["sequence_number"] = sequence_number
            record["file_sequence_number"] = file_sequence_number
        encoded = self._out.encode(record)
        partition, exact = file.partition, file.has_exact_bounds
        self.add_encoded(
            EncodedEntry(encoded, status, file.record_count, sequence_number, partition, exact)
        )


def check_entry(file: DataFile, content: ManifestContent, spec: PartitionSpec) -> None:
    """Refuse a file that a manifest of this content and spec cannot track."""
    check_data_file(file)
    problem = None
    if (file.content is DataFileContent.DATA) is not (content is ManifestContent.DATA):
        problem = f"of content {file.content.name} does not belong into a manifest of " + (
            "data files" if content is ManifestContent.DATA else "delete files"
        )
    elif len(file.partition) != len(spec.fields):
        problem = (
            f"has {len(file.partition)} partition values, "
            f"spec {spec.spec_id} has {len(spec.fields)} fields"
        )
    if problem:
        raise ValidationError(
            f"File {file.file_path!r} {problem}",
            hint="Write it to a manifest of its own content and partition spec.",
            path=file.file_path,
        )


def file_record(file: DataFile, partition: StructType) -> dict[str, Any]:
    """Return a file as the `data_file` record of a manifest; `partition` is its partition type."""
    fields = zip(partition.fields, file.partition, strict=True)
    return {
        "content": file.content.value,
        "file_path": file.file_path,
        "file_format": file.file_format.value,
        "partition": {
            f"f{field.field_id}": _partition_value(field, value, file) for field, value in fields
        },
        "record_count": file.record_count,
        "file_size_in_bytes": file.file_size_in_bytes,
        "block_size_in_bytes": BLOCK_SIZE_IN_BYTES,
        "column_sizes": file.column_sizes,
        "value_counts": file.value_counts,
        "null_value_counts": file.null_value_counts,
        "nan_value_counts": file.nan_value_counts,
        "lower_bounds": file.lower_bounds,
        "upper_bounds": file.upper_bounds,
        "key_metadata": file.key_metadata,
        "split_offsets": file.split_offsets,
        "equality_ids": file.equality_ids,
        "sort_order_id": file.sort_order_id,
        "first_row_id": file.first_row_id,
        "referenced_data_file": file.referenced_data_file,
        "content_offset": file.content_offset,
        "content_size_in_bytes": file.content_size_in_bytes,
    }


def _partition_value(field: NestedField, value: Any, file: DataFile) -> Any:
    try:
        return to_avro(field.field_type, value)
    except SchemaError as problem:
        raise ValidationError(
            f"Data file {file.file_path} cannot belong to the partition {field.name}={value}: "
            f"{problem.message}",
            hint="Partition by another transform, or give the column more digits.",
            path=file.file_path,
        ) from problem


def assign_sequence_number(
    manifest: ManifestFile, snapshot_id: int, sequence_number: int
) -> ManifestFile:
    """Return a manifest with the sequence number of this commit, if it has none."""
    if UNASSIGNED_SEQ not in (manifest.sequence_number, manifest.min_sequence_number):
        return manifest
    if manifest.added_snapshot_id != snapshot_id:
        raise ValidationError(
            f"Manifest {manifest.manifest_path} of snapshot {manifest.added_snapshot_id} has no "
            f"sequence number and cannot get that of snapshot {snapshot_id}",
            hint=(
                "Only manifests of the same commit may be without one: read its manifest list"
                " again."
            ),
            path=manifest.manifest_path,
        )
    least = manifest.min_sequence_number
    return replace(
        manifest,
        sequence_number=sequence_number,
        min_sequence_number=sequence_number if least == UNASSIGNED_SEQ else least,
    )


def assign_first_row_ids(
    manifests: Iterable[ManifestFile], next_row_id: int
) -> tuple[list[ManifestFile], int]:
    """Return the manifests of a snapshot with first row ids, and the next row id after them.

    A data manifest without a first row id takes as many ids as it has live rows, even if some of
    its files have ids of their own, as in Iceberg Java (spec: First Row ID Assignment).
    """
    out: list[ManifestFile] = []
    taken: list[tuple[int, int, str]] = []
    first = next_row_id
    for manifest in manifests:
        if manifest.content is not ManifestContent.DATA:
            out.append(manifest)
            continue
        rows = (manifest.added_rows_count or 0) + (manifest.existing_rows_count or 0)
        if manifest.first_row_id is None:
            out.append(replace(manifest, first_row_id=next_row_id))
            next_row_id += rows
        else:
            out.append(manifest)
            if rows:
                end = manifest.first_row_id + rows
                taken.append((manifest.first_row_id, end, manifest.manifest_path))
    taken.sort()
    for (_, end, path), (start, _, other) in pairwise((*taken, (first, first, "new rows"))):
        if end > start:
            raise CorruptFileError(
                f"{path} and {other} have the same row ids, from {start} on",
                hint="The snapshot is damaged: roll the table back to an older one.",
                path=path,
            )
    return out, next_row_id


class _Summary:
    """The running summary of one partition field."""

    def __init__(self, field_type: PrimitiveType) -> None:
        self._type = field_type
        self._floating = isinstance(field_type, (FloatType, DoubleType))
        self._null = self._nan = False
        self._bounds: tuple[Any, Any] | None = None

    def add(self, value: Any) -> None:
        if value is None:
            self._null = True
        elif self._floating and math.isnan(value):
            self._nan = True
        elif self._bounds is None:
            self._bounds = (value, value)
        else:
            low, high = self._bounds
            if self._order(value) < self._order(low):
                self._bounds = (value, high)
            elif self._order(value) > self._order(high):
                self._bounds = (low, value)

    def value(self) -> PartitionFieldSummary:
        if self._bounds is None:
            return PartitionFieldSummary(self._null, self._nan)
        low, high = (to_bytes(self._type, bound) for bound in self._bounds)
        return PartitionFieldSummary(self._null, self._nan, low, high)

    def _order(self, value: Any) -> Any:
        # the specification's order of floats has -0.0 before 0.0
        return (value, math.copysign(1.0, value)) if self._floating else value


@lru_cache
def _form(format_version: int, partition: StructType) -> tuple[RecordForm, str]:
    """Return the form of a manifest's records, and their Iceberg type as JSON."""
    stored = avro_schema(entry_type(format_version, stored_partition(partition)), "manifest_entry")
    struct = entry_type(format_version, partition)
    form = RecordForm.of(stored, plain_schema(stored, ENTRY_NAMES))
    return form, _json({**struct.to_json(), "schema-id": 0})


def _metadata(
    format_version: int,
    spec: PartitionSpec,
    schema: Schema,
    record_type: str,
    content: ManifestContent,
) -> dict[str, str]:
    metadata = {
        "schema": _json(schema.to_json()),
        "partition-spec": _json([field.to_json() for field in spec.fields]),
        "partition-spec-id": str(spec.spec_id),
        "format-version": str(format_version),
        "iceberg.schema": record_type,
    }
    if format_version > 1:
        metadata["content"] = "data" if content is ManifestContent.DATA else "deletes"
    return metadata


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
