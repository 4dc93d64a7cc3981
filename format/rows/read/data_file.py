"""Selection of the reader for a file's format."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from icecomb.format.errors import CorruptFileError, UnsupportedError
from icecomb.format.manifests.manifest import DataFile, FileFormat
from icecomb.format.rows.parquet.reader import ParquetReader
from icecomb.format.rows.read.data_file_reader import DataFileReader
from icecomb.format.spec.name_mapping import NameMapping
from icecomb.format.storage.file_io import FileIO


def open_data_file(
    io: FileIO,
    file: DataFile,
    name_mapping: NameMapping | None,
    dictionaries: Sequence[str] = (),
    *,
    checksums: bool = False,
    nanoseconds: Collection[int] = (),
) -> DataFileReader:
    """Open a data or delete file of any format, checked against its manifest.

    Args:
        dictionaries: Names of columns to read dictionary-encoded, if the format supports it.
        checksums: Whether to verify checksums that readers do not verify by default.
        nanoseconds: Ids of columns in nanoseconds; see `ParquetReader`.
    """
    reader = _reader(
        io, file, name_mapping, dictionaries, checksums=checksums, nanoseconds=nanoseconds
    )
    try:
        reader.expect_rows(file.record_count)
    except CorruptFileError:
        reader.close()
        raise
    return reader


def _reader(
    io: FileIO,
    file: DataFile,
    name_mapping: NameMapping | None,
    dictionaries: Sequence[str],
    *,
    checksums: bool,
    nanoseconds: Collection[int],
) -> DataFileReader:
    if file.file_format is FileFormat.PARQUET:
        return ParquetReader(
            io,
            file.file_path,
            name_mapping,
            file.file_size_in_bytes,
            dictionaries,
            checksums=checksums,
            nanoseconds=nanoseconds,
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
