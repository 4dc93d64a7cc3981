"""Row lineage beside copied row groups: what rows inherit in one file is stated in the next."""

from __future__ import annotations

import io as memory
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from icecomb.format.rows.parquet.raw_footer import RawFooter
from icecomb.format.rows.read.arrow_scan import ArrowScan
from icecomb.format.rows.values.metadata_columns import LAST_UPDATED, LINEAGE
from icecomb.format.rows.values.scan_task import FileScanTask
from icecomb.format.spec.schema import Schema

if TYPE_CHECKING:
    from icecomb.format.rows.write.file_settings import FileSettings
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.storage.file_io import FileIO

_NAME: Final = "ids of rows"


class CopiedLineage:
    """The columns of row lineage of the rows that are copied, as Parquet in memory."""

    def __init__(self, io: FileIO, metadata: TableMetadata, settings: FileSettings) -> None:
        self._io = io
        schema = Schema(LINEAGE)
        self._scan = ArrowScan(metadata, io, schema, workers=1, checksums=True)
        # ids are all different; numbers of commits are few
        self._settings = replace(settings, schema=schema, dictionaries=(LAST_UPDATED.name,))

    def layout(self) -> RawFooter:
        """Return a file of these columns without rows."""
        return self._file([])

    def row_groups(self, task: FileScanTask, lengths: Iterable[int]) -> Iterator[RawFooter]:
        """Yield a file of one row group for each row group of a source without deleted rows."""
        batches = self._scan.read(FileScanTask(task.file, spec=task.spec))
        left: list[pa.RecordBatch] = []
        for length in lengths:
            while (found := sum(batch.num_rows for batch in left)) < length:
                left.append(next(batches))
            rows = pa.Table.from_batches(left)
            yield self._file(rows.slice(0, length).to_batches())
            left = rows.slice(length).to_batches() if found > length else []

    def _file(self, batches: list[pa.RecordBatch]) -> RawFooter:
        stream = memory.BytesIO()
        writer = self._settings.options.open(stream, self._settings)
        if batches:
            writer.write(batches)
        writer.close()
        data = pa.py_buffer(stream.getvalue())
        rows = sum(batch.num_rows for batch in batches)
        return RawFooter(self._io, _NAME, data.size, rows, source=pa.BufferReader(data))
