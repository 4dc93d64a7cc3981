"""Copying of manifest entries to other manifests without Python objects for their content.

A commit that removes one file rewrites the other entries of its manifest, and rewriting manifests
moves all entries of a table: their columns are encoded as they were decoded, whole arrays at a
time. Only the fields of the entry itself, its status and numbers, may change.
"""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.arrow.array_build import FALSE, TRUE, scalar
from icecomb.format.arrow.number_view import array_of, mask_of, numbers_of, truths_of
from icecomb.format.avro.arrow_encoder import encode_rows
from icecomb.format.errors import CorruptFileError, UnsupportedError, ValidationError
from icecomb.format.manifests.columns import LIST_COLUMNS, ManifestColumns
from icecomb.format.manifests.manifest import (
    UNASSIGNED_SEQ,
    DataFileContent,
    ManifestContent,
    ManifestEntryStatus,
)
from icecomb.format.manifests.schema import (
    BLOCK_SIZE_IN_BYTES,
    STATISTICS,
    data_file_type,
    entry_type,
    stored_partition,
)
from icecomb.format.manifests.writer import EncodedEntry, check_entry
from icecomb.format.spec.transform import UnknownTransform
from icecomb.format.spec.types import (
    BinaryType,
    DoubleType,
    FloatType,
    IcebergType,
    NestedField,
    StructType,
)

if TYPE_CHECKING:
    from icecomb.format.spec.partition import PartitionSpec
    from icecomb.format.spec.schema import Schema

Statuses = npt.NDArray[np.int32]

_STATUSES = {status.value: status for status in ManifestEntryStatus}


class EntryEncoder:
    """An encoder of entries of one partition spec for the manifests of one snapshot."""

    def __init__(
        self,
        format_version: int,
        spec: PartitionSpec,
        schema: Schema,
        snapshot_id: int,
        content: ManifestContent = ManifestContent.DATA,
    ) -> None:
        self._version = format_version
        self._spec = spec
        self._snapshot_id = snapshot_id
        self._content = content
        partition = stored_partition(spec.partition_type(schema))
        self._partition = partition.fields
        self._entry_fields = entry_type(format_version, partition).fields[:-1]
        self._file_fields = data_file_type(format_version, partition).fields

    def encode(
        self, columns: ManifestColumns, rows: npt.NDArray[np.int64], statuses: Statuses
    ) -> list[EncodedEntry]:
        """Encode entries, by index, of a manifest with all statistics, in their new statuses.

        Existing entries keep their snapshot, numbers and row ids; deleted ones get this snapshot's
        id, and so do added ones, which inherit their numbers again unless they were given one.
        """
        if not len(rows):
            return []
        chosen = array_of(rows)
        entry = self._entry_columns(columns, chosen, statuses)
        self._check(columns, rows, entry["sequence_number"], statuses)
        fields: list[NestedField] = []
        arrays: list[pa.Array] = []
        for field in self._entry_fields:
            fields.append(field)
            arrays.append(entry[field.name])
        for field in self._file_fields:
            if isinstance(field.field_type, StructType):
                fields += self._partition
                arrays += [
                    _as_stored(part.field_type, columns.partition(at).take(chosen))
                    for at, part in enumerate(self._partition)
                ]
                self._check_unknown(columns)
            else:
                fields.append(field)
                arrays.append(_file_column(columns, field.name, chosen))
                if field.name == "first_row_id":
                    arrays[-1] = self._first_row_ids(arrays[-1], statuses)
        for field, array in zip(fields, arrays, strict=True):
            if field.required and array.null_count:
                raise _missing(columns, int(rows[_first_null(array)]), field.name)
        records = encode_rows(fields, arrays, len(rows)).array()
        return list(
            map(
                EncodedEntry,
                records.to_pylist(),
                map(_STATUSES.__getitem__, statuses.tolist()),
                columns.column("record_count").take(chosen).to_pylist(),
                entry["sequence_number"].to_pylist(),
                columns.partition_tuples(rows.tolist()),
                repeat(columns.has_exact_bounds),
            )
        )

    def _entry_columns(
        self, columns: ManifestColumns, chosen: pa.Array, statuses: Statuses
    ) -> dict[str, pa.Array]:
        old = {
            name: columns.column(name).take(chosen)
            for name in ("snapshot_id", "sequence_number", "file_sequence_number")
        }
        added = mask_of(statuses == ManifestEntryStatus.ADDED.value)
        existing = mask_of(statuses == ManifestEntryStatus.EXISTING.value)
        own, inherited = scalar(self._snapshot_id, pa.int64()), scalar(None, pa.int64())
        unassigned = pc.equal(old["sequence_number"], scalar(UNASSIGNED_SEQ, pa.int64()))
        inherits = pc.and_(added, unassigned.fill_null(TRUE))
        return {
            "status": array_of(statuses).cast(pa.int32()),
            "snapshot_id": pc.if_else(existing, old["snapshot_id"], own),
            "sequence_number": pc.if_else(inherits, inherited, old["sequence_number"]),
            "file_sequence_number": pc.if_else(added, inherited, old["file_sequence_number"]),
        }

    def _check_unknown(self, columns: ManifestColumns) -> None:
        """Refuse values of an unknown transform that are not text, as the specification has it."""
        for at, field in enumerate(self._spec.fields):
            kind = columns.partition(at).type
            if isinstance(field.transform, UnknownTransform) and not pa.types.is_large_string(kind):
                location = columns.manifest.manifest_path
                raise UnsupportedError(
                    f"Cannot copy entries of {location}: its partition field {field.name!r} has "
                    f"the unknown transform {field.transform}, and values of type {kind}",
                    hint="Change the table by the engine that partitioned it.",
                    path=location,
                )

    def _first_row_ids(self, ids: pa.Array, statuses: Statuses) -> pa.Array:
        if self._content is not ManifestContent.DATA:
            return pa.nulls(len(ids), ids.type)
        added = mask_of(statuses == ManifestEntryStatus.ADDED.value)
        return pc.if_else(added, scalar(None, ids.type), ids)

    def _check(
        self,
        columns: ManifestColumns,
        rows: npt.NDArray[np.int64],
        sequence_numbers: pa.Array,
        statuses: Statuses,
    ) -> None:
        chosen = array_of(rows)
        if self._version > 1:
            unnumbered = _mask(sequence_numbers.is_null())
            unnumbered &= statuses != ManifestEntryStatus.ADDED.value
            if unnumbered.any():
                path = columns.column("file_path")[int(rows[unnumbered][0])].as_py()
                raise ValidationError(
                    f"File {path!r} has no sequence number to keep",
                    hint="The metadata is damaged: roll the table back to an older snapshot.",
                    path=path,
                )
        content = columns.column("content").take(chosen)
        is_data = _mask(pc.equal(content, scalar(DataFileContent.DATA.value, pa.int32())))
        equality = scalar(DataFileContent.EQUALITY_DELETES.value, pa.int32())
        named = pc.list_value_length(columns.column("equality_ids").take(chosen))
        suspect = is_data != (self._content is ManifestContent.DATA)
        suspect |= _mask(pc.equal(content, equality)) != (_numbers(named) > 0)
        suspect |= _numbers(pc.binary_length(columns.column("file_path").take(chosen))) == 0
        # unknown counts, negative in old imports, are kept
        added = statuses == ManifestEntryStatus.ADDED.value
        for name in ("record_count", "file_size_in_bytes"):
            suspect |= added & (_numbers(columns.column(name).take(chosen)) < 0)
        if len(columns.partition_columns) != len(self._partition):
            suspect[:] = True
        for file in columns.data_files(rows[suspect].tolist()):
            check_entry(file, self._content, self._spec)


def _file_column(columns: ManifestColumns, name: str, chosen: pa.Array) -> pa.Array:
    if name == "block_size_in_bytes":
        return pa.repeat(scalar(BLOCK_SIZE_IN_BYTES, pa.int64()), len(chosen))
    array = columns.column(name).take(chosen)
    if name == "file_format":
        return pc.utf8_upper(array)
    if name in STATISTICS:
        inside = [array.values.field("key"), array.values.field("value")]
    else:
        inside = [array.values] if name in LIST_COLUMNS else []
    for values in inside:
        if values.null_count:
            ends = np.asarray(array.offsets)[1:]
            row = int(np.searchsorted(ends, _first_null(values), side="right"))
            raise _missing(columns, chosen[row].as_py(), name)
    return array


def _as_stored(kind: IcebergType, array: pa.Array) -> pa.Array:
    """Convert partition values to the spec's type: the source column may have been promoted."""
    if isinstance(kind, FloatType):
        return array.cast(pa.float32())
    if isinstance(kind, DoubleType):
        return array.cast(pa.float64())
    return array.cast(pa.large_binary()) if isinstance(kind, BinaryType) else array


def _first_null(array: pa.Array) -> int:
    return int(pc.index(array.is_null(), scalar(True, pa.bool_())).as_py())


def _missing(columns: ManifestColumns, row: int, name: str) -> CorruptFileError:
    location = columns.manifest_of(row).manifest_path
    return CorruptFileError(
        f"{location} holds an entry without a value of {name}, which every entry must have",
        hint="Read an older snapshot, or restore the file from a backup.",
        path=location,
    )


def _mask(array: pa.Array) -> npt.NDArray[np.bool_]:
    return truths_of(array.fill_null(FALSE) if array.null_count else array)


def _numbers(array: pa.Array) -> Any:
    return numbers_of(array.fill_null(scalar(0, array.type)) if array.null_count else array)
