"""Metadata files of a table: their names, and reading and writing them (spec: Table Metadata)."""

from __future__ import annotations

import gzip
import json
import re
import uuid
import zlib
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from icecomb.format.errors import CorruptFileError, ValidationError
from icecomb.format.spec.metadata import TableMetadata
from icecomb.format.spec.read_back import check_table
from icecomb.format.spec.table_property import METADATA_CODEC, METADATA_PATH
from icecomb.format.storage.own_file import create_own

if TYPE_CHECKING:
    from icecomb.format.storage.file_io import FileIO

_SUFFIX: Final = ".metadata.json"
_GZIP: Final = (".gz.metadata.json", ".metadata.json.gz")
COMPRESSION_MARKERS: Final = {"none": "", "uncompressed": "", "gzip": ".gz"}
_NUMBERED: Final = re.compile(r"(v?)(\d+)(?:-.*|\.gz)?\.metadata\.json(?:\.gz)?")
"""Names of metadata files: of tables in folders, and of catalogs."""


def read_metadata(io: FileIO, location: str, table_uuid: str | None = None) -> TableMetadata:
    """Read a metadata file; whether it is compressed is told by its name.

    A proxy or a cache may answer with a page of its own, or with another file: an older version, on
    which a commit would bury the newer ones, or another table's. What is no metadata or seems to be
    another's is read once more, and counts then: a table that was moved, or set back by hand, seems
    so, too.

    Args:
        io: Where it is.
        location: The file.
        table_uuid: The table's identity, where its catalog says it.

    Raises:
        FileMissingError: There is no such file.
        CorruptFileError: It is not valid table metadata.
        UnsupportedError: It is of a format version that icecomb does not know.
    """
    with suppress(CorruptFileError):
        metadata = TableMetadata.from_json(read_metadata_json(io, location), location)
        if not _seems_another(metadata, location, table_uuid):
            return metadata
    return TableMetadata.from_json(read_metadata_json(io, location), location)


def _seems_another(metadata: TableMetadata, location: str, table_uuid: str | None) -> bool:
    """Whether metadata says that it belongs into another file."""
    if table_uuid is not None and table_uuid.lower() != str(metadata.table_uuid):
        return True
    folder, _, name = location.rpartition("/")
    number = _NUMBERED.fullmatch(name)
    if number is None:
        return False
    table, _, own = folder.rpartition("/")
    # a scheme and a host may be spelled in many ways
    named = metadata.location.rstrip("/").rpartition("/")[2]
    if own == "metadata" and table.rpartition("/")[2] != named:
        return True
    if not metadata.metadata_log:
        return int(number[2]) > (1 if number[1] else 0)
    log_folder, _, last = metadata.metadata_log[-1].metadata_file.rpartition("/")
    before = _NUMBERED.fullmatch(last)
    if before is None or before[1] != number[1] or not log_folder.endswith(f"{named}/{own}"):
        return False
    return int(before[2]) != int(number[2]) - 1


def read_metadata_json(io: FileIO, location: str) -> bytes:
    """The text of a metadata file, which is not looked into.

    Raises:
        FileMissingError: There is no such file.
        CorruptFileError: Its name says that it is compressed, but it is not.
    """
    data = io.read(location)
    if location.endswith(_GZIP):
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise CorruptFileError(
                f"{location}: named as a gzip file, but is none: {error}",
                hint=(
                    "Restore the file from a backup, or rename it without .gz if it is plain JSON."
                ),
                path=location,
            ) from error
    return data


def read_metadata_document(io: FileIO, location: str) -> dict[str, Any] | None:
    """Return the JSON object in a metadata file, which need not be valid metadata.

    What is no JSON object is read once more, as in `read_metadata`: a page of a proxy does not make
    rubbish of a table's file.

    Returns:
        The object, or None if the file holds none.

    Raises:
        FileMissingError: There is no such file.
    """
    for _ in range(2):
        with suppress(CorruptFileError, ValueError, RecursionError):
            found = json.loads(read_metadata_json(io, location))
            if isinstance(found, dict):
                return found
    return None


def write_metadata(
    io: FileIO, metadata: TableMetadata, location: str, base: TableMetadata | None = None
) -> None:
    """Create a metadata file; it is compressed when its name says so.

    Args:
        io: Where it goes.
        metadata: What it is to say.
        location: Its name, which nobody else has.
        base: What the metadata was made of; see `metadata_bytes`.

    Raises:
        FileExistsAlreadyError: Another's file is there already; it was left as it is.
        ValidationError: Nobody could read it.
    """
    create_own(io, location, metadata_bytes(metadata, location, base))


def metadata_bytes(
    metadata: TableMetadata, location: str, base: TableMetadata | None = None
) -> bytes:
    """What a metadata file of this name holds; all of them are made here.

    Args:
        metadata: What it is to say.
        location: Its name.
        base: What the metadata was made of, as read from a file: only what is new is checked.

    Raises:
        ValidationError: Nobody could read it.
    """
    check_table(metadata, base)
    try:
        data = metadata.to_json().encode()
    except UnicodeEncodeError as error:
        raise ValidationError(
            f"{location}: the table has text that is no valid Unicode: {error}",
            hint="Look at the names and comments of its columns.",
        ) from None
    return gzip.compress(data, mtime=0) if location.endswith(_GZIP) else data


def metadata_folder(metadata: TableMetadata) -> str:
    """Where the metadata files, manifests and manifest lists of the table are created."""
    configured = METADATA_PATH.of(metadata.properties)
    return (configured or f"{metadata.location.rstrip('/')}/metadata").rstrip("/")


def new_metadata_location(
    metadata: TableMetadata, previous: str | None, unique: str | None = None
) -> str:
    """The name of the next metadata file of a metastore table, `<version>-<uuid>.metadata.json`.

    Args:
        metadata: What will be written; its properties say where and how compressed.
        previous: The present metadata file, None for a new table.
        unique: The uuid in the name; a new one if not given.

    Raises:
        ValidationError: The table's codec is unknown.
    """
    marker = compression_marker(metadata)
    version = -1 if previous is None else metadata_version(previous)
    name = f"{version + 1:05d}-{unique or uuid.uuid4()}{marker}{_SUFFIX}"
    return f"{metadata_folder(metadata)}/{name}"


def compression_marker(metadata: TableMetadata) -> str:
    """What stands before ``.metadata.json`` in the names of the table's new metadata files.

    Returns:
        ``.gz`` for gzip, or nothing.

    Raises:
        ValidationError: The table's codec is unknown.
    """
    return COMPRESSION_MARKERS[METADATA_CODEC.of(metadata.properties)]


def metadata_version(location: str) -> int:
    """The version in the name of a metastore table's metadata file; -1 when there is none."""
    name = location.rsplit("/", 1)[-1]
    head, dash, _ = name.partition("-")
    return int(head) if dash and head.isascii() and head.isdigit() else -1
