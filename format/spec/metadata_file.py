"""Metadata files of a table: names, reading and writing (spec: Table Metadata).

Validation of new metadata by reading it back before others can see it.

Values check themselves when they are created; this is the safety net: the content of a metadata
file is parsed as its readers will parse it, and must equal what was meant. Only what a commit
changed is checked, so that a long history costs nothing.
"""

from __future__ import annotations

import gzip
import json
import re
import time
import uuid
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from icecomb.format.argument import MAX_LONG, checked_int, checked_text
from icecomb.format.errors import CorruptFileError, IcecombError, ValidationError
from icecomb.format.input_limit import METADATA, check_json, decompressed
from icecomb.format.property.table_property import METADATA_CODEC, METADATA_PATH
from icecomb.format.spec.metadata import TableMetadata
from icecomb.format.spec.partition import PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.snapshot import (
    MetadataLogEntry,
    Operation,
    Snapshot,
    SnapshotLogEntry,
    SnapshotRef,
)
from icecomb.format.spec.sort import SortOrder
from icecomb.format.spec.values.json_object import lazily
from icecomb.format.spec.values.temporal import human_timestamptz
from icecomb.format.storage.file_system import create_own
from icecomb.format.storage.location import check_local_names

if TYPE_CHECKING:
    from icecomb.format.spec.view import ViewMetadata
    from icecomb.format.storage.file_io import FileIO


_SUFFIX: Final = ".metadata.json"
_GZIP: Final = (".gz.metadata.json", ".metadata.json.gz")
COMPRESSION_MARKERS: Final = {"none": "", "uncompressed": "", "gzip": ".gz"}
_NUMBERED: Final = re.compile(r"(v?)([0-9]{1,18})(?:-.*|\.gz)?\.metadata\.json(?:\.gz)?")
"""Names of metadata files, both of tables in folders and of catalogs."""
_VERSION: Final = re.compile("[0-9]{1,18}")
METADATA_SUFFIXES: Final = (".metadata.json", ".metadata.json.gz")
"""Suffixes of metadata files' names, in any kind of table."""
VERSION_HINT: Final = "version-hint.text"
VERSION_NUMBER: Final = r"(0|[1-9][0-9]{0,17})"
UNPUBLISHED: Final = re.compile(
    r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(\.gz)?\.metadata\.json(\.gz)?"
)
"""Names of metadata that Iceberg Java wrote for a file-system table and has not renamed yet."""

_FOLDER_NAME: Final = re.compile(
    rf"v{VERSION_NUMBER}(?:\.gz)?\.metadata\.json|v{VERSION_NUMBER}\.metadata\.json\.gz"
)


def read_metadata(io: FileIO, location: str, table_uuid: str | None = None) -> TableMetadata:
    """Read a metadata file; its name shows whether it is compressed.

    A proxy or cache may answer with a page of its own or with another file: an older version, on
    which a commit would bury the newer ones, or another table's. A file that is not metadata, or
    seems to be another one, is read once more, and that result counts: a table that was moved or
    set back by hand also seems to be another one.

    Args:
        io: File system that holds the file.
        location: The metadata file.
        table_uuid: The table's UUID, if its catalog records it.

    Raises:
        NoSuchFileError: If there is no such file.
        CorruptFileError: If it is not valid table metadata.
        UnsupportedError: If it is of a format version that icecomb does not know.
        ValidationError: If it is on other storage, and names a manifest list of this machine.
    """
    with suppress(CorruptFileError):
        metadata = TableMetadata.from_json(read_metadata_json(io, location), location)
        if not _seems_another(metadata, location, table_uuid):
            return _checked(io, metadata, location)
    return _checked(
        io, TableMetadata.from_json(read_metadata_json(io, location), location), location
    )


def read_named_metadata(io: FileIO, location: str, by: str) -> TableMetadata:
    """Read a metadata file that another file names; see `read_metadata` and `check_local_names`."""
    check_local_names(io, by, [location])
    return read_metadata(io, location)


def _checked(io: FileIO, metadata: TableMetadata, location: str) -> TableMetadata:
    check_local_names(io, location, metadata.manifest_lists())
    return metadata


def _seems_another(metadata: TableMetadata, location: str, table_uuid: str | None) -> bool:
    """Return whether metadata shows that it belongs in another file."""
    if table_uuid is not None and table_uuid.lower() != str(metadata.table_uuid):
        return True
    folder, _, name = location.rpartition("/")
    number = _NUMBERED.fullmatch(name)
    if number is None:
        return False
    table, _, own = folder.rpartition("/")
    # schemes and hosts can be spelled in many ways
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
    """Return the text of a metadata file without parsing it."""
    data = io.read(location)
    if is_gzip(location):
        try:
            data = _ungzipped(data)
        except MemoryError as error:
            raise CorruptFileError(
                f"{location}: there is no memory for it; the limit is {METADATA}",
                hint="Another version of the file may be intact: see the table's metadata log.",
                path=location,
            ) from error
        except ValueError as error:
            raise CorruptFileError(
                f"{location}: named as a gzip file, but is not one: {error}",
                hint=(
                    "Restore the file from a backup, or rename it without .gz if it is plain JSON."
                ),
                path=location,
            ) from error
    try:
        check_json(data)
    except ValueError as error:
        raise CorruptFileError(
            f"{location}: not read as metadata: {error}",
            hint="Another version of the file may be intact: see the table's metadata log."
            if isinstance(error, UnicodeError)
            else "If the file is sound, set that environment variable to more.",
            path=location,
        ) from None
    return data


def _ungzipped(data: bytes) -> bytes:
    """Return the content of a gzip file of one member or several (RFC 1952).

    ValueError is raised if it is not a gzip file, ends too early, or is too large.
    """
    parts: list[bytes] = []
    room, left = METADATA.value << 20, data
    while left or not parts:
        packed = zlib.decompressobj(zlib.MAX_WBITS | 16)
        parts.append(decompressed(packed, left, room, METADATA))
        room -= len(parts[-1])
        left = packed.unused_data.lstrip(b"\0")
    return parts[0] if len(parts) == 1 else b"".join(parts)


def read_metadata_document(io: FileIO, location: str) -> dict[str, Any] | None:
    """Return a metadata file's JSON object, not necessarily valid metadata; None without one.

    What cannot be read as a JSON object is read once more, as in `read_metadata`: a page of a proxy
    does not make rubbish of a table's file.
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
    """Create a metadata file, compressed if its name says so.

    Args:
        io: File system that will hold the file.
        metadata: The metadata to write.
        location: The location of the file, which no other file has.
        base: The metadata that was changed; see `metadata_bytes`.

    Raises:
        FileAlreadyExistsError: If another writer's file exists there; it was left unchanged.
        ValidationError: If the file would be unreadable.
    """
    create_own(io, location, metadata_bytes(metadata, location, base))


def metadata_bytes(
    metadata: TableMetadata, location: str, base: TableMetadata | None = None
) -> bytes:
    """Return the content of a metadata file of this name; all metadata files are encoded here.

    Args:
        base: The metadata that was changed, as read from a file: only what is new is checked.
    """
    check_table(metadata, base)
    try:
        data = metadata.to_json().encode()
    except UnicodeEncodeError as error:
        raise ValidationError(
            f"{location}: the table has text that is not valid Unicode: {error}",
            hint="Check the names and comments of its columns.",
        ) from None
    try:
        check_json(data)
    except ValueError as error:
        raise ValidationError(
            f"{location}: the metadata of the table would not be read again: {error}",
            hint="Expire snapshots; unless they are needed, and that environment variable is set.",
        ) from None
    return gzip.compress(data, mtime=0) if is_gzip(location) else data


def is_gzip(location: str) -> bool:
    """Return whether the name of a metadata file says that it is compressed."""
    return location.endswith(_GZIP)


def metadata_folder(metadata: TableMetadata | ViewMetadata) -> str:
    """Return the folder of new metadata files, of a table also of manifests and their lists."""
    configured = METADATA_PATH.of(metadata.properties)
    return (configured or f"{metadata.location.rstrip('/')}/metadata").rstrip("/")


def new_metadata_location(
    metadata: TableMetadata, previous: str | None, unique: str | None = None
) -> str:
    """Return the location of a metastore table's next metadata file.

    The file's name is `<version>-<uuid>.metadata.json`.

    Args:
        previous: The present metadata file; None for a new table.
        unique: The UUID in the name; by default a new one.
    """
    marker = compression_marker(metadata)
    version = -1 if previous is None else metadata_version(previous)
    name = f"{version + 1:05d}-{unique or uuid.uuid4()}{marker}{_SUFFIX}"
    return f"{metadata_folder(metadata)}/{name}"


def compression_marker(metadata: TableMetadata) -> str:
    """Return the part before ``.metadata.json`` in names of new files: ``.gz`` or nothing."""
    return COMPRESSION_MARKERS[METADATA_CODEC.of(metadata.properties)]


def metadata_version(location: str) -> int:
    """Return the version in the name of a metastore table's metadata file; -1 if there is none."""
    name = location.rsplit("/", 1)[-1]
    head, dash, _ = name.partition("-")
    return int(head) if dash and _VERSION.fullmatch(head) else -1


def version_of(location: str) -> int | None:
    """Return the version in a file-system table's metadata file name; None for other names."""
    match = _FOLDER_NAME.fullmatch(location.rpartition("/")[2])
    return int(match[1] or match[2]) if match else None


_ALLOWED_MS: Final = 60_000
"""How far apart clocks may be; Iceberg Java refuses metadata that goes back by more."""


def clock_skew(metadata: TableMetadata) -> str | None:
    """Return what a table's time in the future means, for people; None if it has none."""
    ahead = metadata.last_updated_ms - time.time_ns() // 1_000_000
    if ahead <= _ALLOWED_MS:
        return None
    seconds = ahead // 1000
    amount = f"{seconds} s" if seconds < 7200 else f"{seconds // 3600} h"
    if seconds >= 172_800:
        amount = f"{seconds // 86_400} days"
    at = human_timestamptz(metadata.last_updated_ms * 1000)
    return (
        f"its newest version is of {at}, {amount} ahead of this machine's clock: as times must "
        "ascend, commits until then are stamped a millisecond after each other, which time travel "
        "and expiry by age go by"
    )


_NUMBERS: Final = (
    "format_version",
    "last_updated_ms",
    "last_column_id",
    "current_schema_id",
    "default_spec_id",
    "last_partition_id",
    "default_sort_order_id",
    "last_sequence_number",
    "next_row_id",
)
_SHORT: Final[dict[str, Callable[[Any], Any]]] = {
    "schemas": Schema.from_json,
    "partition_specs": PartitionSpec.from_json,
    "sort_orders": SortOrder.from_json,
}
_LONG: Final[dict[str, Callable[[Any], Any]]] = {
    "snapshots": Snapshot.from_json,
    "snapshot_log": SnapshotLogEntry.from_json,
    "metadata_log": MetadataLogEntry.from_json,
}

_PARTITION_STATISTICS: Final = {
    "snapshot-id": int,
    "statistics-path": str,
    "file-size-in-bytes": int,
}
_STATISTICS: Final[dict[str, dict[str, type]]] = {
    "statistics": {
        **_PARTITION_STATISTICS,
        "file-footer-size-in-bytes": int,
        "blob-metadata": list,
    },
    "partition_statistics": _PARTITION_STATISTICS,
}
_KEY: Final = {"key-id": str, "encrypted-key-metadata": str}
_BLOB: Final = {"type": str, "snapshot-id": int, "sequence-number": int, "fields": list}
_OPERATIONS: Final = frozenset((None, *map(str, Operation)))


def check_table(metadata: TableMetadata, base: TableMetadata | None = None) -> None:
    """Check that metadata can be read, and is read as what it is.

    Parts of `base`, the metadata that was changed, were read before and are not read again.
    """
    _check_members(metadata)
    for name, decode in _SHORT.items():
        known = set(map(id, getattr(base, name, ())))
        for part in getattr(metadata, name):
            if id(part) not in known:
                _check(name, part, part.to_json(), decode)
    for name, decode in _LONG.items():
        before = lazily(getattr(base, name, ()), decode)
        for part in lazily(getattr(metadata, name), decode).added_to(before):
            _check(name, part, part.to_json(), decode)
            if isinstance(part, Snapshot) and part.operation not in _OPERATIONS:
                raise unreadable(name, f"there is no operation {part.operation!r}")
    refs: Mapping[str, SnapshotRef] = {} if base is None else base.refs
    for name, ref in metadata.refs.items():
        if refs.get(name) is not ref:
            checked_text("name of a branch or tag", name)
            ref.check_limits(refs.get(name))
            _check(f"refs: {name!r}", ref, ref.to_json(), SnapshotRef.from_json)
    if base is None or metadata.properties is not base.properties:
        _check_texts("properties", metadata.properties)
    for name, members in _STATISTICS.items():
        known = set(map(id, getattr(base, name, ())))
        for file in getattr(metadata, name):
            if id(file) not in known:
                _check(name, dict(file), dict(file), lambda read: read)
                _check_kinds(name, file, members)
                for blob in file.get("blob-metadata", ()):
                    _check_kinds(f"{name}: blob-metadata", blob, _BLOB)
    for key in metadata.encryption_keys:
        _check_kinds("encryption_keys", key, _KEY)


def unreadable(what: str, why: object) -> ValidationError:
    """Return the error for metadata that must not be written."""
    reason = why.message if isinstance(why, IcecombError) else why
    return ValidationError(
        f"Cannot commit: the new metadata could not be read again: {what}: {reason}",
        hint="Nothing was changed. Check the types of the values that you set.",
    )


def _check_members(metadata: TableMetadata) -> None:
    for name in _NUMBERS:
        if type(value := getattr(metadata, name)) is not int:
            raise unreadable(name, f"{value!r} is not an integer")
    current = metadata.current_snapshot_id
    if current is not None and type(current) is not int:
        raise unreadable("current_snapshot_id", f"{current!r} is not an integer")
    if not isinstance(metadata.table_uuid, (uuid.UUID, type(None))):
        raise unreadable("table_uuid", f"{metadata.table_uuid!r} is not a UUID")
    checked_text("location of a table", metadata.location)


def _check_texts(what: str, texts: Mapping[str, str]) -> None:
    for key, value in texts.items():
        checked_text(f"name in {what}", key)
        checked_text(f"{what}: {key!r}", value)


def _check_kinds(what: str, raw: Any, members: Mapping[str, type]) -> None:
    if not isinstance(raw, Mapping):
        raise unreadable(what, f"{raw!r} is not an object")
    for name, kind in members.items():
        if kind is int:
            checked_int(f"{what}: {name}", raw.get(name), 0, MAX_LONG)
        elif type(raw.get(name)) is not kind:
            found = f"{raw[name]!r}" if name in raw else "missing"
            raise unreadable(what, f"{name} is {found}, not of type {kind.__name__}")


def _check(what: str, part: Any, raw: Any, decode: Callable[[Any], Any]) -> None:
    try:
        text = json.dumps(raw, ensure_ascii=False, allow_nan=False)
        read = decode(json.loads(text.encode()))
    except (IcecombError, TypeError, ValueError, KeyError, AttributeError) as error:
        raise unreadable(what, error) from error
    if read != part or getattr(read, "extra", None) != getattr(part, "extra", None):
        raise unreadable(what, f"{part!r} would be read as {read!r}")
