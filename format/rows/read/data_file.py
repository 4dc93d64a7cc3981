"""The choice among the readers of file formats."""

from __future__ import annotations

from collections.abc import Sequence

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
) -> DataFileReader:
    """Open a data or delete file of any format.

    Args:
        io: Where it lies.
        file: The file.
        name_mapping: The ids of its columns if it has none.
        dictionaries: Columns to read dictionary-encoded where the format can do that.
        checksums: Whether parts of a file are compared with their checksums, where a format has
            them and readers go without that by default.

    Raises:
        CorruptFileError: The file is damaged, or has not as many rows as its manifest says.
        FileMissingError: There is no such file.
        UnsupportedError: The format is not known.
    """
    reader = _reader(io, file, name_mapping, dictionaries, checksums=checksums)
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
) -> DataFileReader:
    if file.file_format is FileFormat.PARQUET:
        return ParquetReader(
            io,
            file.file_path,
            name_mapping,
            file.file_size_in_bytes,
            dictionaries,
            checksums=checksums,
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
