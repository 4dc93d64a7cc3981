"""Writing of Avro data files, with field ids at every depth (spec: Appendix A, Avro).

Settings come from Iceberg Java's table properties (`write.avro.*`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
import pyarrow as pa

from icecomb.format.avro.arrow_encoder import encode_rows
from icecomb.format.avro.container import compressor, header_bytes
from icecomb.format.avro.encoder import encode_long
from icecomb.format.avro.schema import avro_schema
from icecomb.format.manifests.manifest import FileFormat
from icecomb.format.property.table_property import AVRO_CODEC, AVRO_LEVEL
from icecomb.format.rows.parquet.writer import compression_level
from icecomb.format.rows.values.arrow_metrics import ArrowMetrics
from icecomb.format.rows.values.data_metrics import Metrics
from icecomb.format.rows.write.file_settings import DataFileWriter, FileSettings
from icecomb.format.spec.types import StructType

_SYNC_BYTES = 16
_BLOCK_BYTES = 64_000
_RECORD_NAME = "table"


@dataclass(frozen=True, slots=True)
class AvroOptions:
    """Options for writing Avro files: Iceberg's name of the codec, and its level if not default."""

    compression: str = "gzip"
    level: int | None = None

    @property
    def file_format(self) -> FileFormat:
        """The format, Avro."""
        return FileFormat.AVRO

    @property
    def row_group_bytes(self) -> int:
        """The size of the buffer in bytes: the writer itself makes smaller blocks."""
        return self.buffer_bytes

    @property
    def row_group_rows(self) -> int:
        """The maximum number of rows written at once; see `FileOptions.row_group_rows`."""
        return 1 << 16

    @property
    def buffer_bytes(self) -> int:
        """The size of the buffer in bytes; encoding takes a few times as much memory."""
        return 4 << 20

    def fitting(self, target_bytes: int, open_bytes: int) -> AvroOptions:
        """Return the options unchanged: an open file keeps nothing between blocks."""
        del target_bytes, open_bytes
        return self

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> AvroOptions:
        """Return the options set by a table's properties."""
        codec = AVRO_CODEC.of(properties)
        plain = codec in ("uncompressed", "none")
        return cls(codec, compression_level(AVRO_LEVEL, properties, "NONE" if plain else codec))

    def open(self, stream: BinaryIO, settings: FileSettings) -> DataFileWriter:
        """Implement `FileOptions.open`."""
        return AvroFileWriter(stream, settings, self)


class AvroFileWriter:
    """A writer of one Avro file to a stream, which the caller closes."""

    def __init__(self, stream: BinaryIO, settings: FileSettings, options: AvroOptions) -> None:
        self._stream = stream
        self._fields = settings.schema.fields
        self._metrics = ArrowMetrics(settings.schema, settings.metrics)
        self._sync = os.urandom(_SYNC_BYTES)
        codec, self._compress = compressor(options.compression, options.level)
        schema = avro_schema(StructType(self._fields), _RECORD_NAME)
        header = {
            "avro.schema": json.dumps(schema, ensure_ascii=False),
            "avro.codec": codec,
            "iceberg.schema": json.dumps(settings.schema.to_json()),
        }
        stream.write(header_bytes(header, self._sync))

    @property
    def bytes_written(self) -> int:
        """The length of the file so far."""
        return self._stream.tell()

    def write(self, batches: Sequence[pa.RecordBatch]) -> None:
        """Write batches, whose columns have the table's types."""
        for batch in batches:
            if batch.num_rows:
                self._metrics.add(batch)
                self._write(batch)

    def close(self) -> Metrics:
        """Return the metrics counted while writing; an Avro file needs no footer."""
        return self._metrics.result()

    def _write(self, batch: pa.RecordBatch) -> None:
        rows = encode_rows(self._fields, batch.columns, batch.num_rows)
        ends = np.cumsum(rows.lengths)
        first = begin = 0
        while first < len(ends):
            full = int(np.searchsorted(ends, begin + _BLOCK_BYTES))
            after = min(full + 1, len(ends))
            end = int(ends[after - 1])
            block = self._compress(rows.data[begin:end].tobytes())
            self._stream.write(encode_long(after - first) + encode_long(len(block)))
            self._stream.write(block)
            self._stream.write(self._sync)
            first, begin = after, end
