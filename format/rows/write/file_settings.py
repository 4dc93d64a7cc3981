"""Settings shared by the files of one write, and protocols of the file formats' writers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import BinaryIO, Protocol

import pyarrow as pa

from icecomb.format.manifests.manifest import DataFileContent, FileFormat
from icecomb.format.rows.values.data_metrics import Metrics, MetricsConfig
from icecomb.format.spec.schema import Schema


class DataFileWriter(Protocol):
    """A writer of one file of any format."""

    @property
    def bytes_written(self) -> int:
        """The length of the file so far, as far as it is known."""

    def write(self, batches: Sequence[pa.RecordBatch]) -> None:
        """Write batches, whose columns have the table's types."""

    def close(self) -> Metrics:
        """Complete the content and return its metrics; the stream is left open."""


class FileOptions(Protocol):
    """Options for writing files of one format."""

    @property
    def file_format(self) -> FileFormat:
        """The format."""

    @property
    def row_group_bytes(self) -> int:
        """The approximate maximum size of a row group in the file, in bytes."""

    @property
    def row_group_rows(self) -> int:
        """The maximum number of rows in a row group."""

    @property
    def buffer_bytes(self) -> int:
        """The approximate maximum size of rows buffered in memory for a row group, in bytes."""

    def fitting(self, target_bytes: int, open_bytes: int) -> FileOptions:
        """Return the options adapted to the size of files and of their buffers, in bytes.

        The maximum memory for each open file is `open_bytes`; many may be open.
        """

    def open(self, stream: BinaryIO, settings: FileSettings) -> DataFileWriter:
        """Open a writer for a new file; the caller closes `stream`."""


@dataclass(frozen=True, slots=True)
class FileSettings:
    """Settings shared by all files of one write.

    Args:
        dictionaries: The Parquet paths of the columns that get a dictionary; None for all.
        equality_ids: Field ids of the columns that equality deletes compare.
        sort_order_id: Id of the table's sort order in which rows are given; None for none.
    """

    schema: Schema
    options: FileOptions
    metrics: MetricsConfig
    dictionaries: tuple[str, ...] | None = None
    content: DataFileContent = DataFileContent.DATA
    equality_ids: tuple[int, ...] | None = None
    sort_order_id: int | None = None
