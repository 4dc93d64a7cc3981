"""The metadata table `partitions`, with the counts for each partition of a snapshot in any spec."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.inspect.manifest_choice import choose_manifests
from icecomb.format.inspect.metadata_schema import PARTITION, partitions_schema
from icecomb.format.inspect.metadata_table import (
    BatchRows,
    Part,
    TableRequest,
    TableRows,
    number_array,
)
from icecomb.format.inspect.partition_statistics import UPDATED_AT, PartitionCounter, of_type
from icecomb.format.inspect.partition_statistics_file import stated_counts
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.spec.arrow_schema import schema_to_pyarrow
from icecomb.format.spec.metadata import TableMetadata
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.snapshot import Snapshot
from icecomb.format.storage.file_io import FileIO

_COUNTS: Final = {
    "record_count": ("data_record_count",),
    "file_count": ("data_file_count",),
    "position_delete_file_count": ("position_delete_file_count", "dv_count"),
}
"""The columns that partition statistics call otherwise, as sums of theirs."""
_MICROS: Final = 1000


@dataclass(frozen=True)
class PartitionsTable:
    """The partitions of a snapshot; a shared one names the spec of the file added last."""

    metadata: TableMetadata
    io: FileIO
    snapshots: Sequence[Snapshot]

    @cached_property
    def schema(self) -> Schema:
        """The columns of the metadata table."""
        return partitions_schema(self.metadata)

    def parts(self, request: TableRequest) -> Iterator[Part]:
        """Yield a single part, as a partition's files may be in any manifest."""
        yield lambda: self._rows(request)

    def _rows(self, request: TableRequest) -> Iterator[TableRows]:
        for snapshot in self.snapshots:
            counter = PartitionCounter(self.metadata, self.io)
            counts = None
            if counter.keys:
                counts = stated_counts(counter, self.io, self.metadata, snapshot)
            if counts is None:
                ids = {field.field_id: field.field_id for field in counter.union.fields}
                manifests = [m for m in read_manifests(self.io, snapshot) if m.has_live_files()]
                counts = counter.of_manifests(
                    choose_manifests(
                        manifests, request.row_filter, self.metadata, ids, only_partitions=True
                    )
                )
            if len(counts):
                yield self._result(counter.over_specs(counts), counter.keys)

    def _result(self, groups: pa.Table, keys: Sequence[str]) -> TableRows:
        arrow = schema_to_pyarrow(self.schema)
        arrays = []
        for field in arrow:
            if field.name == PARTITION:
                children = [
                    of_type(groups.column(key), child.type)
                    for key, child in zip(keys, field.type, strict=True)
                ]
                arrays.append(pa.StructArray.from_arrays(children, fields=list(field.type)))
            elif field.name == UPDATED_AT:
                arrays.append(_moments(groups.column(UPDATED_AT)).cast(field.type))
            else:
                first, *more = _COUNTS.get(field.name, (field.name,))
                column = groups.column(first)
                for other in more:
                    column = pc.add(column, groups.column(other))
                arrays.append(of_type(column, field.type))
        return BatchRows(self.schema, pa.RecordBatch.from_arrays(arrays, schema=arrow))


def _moments(times: pa.ChunkedArray) -> pa.Array:
    """Return times in microseconds since the epoch, given in milliseconds."""
    encoded = times.combine_chunks().dictionary_encode()
    values = [time * _MICROS for time in encoded.dictionary.to_pylist()]
    return number_array(UPDATED_AT, values, pa.int64()).take(encoded.indices)
