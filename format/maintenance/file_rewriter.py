"""Rewriting of groups of files: without deleted rows, to files of a better size."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from icecomb.format.arrow.batch_stream import stream
from icecomb.format.arrow.plain_layout import without_hidden_nulls
from icecomb.format.cancellation import check_wanted
from icecomb.format.errors import CorruptFileError, ValidationError
from icecomb.format.maintenance.file_group import FileGroup
from icecomb.format.maintenance.rewrite_options import CopyMode
from icecomb.format.maintenance.row_group_copier import RowGroupCopier, SourceMetrics
from icecomb.format.maintenance.row_order import RowOrder
from icecomb.format.maintenance.row_origin import RowOrigins, with_origins
from icecomb.format.property.table_property import DATA_FORMAT
from icecomb.format.rows.parquet.raw_footer import NotCopyableError
from icecomb.format.rows.read.arrow_scan import ArrowScan
from icecomb.format.rows.values.data_metrics import MetricsConfig
from icecomb.format.rows.values.metadata_columns import ROW_POSITION, lineage, with_lineage
from icecomb.format.rows.values.scan_task import FileScanTask
from icecomb.format.rows.write.data_writer import check_required, in_pieces
from icecomb.format.rows.write.file_options import load_file_options
from icecomb.format.rows.write.file_settings import FileSettings
from icecomb.format.rows.write.location_provider import LocationProvider, load_location_provider
from icecomb.format.rows.write.partition_writer import PartitionWriter
from icecomb.format.rows.write.row_sort import RowSorter
from icecomb.format.spec.partition import PartitionSpec
from icecomb.format.spec.schema import Schema

if TYPE_CHECKING:
    from icecomb.format.manifests.manifest import DataFile
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.storage.file_io import FileIO

RUN_BYTES: Final = 4 << 20
RUN_ROWS: Final = 1 << 17
"""The bytes and rows up to which files are handed to a thread at once: each handover takes as long
as a small file."""


@dataclass(frozen=True, slots=True)
class RewrittenGroup:
    """A group whose new files are written, but not yet committed.

    Attributes:
        origins: The origins of their rows, with sources numbered as the group's tasks; None if
            unknown.
    """

    group: FileGroup
    files: tuple[DataFile, ...]
    origins: RowOrigins | None

    def release(self) -> None:
        """Release the resources that only a commit needs."""
        if self.origins is not None:
            self.origins.close()

    def discard(self, io: FileIO) -> None:
        """Delete the new files."""
        self.release()
        io.discard([file.file_path for file in self.files])


class FileRewriter:
    """A rewriter of groups of files, for one state of a table.

    Args:
        operation_id: The common part of the names of new files.
        order: The sort order of rows; None leaves them in their order.
        copy: Whether row groups are copied instead, if possible; never by default.
    """

    def __init__(
        self,
        io: FileIO,
        metadata: TableMetadata,
        spec: PartitionSpec,
        operation_id: str,
        *,
        order: RowOrder | None = None,
        copy: CopyMode = CopyMode.NEVER,
        sources: SourceMetrics | None = None,
    ) -> None:
        self._io = io.to_copy()
        self._metadata = metadata
        self._spec = spec
        self._operation_id = operation_id
        self._order = order
        self._copy = copy
        self._sources = sources
        self._schema = metadata.schema()
        self._written = with_lineage(self._schema) if lineage(metadata) else self._schema

    def rewrite(self, number: int, group: FileGroup, workers: int) -> RewrittenGroup:
        """Write the rows of a group; if anything fails, the written files are removed."""
        if self._copy is not CopyMode.NEVER and self._sources is not None:
            copied = self._copied(number, group, self._sources)
            if copied is not None:
                return copied
        origins = RowOrigins()
        files = self._files(number, group, origins)
        sorter = None if self._order is None else RowSorter(self._order.keys)
        try:
            for batch in self._rows(group.tasks, workers):
                check_wanted()
                if sorter is None:
                    files.write(batch)
                else:
                    sorter.add(batch)
            if sorter is not None:
                with closing(sorter.drain()) as batches:
                    for batch in batches:
                        check_wanted()
                        files.write(batch, clustered=True)
            written = files.close()
        except BaseException as problem:
            if sorter is not None:
                sorter.discard()
            files.abort(problem)
            origins.close()
            raise
        return RewrittenGroup(group, tuple(written), origins)

    def _copied(
        self, number: int, group: FileGroup, sources: SourceMetrics
    ) -> RewrittenGroup | None:
        """Copy the row groups of a group; return None if it has to be decoded."""
        origins = RowOrigins()
        copier = RowGroupCopier(
            self._io,
            self._metadata,
            self._spec,
            settings=self._settings(),
            locations=self._locations(),
            sources=sources,
        )
        try:
            files = copier.copy(group, origins, self._names(number))
        except NotCopyableError as problem:
            origins.close()
            if self._copy is CopyMode.AUTO:
                return None
            raise ValidationError(
                f"Row groups cannot be copied: {problem}",
                hint="Leave option copy out: files that cannot be copied are then decoded.",
            ) from None
        except BaseException:
            origins.close()
            raise
        return RewrittenGroup(group, tuple(files), origins)

    def _files(self, number: int, group: FileGroup, origins: RowOrigins) -> PartitionWriter:
        return PartitionWriter(
            self._io,
            self._locations(),
            self._settings(),
            self._spec,
            target=group.split_size,
            name=self._names(number),
            open_file=origins.open_file,
        )

    def _settings(self) -> FileSettings:
        metadata, order = self._metadata, self._order
        properties = metadata.properties
        return FileSettings(
            self._written,
            load_file_options(DATA_FORMAT.of(properties), properties),
            MetricsConfig.from_properties(properties, self._schema, metadata.sort_order()),
            sort_order_id=None if order is None else order.sort_order_id,
        )

    def _locations(self) -> LocationProvider:
        return load_location_provider(self._io, self._metadata.location, self._metadata.properties)

    def _names(self, number: int) -> Callable[[int], str]:
        return lambda file: f"{0:05d}-{number}-{self._operation_id}-{file:05d}"

    def _rows(self, tasks: Sequence[FileScanTask], workers: int) -> Iterator[pa.RecordBatch]:
        projected = Schema((*self._written.fields, ROW_POSITION))
        # Once the file is gone, a wrong value can no longer be noticed.
        scan = ArrowScan(self._metadata, self._io, projected, workers=1, checksums=True)
        producers = (
            partial(self._pieces, scan, first, tasks[first:end]) for first, end in _runs(tasks)
        )
        return stream(producers, workers)

    def _pieces(
        self, scan: ArrowScan, first: int, tasks: Sequence[FileScanTask]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of consecutive tasks, with those of small files put together."""
        width = len(self._schema.fields)
        # Whole files: the filter that chose a file does not apply to its rows.
        read = (
            self._read(scan, source, FileScanTask(t.file, t.delete_files, spec=t.spec))
            for source, t in enumerate(tasks, first)
        )
        rows = chain.from_iterable(read)
        for piece in rows if len(tasks) == 1 else in_pieces(rows):
            check_required(self._schema, piece.select(range(width)))
            yield without_hidden_nulls(piece)

    def _read(self, scan: ArrowScan, source: int, task: FileScanTask) -> Iterator[pa.RecordBatch]:
        check_wanted()
        width, count = len(self._written.fields), 0
        for batch in scan.read(task):
            count += batch.num_rows
            yield with_origins(batch.select(range(width)), source, batch.column(width))
        expected = task.record_count
        if expected < 0:  # its writer did not know it
            return
        if count > expected or (count < expected and not task.delete_files):
            raise CorruptFileError(
                f"Data file {task.file_path} has {count} rows, its manifest says {expected}",
                hint="Find out which is right before the file is replaced: rows may be lost.",
                path=task.file_path,
            )


def _runs(tasks: Sequence[FileScanTask]) -> Iterator[tuple[int, int]]:
    """Yield the ranges of tasks for one thread each, with many small files in a range."""
    first, size, rows = 0, 0, 0
    for number, task in enumerate(tasks):
        size += task.file_size_in_bytes
        rows += task.record_count
        if size >= RUN_BYTES or rows >= RUN_ROWS:
            yield first, number + 1
            first, size, rows = number + 1, 0, 0
    if first < len(tasks):
        yield first, len(tasks)
