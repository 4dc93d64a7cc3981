"""The metadata table `position_deletes`: the rows of a snapshot's position delete files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.expressions.column_doubts import ColumnDoubts
from icecomb.format.expressions.expression import AlwaysTrue
from icecomb.format.expressions.manifest_metrics import METRICS, ManifestMetrics
from icecomb.format.expressions.metrics_evaluator import might_match
from icecomb.format.inspect.entry_rows import EntryRows
from icecomb.format.inspect.manifest_choice import choose_manifests, spec_of, weakened
from icecomb.format.inspect.metadata_schema import (
    DELETED_ROW_ID,
    PARTITION,
    position_deletes_schema,
)
from icecomb.format.inspect.metadata_table import BatchRows, Part, Request, Rows, leaf_arrays
from icecomb.format.manifests.columns import ManifestColumns
from icecomb.format.manifests.manifest import (
    DataFile,
    DataFileContent,
    ManifestContent,
    ManifestFile,
)
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.manifests.reader import read_manifest_columns
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
from icecomb.format.spec.metadata import TableMetadata
from icecomb.format.spec.name_mapping import MappedField, NameMapping
from icecomb.format.spec.schema import Schema, prune, walk
from icecomb.format.spec.snapshot import Snapshot
from icecomb.format.spec.types import NestedField, StructType
from icecomb.format.storage.file_io import FileIO

_IN_FILE: Final = (DELETE_FILE_PATH.field_id, DELETE_FILE_POS.field_id)
_OF_FILE: Final = (SPEC_ID.field_id, FILE_PATH.field_id)
_NAMES: Final = NameMapping(
    tuple(MappedField(f.field_id, (f.name,)) for f in (DELETE_FILE_PATH, DELETE_FILE_POS))
)
_BATCH_ROWS: Final = 1 << 16


@dataclass(frozen=True)
class PositionDeletesTable:
    """The deleted positions of a snapshot, as delete files list them.

    Args:
        metadata: The table metadata.
        io: File system that holds the table.
        snapshots: The snapshot; empty if there is none.
    """

    metadata: TableMetadata
    io: FileIO
    snapshots: Sequence[Snapshot]

    @cached_property
    def schema(self) -> Schema:
        """The columns of the metadata table."""
        return position_deletes_schema(self.metadata)

    def parts(self, request: Request) -> Iterator[Part]:
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

    def _files(self, manifest: ManifestFile, request: Request) -> Iterator[Part]:
        spec = spec_of(manifest, self.metadata)
        by_bounds = weakened(request.row_filter, _IN_FILE)
        statistics = () if isinstance(by_bounds, AlwaysTrue) else METRICS
        columns = read_manifest_columns(self.io, manifest, statistics, spec=spec)
        rows = self._chosen(columns, request)
        files = columns.data_files(rows)
        partitions = self._constants(columns, pa.array(rows, pa.int64()), request.fields)
        for at, file in enumerate(files):
            yield partial(self._rows, file, request.fields, partitions.slice(at, 1))

    def _chosen(self, columns: ManifestColumns, request: Request) -> list[int]:
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
            if field.field_id == FILE_PATH.field_id:
                arrays[field] = entries.column(NestedField(100, "file_path", field.field_type))
            elif field.field_id == SPEC_ID.field_id:
                arrays[field] = entries.column(field)
            elif field.name == PARTITION:
                arrays[field] = entries.partition(field, self._partition_ids)
        names = [field.name for field in arrays]
        return pa.RecordBatch.from_arrays(list(arrays.values()), names)

    def _rows(self, file: DataFile, fields: Schema, constants: pa.RecordBatch) -> Iterator[Rows]:
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
