"""The header of an Avro file: its schema, and the row counts of its blocks."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

import pyarrow as pa

from icecomb.format.avro.container_stream import ContainerStream
from icecomb.format.manifests.manifest import FileFormat
from icecomb.format.rows.avro.reader import decoding, read_columns
from icecomb.format.rows.read.data_file_reader import reading
from icecomb.format.rows.values.arrow_projection import FileField
from icecomb.format.rows.values.file_tail import ColumnSummary, FileTail
from icecomb.format.rows.values.statistics import ChunkStatistics
from icecomb.format.spec.types import PrimitiveType

_NEAR, _FAR = 1 << 12, 1 << 18
"""Bytes per read, local and remote: in remote files skipping costs more than reading."""


class AvroHeader(FileTail):
    """The header of a file, and the row counts of its blocks; the rows are skipped."""

    file_format = FileFormat.AVRO

    def __init__(self, source: pa.NativeFile, location: str) -> None:
        with reading(location):
            near = isinstance(source, pa.OSFile)
            stream = ContainerStream(source, location, _NEAR if near else _FAR)
            self.stated = stream.schema
            with decoding(location):
                _, columns = read_columns(stream.schema, location)
            rows = stream.count_records()
        super().__init__(pa.schema([field for field, _ in columns]), rows)

    def columns(
        self,
        fields: Sequence[FileField],
        kinds: Mapping[int, PrimitiveType],
        wanted: Container[int],
    ) -> dict[int, ColumnSummary]:
        """Implement `FileTail.columns`: a column that is not a union with null has no nulls."""
        found = {}
        for f, arrow in zip(fields, self.schema, strict=True):
            kind = None if f.field_id is None else kinds.get(f.field_id)
            if f.field_id in wanted and f.field_id is not None and kind and not arrow.nullable:
                values = ChunkStatistics(self.record_count, 0)
                found[f.field_id] = ColumnSummary(kind, None, values)
        return found
