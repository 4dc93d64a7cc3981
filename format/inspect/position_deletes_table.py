"""The metadata table `position_deletes`: rows of position delete files, and deletion vectors'."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.arrow.number_view import array_of
from icecomb.format.expressions.column_doubts import ColumnDoubts
from icecomb.format.expressions.expression import AlwaysTrue
from icecomb.format.expressions.manifest_metrics import METRICS, ManifestMetrics
from icecomb.format.expressions.metrics_evaluator import might_match
from icecomb.format.inspect.entry_rows import EntryRows
from icecomb.format.inspect.manifest_choice import choose_manifests, spec_of, weakened
from icecomb.format.inspect.metadata_schema import (
    CONTENT_OFFSET_ID,
    CONTENT_SIZE_ID,
    DELETED_ROW_ID,
    PARTITION,
    position_deletes_schema,
)
from icecomb.format.inspect.metadata_table import (
    BatchRows,
    Part,
    TableRequest,
    TableRows,
    leaf_arrays,
)
from icecomb.format.manifests.columns import ManifestColumns
from icecomb.format.manifests.manifest import (
    DataFile,
    DataFileContent,
    ManifestContent,
    ManifestFile,
)
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.manifests.reader import read_manifest_columns
from icecomb.format.rows.deletes.deletion_vector import VectorReader
from icecomb.format.rows.read.data_file import open_data_file
from icecomb.format.rows.read.row_filter import row_mask
from icecomb.format.rows.values.arrow_projection import Projection
from icecomb.format.rows.values.metadata_columns import (
    DELETE_FILE_PATH,
    DELETE_FILE_POS,
    FILE_PATH,
    SPEC_ID,
)
from icecomb.format.rows.values.partition_union import partition_union
from icecomb.format.spec.arrow_schema import type_to_pyarrow
from icecomb.format.spec.metadata import TableMetadata
from icecomb.format.spec.name_mapping import MappedField, NameMapping
from icecomb.format.spec.schema import Schema, prune, walk
from icecomb.format.spec.snapshot import Snapshot
from icecomb.format.spec.types import StructType
from icecomb.format.storage.file_io import FileIO

_IN_FILE: Final = (DELETE_FILE_PATH.field_id, DELETE_FILE_POS.field_id)
_OF_FILE: Final = {
    SPEC_ID.field_id: "spec_id",
    FILE_PATH.field_id: "file_path",
    CONTENT_OFFSET_ID: "content_offset",
    CONTENT_SIZE_ID: "content_size_in_bytes",
}
"""What `files` calls the columns that all deletes of a file share, by their ids."""
_NAMES: Final = NameMapping(
    tuple(MappedField(f.field_id, (f.name,)) for f in (DELETE_FILE_PATH, DELETE_FILE_POS))
)
_BATCH_ROWS: Final = 1 << 16


@dataclass(frozen=True)
class PositionDeletesTable:
    """The deleted positions of a snapshot, as delete files list them."""

    metadata: TableMetadata
    io: FileIO
    snapshots: Sequence[Snapshot]

    @cached_property
    def schema(self) -> Schema:
        """The columns of the metadata table."""
        return position_deletes_schema(self.metadata)

    def parts(self, request: TableRequest) -> Iterator[Part]:
        """Yield a part for each delete file that can hold a selected row."""
        for snapshot in self.snapshots:
            manifests = [
                manifest
                for manifest in read_manifests(self.io, snapshot)
                if manifest.content is ManifestContent.DELETES and manifest.has_live_files()
            ]
            for manifest in choose_manifests(
                manifests, request.row_filter, self.metadata, self._partition_ids
            ):
                yield from self._files(manifest, request)

    @cached_property
    def _partition_ids(self) -> dict[int, int]:
        """The partition field ids, by the ids of the same fields in this table."""
        column = next((f for f in self.schema.fields if f.name == PARTITION), None)
        if column is None or not isinstance(column.field_type, StructType):
            return {}
        fields = partition_union(self.metadata).fields
        return {
            own.field_id: field.field_id
            for own, field in zip(column.field_type.fields, fields, strict=True)
        }

    def _files(self, manifest: ManifestFile, request: TableRequest) -> Iterator[Part]:
        spec = spec_of(manifest, self.metadata)
        by_bounds = weakened(request.row_filter, _IN_FILE)
        statistics = () if isinstance(by_bounds, AlwaysTrue) else METRICS
        columns = read_manifest_columns(self.io, manifest, statistics, spec=spec)
        rows = self._chosen(columns, request)
        files = columns.data_files(rows)
        partitions = self._constants(columns, pa.array(rows, pa.int64()), request.fields)
        for at, file in enumerate(files):
            yield partial(self._rows, file, request.fields, partitions.slice(at, 1))

    def _chosen(self, columns: ManifestColumns, request: TableRequest) -> list[int]:
        deletes = pc.equal(columns.column("content"), DataFileContent.POSITION_DELETES.value)
        chosen: list[int] = pc.indices_nonzero(pc.and_(columns.live, deletes)).to_pylist()
        known = {*_OF_FILE, *self._partition_ids}
        asked = weakened(request.row_filter, known)
        constants = prune(self.schema, known)
        table = self._constants(columns, pa.array(chosen, pa.int64()), constants)
        by_id = leaf_arrays(BatchRows(constants, table), constants, known)
        mask = row_mask(asked, by_id, len(chosen))
        by_bounds = might_match(
            weakened(request.row_filter, _IN_FILE), ManifestMetrics(columns)
        ).take(pa.array(chosen, pa.int64()))
        keep = pc.and_(mask, by_bounds).to_pylist()
        return [row for row, kept in zip(chosen, keep, strict=True) if kept]

    def _constants(
        self, columns: ManifestColumns, rows: pa.Array, fields: Schema
    ) -> pa.RecordBatch:
        """Return the columns whose values come from the manifest, one row per delete file."""
        spec = spec_of(columns.manifest, self.metadata)
        schema = self.metadata.schema()
        doubted = ColumnDoubts(self.metadata, schema).of(columns)
        entries = EntryRows(columns, spec, schema, rows, doubted)
        arrays = {}
        for field in fields.fields:
            if (name := _OF_FILE.get(field.field_id)) is not None:
                arrays[field] = entries.column(replace(field, name=name))
            elif field.name == PARTITION:
                arrays[field] = entries.partition(field, self._partition_ids)
        names = [field.name for field in arrays]
        return pa.RecordBatch.from_arrays(list(arrays.values()), names)

    def _rows(
        self, file: DataFile, fields: Schema, constants: pa.RecordBatch
    ) -> Iterator[TableRows]:
        if file.is_deletion_vector:
            yield from self._vector_rows(file, fields, constants)
            return
        reader = open_data_file(self.io, file, _NAMES)
        try:
            own = {f.field_id for f in walk(StructType(fields.fields))}
            inside = {*_IN_FILE, DELETED_ROW_ID, *_inside_row(fields)} & own
            read = tuple(prune(fields, inside).fields) or (DELETE_FILE_POS,)
            projection = Projection(read, reader.fields, {})
            for position, batch in reader.batches(
                projection.leaves, reader.row_groups(), _BATCH_ROWS, use_threads=False
            ):
                values = projection.apply(batch, position)
                yield _joined(fields, values, constants)
        finally:
            reader.close()

    def _vector_rows(
        self, file: DataFile, fields: Schema, constants: pa.RecordBatch
    ) -> Iterator[TableRows]:
        positions = VectorReader(self.io).positions(file)
        read = [field for field in fields.fields if field.name not in constants.schema.names]
        for start in range(0, len(positions), _BATCH_ROWS):
            part = positions[start : start + _BATCH_ROWS]
            known = {
                DELETE_FILE_PATH.field_id: pa.repeat(file.referenced_data_file, len(part)),
                DELETE_FILE_POS.field_id: array_of(part),
            }
            arrays = [
                known.get(f.field_id, pa.nulls(len(part), type_to_pyarrow(f.field_type)))
                for f in read or (DELETE_FILE_POS,)
            ]
            names = [field.name for field in read or (DELETE_FILE_POS,)]
            yield _joined(fields, pa.RecordBatch.from_arrays(arrays, names), constants)


def _inside_row(fields: Schema) -> set[int]:
    row = next((f for f in fields.fields if f.field_id == DELETED_ROW_ID), None)
    return set() if row is None else {f.field_id for f in walk(row.field_type)}


def _joined(fields: Schema, values: pa.RecordBatch, constants: pa.RecordBatch) -> BatchRows:
    first = pa.array(np.zeros(values.num_rows, np.int64))
    arrays = [
        constants.column(field.name).take(first)
        if field.name in constants.schema.names
        else values.column(field.name)
        for field in fields.fields
    ]
    names = [field.name for field in fields.fields]
    return BatchRows(fields, pa.RecordBatch.from_arrays(arrays, names))
