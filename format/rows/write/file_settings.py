"""What the files of one write have in common, and what the writers of all file formats do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import BinaryIO, Protocol

import pyarrow as pa

from icecomb.format.manifests.manifest import DataFileContent, FileFormat
from icecomb.format.rows.data_metrics import Metrics, MetricsConfig
from icecomb.format.spec.schema import Schema


class DataFileWriter(Protocol):
    """A file of any format in the making."""

    @property
    def bytes_written(self) -> int:
        """The length so far, as far as it is known."""

    def write(self, batches: Sequence[pa.RecordBatch]) -> None:
        """Write batches, whose columns have the table's types."""

    def close(self) -> Metrics:
        """Complete the content and say what is in it; the stream is left open."""


class FileOptions(Protocol):
    """How files of one format are written."""

    @property
    def file_format(self) -> FileFormat:
        """The format."""

    @property
    def row_group_bytes(self) -> int:
        """How many bytes of the file are written at once, at most about."""

    @property
    def row_group_rows(self) -> int:
        """How many rows are written at once, at most."""

    @property
    def buffer_bytes(self) -> int:
        """How many bytes of rows are held in memory to be written at once, at most about."""

    def fitting(self, target_bytes: int, open_bytes: int) -> FileOptions:
        """The options for files of a size, many of which may be open.

        Args:
            target_bytes: The length of a file, about.
            open_bytes: How much an open file may keep in memory.
        """

    def open(self, stream: BinaryIO, settings: FileSettings) -> DataFileWriter:
        """Begin a file.

        Args:
            stream: Where it goes; the caller closes it.
            settings: How it is written.
        """


@dataclass(frozen=True, slots=True)
class FileSettings:
    """What all files of one write have in common.

    Args:
        schema: Their columns.
        options: The format, and how it is written.
        metrics: What is kept about columns.
        dictionaries: The Parquet paths of the columns that get a dictionary; None for all.
        content: What the files hold.
        equality_ids: The columns that equality deletes compare.
        sort_order_id: The table's sort order that the rows are given in; None for none.
    """

    schema: Schema
    options: FileOptions
    metrics: MetricsConfig
    dictionaries: tuple[str, ...] | None = None
    content: DataFileContent = DataFileContent.DATA
    equality_ids: tuple[int, ...] | None = None
    sort_order_id: int | None = None
