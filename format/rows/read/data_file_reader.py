"""What the readers of all file formats have in common, and the choice among them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import pyarrow as pa

from icecomb.format.errors import UnsupportedError
from icecomb.format.manifests.manifest import DataFile, FileFormat
from icecomb.format.rows.parquet.reader import ParquetReader
from icecomb.format.rows.parquet.statistics import ChunkStatistics
from icecomb.format.rows.read.arrow_projection import FileField
from icecomb.format.spec.name_mapping import NameMapping
from icecomb.format.spec.types import IcebergType
from icecomb.format.storage.file_io import FileIO


class DataFileReader(Protocol):
    """An open data file: its fields, and its rows in groups that can be skipped."""

    location: str
    fields: tuple[FileField, ...]

    def close(self) -> None:
        """Close the file."""

    def row_groups(self, start: int = 0, length: int | None = None) -> list[int]:
        """The groups of rows that belong to a range of bytes; each belongs to one range."""

    def statistics(
        self, field_id: int, field_type: IcebergType
    ) -> Callable[[int], ChunkStatistics | None] | None:
        """The statistics of a column by group, None when there are none."""

    def batches(
        self,
        columns: Sequence[int],
        row_groups: Sequence[int],
        batch_size: int,
        *,
        use_threads: bool = True,
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The number of each batch's first row in the file, and the batch."""


def open_data_file(
    io: FileIO,
    file: DataFile,
    name_mapping: NameMapping | None,
    dictionaries: Sequence[str] = (),
) -> DataFileReader:
    """Open a data or delete file of any format.

    Args:
        io: Where it lies.
        file: The file.
        name_mapping: The ids of its columns if it has none.
        dictionaries: Columns to read dictionary-encoded where the format can do that.

    Raises:
        CorruptFileError: The file is damaged.
        FileMissingError: There is no such file.
        UnsupportedError: The format is not known.
    """
    if file.file_format is FileFormat.PARQUET:
        return ParquetReader(
            io, file.file_path, name_mapping, file.file_size_in_bytes, dictionaries
        )
    if file.file_format is FileFormat.ORC:
        from icecomb.format.rows.orc.reader import OrcReader

        return OrcReader(io, file.file_path, name_mapping, file.file_size_in_bytes)
    if file.file_format is FileFormat.AVRO:
        from icecomb.format.rows.avro.reader import AvroReader

        return AvroReader(io, file.file_path, name_mapping, file.file_size_in_bytes)
    raise UnsupportedError(
        f"File {file.file_path} is {file.file_format.value}: such files cannot be read yet",
        hint="Rewrite it as Parquet, ORC or Avro by the engine that wrote it.",
        path=file.file_path,
    )
