"""Plans as Arrow batches, for engines: large plans need no Python object for each file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.expressions.column_doubts import ColumnDoubts
from icecomb.format.expressions.expression import AlwaysTrue, BooleanExpression
from icecomb.format.expressions.forms.json_form import to_json
from icecomb.format.manifests.manifest import DataFile, FileFormat
from icecomb.format.rows.values.partition_union import partition_union, union_columns
from icecomb.format.rows.values.scan_task import MOST_PARTS, SPLITTABLE
from icecomb.format.scan.scan_planner import ScanPlanner, Selected
from icecomb.format.spec.arrow_schema import type_to_pyarrow

if TYPE_CHECKING:
    from icecomb.format.manifests.manifest import ManifestFile
    from icecomb.format.scan.delete_index import DeleteFileIndex
    from icecomb.format.spec.metadata import TableMetadata

_Numbers = npt.NDArray[np.int64]

MOST_FILES: Final = 1 << 15
"""The maximum number of files in a batch."""
MOST_ROWS: Final = 1 << 20
"""The number of rows from which a batch is divided; parts of one file stay together."""
_DELETE_FILES: Final = pa.schema(
    [
        pa.field("content", pa.int32(), nullable=False),
        pa.field("file_path", pa.string(), nullable=False),
        pa.field("file_format", pa.string(), nullable=False),
        pa.field("spec_id", pa.int32(), nullable=False),
        pa.field("record_count", pa.int64(), nullable=False),
        pa.field("file_size_in_bytes", pa.int64(), nullable=False),
        pa.field("equality_ids", pa.list_(pa.int32())),
        pa.field("referenced_data_file", pa.string()),
        pa.field("key_metadata", pa.binary()),
        pa.field("content_offset", pa.int64()),
        pa.field("content_size_in_bytes", pa.int64()),
    ]
)


class PlannedBatches:
    """The tasks of a scan as Arrow record batches, one row each, planned while they are read.

    Columns of a batch:

    * `file_path`, `file_format` (`PARQUET`, `ORC`, `AVRO`), `file_size_in_bytes`, `record_count`,
      `spec_id`, `key_metadata`: of the whole data file.
    * `partition`: a struct of the fields of all partition specs the table has had; absent for a
      table that was never partitioned.
    * `start`, `length`: the part of the file to read, in bytes.
    * `sequence_number`: the data sequence number of the file.
    * `delete_files`: indices in `PlannedBatches.delete_files` of the delete files that may apply.
    * `residual`: the part of the filter left to check on the rows, as JSON (see
      `icecomb.format.expressions.forms.json_form`), dictionary-encoded; null when all rows match.

    It can be read more than once; each iteration plans again.

    Args:
        split_size: Size of the parts of a file, in bytes; None for whole files.
        limit: The number of matching rows after which planning stops, once the files chosen are
            certain to hold that many; None for no limit.
    """

    def __init__(
        self,
        metadata: TableMetadata,
        planner: ScanPlanner,
        manifests: Sequence[ManifestFile],
        deletes: DeleteFileIndex,
        *,
        split_size: int | None = None,
        limit: int | None = None,
    ) -> None:
        self._metadata = metadata
        self._planner = planner
        self._manifests = manifests
        self._deletes = deletes
        self._split_size = split_size
        self._limit = limit
        self._partition = partition_union(metadata).fields
        self._places = {id(file): place for place, file in enumerate(deletes.others)}

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of the batches."""
        fields = [
            pa.field("file_path", pa.string(), nullable=False),
            pa.field("file_format", pa.string(), nullable=False),
            pa.field("file_size_in_bytes", pa.int64(), nullable=False),
            pa.field("record_count", pa.int64(), nullable=False),
            pa.field("spec_id", pa.int32(), nullable=False),
            pa.field("key_metadata", pa.binary()),
            pa.field("start", pa.int64(), nullable=False),
            pa.field("length", pa.int64(), nullable=False),
            pa.field("sequence_number", pa.int64()),
            pa.field("delete_files", pa.list_(pa.int32()), nullable=False),
            pa.field("residual", pa.dictionary(pa.int32(), pa.string())),
        ]
        if self._partition:
            fields.insert(5, pa.field("partition", self._partition_type, nullable=False))
        return pa.schema(fields)

    @cached_property
    def delete_files(self) -> pa.RecordBatch:
        """The delete files, in the order to which the batches' `delete_files` refer."""
        return pa.RecordBatch.from_pylist(
            [_described(file) for file in self._deletes.files], _DELETE_FILES
        )

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Plan the scan, and yield its batches."""
        for selected in self._planner.selected(self._manifests, self._deletes, limit=self._limit):
            for start in range(0, selected.count, MOST_FILES):
                yield from self._batches(selected.part(start, start + MOST_FILES))

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the batches as a stream for other Arrow libraries."""
        return pa.RecordBatchReader.from_batches(self.schema, iter(self))

    @property
    def _partition_type(self) -> pa.DataType:
        return pa.struct(
            [pa.field(field.name, type_to_pyarrow(field.field_type)) for field in self._partition]
        )

    def _batches(self, selected: Selected) -> Iterator[pa.RecordBatch]:
        if selected.count > 1 and self._most_rows(selected) > MOST_ROWS:
            half = selected.count // 2
            yield from self._batches(selected.part(0, half))
            yield from self._batches(selected.part(half, selected.count))
        else:
            yield self._batch(selected)

    def _most_rows(self, selected: Selected) -> int:
        """Return a number of rows which the batch of these files does not exceed."""
        if self._split_size is None:
            return selected.count
        even = -(-_integers(selected.column("file_size_in_bytes")) // self._split_size)
        own = _integers(pc.list_value_length(selected.column("split_offsets")).fill_null(0))
        return int(np.clip(np.maximum(even, own), 1, MOST_PARTS).sum())

    def _batch(self, selected: Selected) -> pa.RecordBatch:
        columns = {
            name: selected.column(name)
            for name in ("file_path", "file_size_in_bytes", "record_count", "sequence_number")
        }
        columns["key_metadata"] = selected.column("key_metadata")
        columns["file_format"] = pc.utf8_upper(selected.column("file_format"))
        count, spec_id = selected.count, selected.columns.manifest.partition_spec_id
        columns["spec_id"] = pa.array(np.full(count, spec_id, np.int32))
        columns["delete_files"] = self._delete_places(selected)
        columns["residual"] = _residuals(selected.residuals, count)
        if self._partition:
            columns["partition"] = self._partitions(selected)
        sizes = _integers(columns["file_size_in_bytes"])
        rows: _Numbers | None = None
        starts, lengths = np.zeros(count, np.int64), sizes
        if self._split_size is not None:
            offsets = selected.column("split_offsets")
            splittable = _splittable(columns["file_format"])
            rows, starts, lengths = _parts(sizes, offsets, splittable, self._split_size)
        if rows is not None:
            columns = {name: column.take(pa.array(rows)) for name, column in columns.items()}
        columns["start"], columns["length"] = pa.array(starts), pa.array(lengths)
        arrays = [columns[field.name].cast(field.type) for field in self.schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _partitions(self, selected: Selected) -> pa.Array:
        spec = self._metadata.specs()[selected.columns.manifest.partition_spec_id]
        doubted = ColumnDoubts(self._metadata, self._metadata.schema()).of(selected.columns)
        arrays = union_columns(selected.columns, spec, self._partition, doubted)
        return pa.StructArray.from_arrays(
            [selected.chosen(array) for array in arrays], fields=list(self._partition_type)
        )

    def _delete_places(self, selected: Selected) -> pa.Array:
        found, indices = self._deletes.lazy_files_for(selected.columns, selected.rows)
        vectors = np.asarray(indices, np.int32)
        counts = np.zeros(selected.count, np.int32)
        places = np.empty(0, np.int32)
        if self._places:
            counts[:] = [len(files) for files in found]
            every = (self._places[id(file)] for files in found for file in files)
            places = np.fromiter(every, np.int32, int(counts.sum()))
        # behind the others of its file, and behind all others among the delete files
        there = vectors >= 0
        places = np.insert(places, np.cumsum(counts)[there], vectors[there] + len(self._places))
        offsets = np.zeros(selected.count + 1, np.int32)
        np.cumsum(counts + there, out=offsets[1:])
        return pa.ListArray.from_arrays(pa.array(offsets), pa.array(places))


def _described(file: DataFile) -> dict[str, Any]:
    described = {name: getattr(file, name) for name in _DELETE_FILES.names}
    return {**described, "content": file.content.value, "file_format": file.file_format.value}


def _residuals(residuals: Sequence[BooleanExpression], count: int) -> pa.Array:
    """Encode the residuals as a dictionary of JSON texts; a manifest has few distinct ones."""
    texts: list[str] = []
    places: dict[int, int | None] = {}
    for residual in residuals:
        if id(residual) not in places:
            everything = isinstance(residual, AlwaysTrue)
            places[id(residual)] = None if everything else len(texts)
            if not everything:
                texts.append(json.dumps(to_json(residual)))
    indices = [places[id(residual)] for residual in residuals] or [None] * count
    return pa.DictionaryArray.from_arrays(
        pa.array(indices, pa.int32()), pa.array(texts, pa.string())
    )


def _splittable(formats: pa.Array) -> npt.NDArray[np.bool_]:
    names = pa.array([one.value for one in FileFormat if one in SPLITTABLE], pa.large_string())
    found: npt.NDArray[np.bool_] = pc.is_in(formats, value_set=names).to_numpy(zero_copy_only=False)
    return found


def _parts(
    sizes: _Numbers, split_offsets: pa.Array, splittable: npt.NDArray[np.bool_], target: int
) -> tuple[_Numbers, _Numbers, _Numbers]:
    """Return row, start and length of each part of the files, as `FileScanTask.split` does."""
    counts = _integers(pc.list_value_length(split_offsets).fill_null(0))
    offsets = _integers(split_offsets.flatten())
    first = np.cumsum(counts) - counts
    rows_of = np.repeat(np.arange(len(sizes)), counts)
    usable = (counts > 0) & (counts <= MOST_PARTS)
    # compared, as the difference of two may be beyond 64 bits
    descents = np.flatnonzero((offsets[1:] <= offsets[:-1]) & (rows_of[1:] == rows_of[:-1]))
    usable[rows_of[descents]] = False
    own = np.flatnonzero(usable)
    usable[own] = (offsets[first[own]] >= 0) & (offsets[(first + counts)[own] - 1] < sizes[own])
    steps = np.maximum(target, -(-sizes // MOST_PARTS))
    even = np.where(splittable & (sizes > target), -(-sizes // steps), 1)
    parts = np.where(usable, counts, even)
    rows = np.repeat(np.arange(len(sizes)), parts)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(parts) - parts, parts)
    starts = within * steps[rows]
    given = np.flatnonzero(usable[rows])
    starts[given] = offsets[first[rows[given]] + within[given]]
    ends = np.append(starts[1:], 0)
    last = within == parts[rows] - 1
    ends[last] = sizes[rows[last]]
    return rows, starts, ends - starts


def _integers(array: pa.Array) -> _Numbers:
    return np.asarray(array.to_numpy(zero_copy_only=False), np.int64)
