"""Persistent cache of decoded manifests in a local folder: one Arrow file per manifest.

Files are mapped into memory, so only the accessed parts are read. A file appears complete or not at
all and ends with a checksum: several processes may share a folder, and a damaged file is
re-created. Failures to write are only logged: the folder just saves time.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import stat
import tempfile
import time
from pathlib import Path
from threading import Lock
from typing import Any, Final

import pyarrow as pa
from isal import isal_zlib

from icecomb.format.manifests.columns import ManifestColumns, PartitionColumn, cache_key
from icecomb.format.manifests.manifest import ManifestFile
from icecomb.format.spec.types import PrimitiveType, parse_type

_LOG = logging.getLogger(__name__)
_LAYOUT: Final = b"icecomb.manifest.3"
"""Version of the files' layout, so that releases with different layouts can share a folder."""
_DESCRIPTION: Final = b"icecomb.manifest"
_PARTITION: Final = "partition."
_CHECKSUM_BYTES: Final = 4
_SUFFIX: Final = ".arrow"
_ROOM: Final = 0.9
"""Fraction of the limit to which the folder is reduced when files are dropped."""
_WRITING_NS: Final = 600 * 10**9
"""Nanoseconds after which the writer of an unfinished file counts as dead."""


class ManifestStore:
    """A folder of up to `limit` bytes of decoded manifests that drops the least recently used.

    It is created on demand, with access only for this user.
    """

    def __init__(self, folder: str | Path, limit: int) -> None:
        self.folder = Path(folder).expanduser()
        self.limit = limit
        self._bytes: int | None = None
        self._lock = Lock()
        self._is_own: bool | None = None

    def find(self, manifest: ManifestFile, statistics: frozenset[str]) -> ManifestColumns | None:
        """Return the stored columns of a manifest if they are intact and have these statistics."""
        path = self._path(manifest)
        if not self._is_trusted():
            return None
        try:
            with pa.memory_map(str(path)) as mapped:
                content = mapped.read_buffer()
        except OSError:
            return None
        try:
            found = _decode(content, manifest)
        except (pa.ArrowException, ValueError, KeyError, TypeError) as error:
            _LOG.warning("%s is damaged and will be re-created: %s", path, error)
            return None
        if not statistics <= found.statistics:
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return found

    def keep(self, columns: ManifestColumns) -> None:
        """Store a manifest, replacing an earlier copy."""
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not self._is_trusted():
                return
            encoded = _encode(columns)
            checksum = isal_zlib.crc32(encoded).to_bytes(_CHECKSUM_BYTES, "little")
            size = encoded.size + _CHECKSUM_BYTES
            if size > self.limit:
                return
            self._make_room(size)
            self._write(self._path(columns.manifest), encoded, checksum)
        except OSError as error:
            self._bytes = None
            _LOG.warning("Cannot store a decoded manifest in %s: %s", self.folder, error)

    def _is_trusted(self) -> bool:
        """Return whether nobody else can put files into the folder, which would be believed."""
        if self._is_own is None:
            try:
                status = self.folder.stat()
            except OSError:
                return False  # there is none yet
            others = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
            self._is_own = status.st_uid == os.geteuid() and not others
            if not self._is_own:
                _LOG.warning(
                    "%s is not used for decoded manifests: other users may write to it; give the "
                    "folder to the user alone (chmod 700)",
                    self.folder,
                )
        return self._is_own

    def _path(self, manifest: ManifestFile) -> Path:
        name = hashlib.sha256(repr((_LAYOUT, cache_key(manifest))).encode())
        return self.folder / (name.hexdigest() + _SUFFIX)

    def _write(self, path: Path, content: pa.Buffer, checksum: bytes) -> None:
        descriptor, temporary = tempfile.mkstemp(dir=self.folder, suffix=".tmp")
        try:
            with os.fdopen(descriptor, "wb") as out:
                out.write(content)
                out.write(checksum)
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise

    def _make_room(self, size: int) -> None:
        with self._lock:
            if self._bytes is None or self._bytes + size > self.limit:
                self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._bytes = self._drop_old(size)
            self._bytes += size

    def _drop_old(self, size: int) -> int:
        """Drop files until another one fits; return the number of bytes that remain."""
        found, being_written = [], 0
        written_off = time.time_ns() - _WRITING_NS
        with os.scandir(self.folder) as entries:
            for entry in entries:
                if entry.name.endswith((_SUFFIX, ".tmp")):
                    with contextlib.suppress(FileNotFoundError):
                        status = entry.stat()
                        if entry.name.endswith(".tmp") and status.st_mtime_ns > written_off:
                            being_written += status.st_size
                        else:
                            found.append((status.st_mtime_ns, status.st_size, entry.path))
        held = being_written + sum(length for _, length, _ in found)
        if held + size <= self.limit:
            return held
        for _, length, path in sorted(found):
            if held + size <= self.limit * _ROOM:
                break
            Path(path).unlink(missing_ok=True)
            held -= length
        return held


def _encode(columns: ManifestColumns) -> pa.Buffer:
    names = columns.names
    arrays = [columns.column(name) for name in names]
    fields = columns.partition_columns
    arrays += [columns.partition(at) for at in range(len(fields))]
    names += [f"{_PARTITION}{at}" for at in range(len(fields))]
    description = {
        "key": cache_key(columns.manifest),
        "partition": [_field_to_json(field) for field in fields],
        "exact": columns.has_exact_bounds,
    }
    schema = pa.schema(
        [pa.field(name, array.type) for name, array in zip(names, arrays, strict=True)],
        {_DESCRIPTION: json.dumps(description)},
    )
    out = pa.BufferOutputStream()
    with pa.ipc.new_file(out, schema) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))
    return out.getvalue()


def _decode(content: pa.Buffer, manifest: ManifestFile) -> ManifestColumns:
    end = content.size - _CHECKSUM_BYTES
    if end <= 0:
        raise ValueError("it is too short")
    body = content.slice(0, end)
    checksum = content.slice(end).to_pybytes()
    if isal_zlib.crc32(body).to_bytes(_CHECKSUM_BYTES, "little") != checksum:
        raise ValueError("its checksum is wrong")
    with pa.ipc.open_file(body) as reader:
        batch = reader.get_batch(0)
    description = json.loads(batch.schema.metadata[_DESCRIPTION])
    if description["key"] != list(cache_key(manifest)):
        raise ValueError("it belongs to another manifest")
    fields = tuple(map(_field_from_json, description["partition"]))
    partition = tuple(batch.column(f"{_PARTITION}{at}") for at in range(len(fields)))
    columns = {
        name: batch.column(name) for name in batch.schema.names if not name.startswith(_PARTITION)
    }
    exact = bool(description["exact"])
    return ManifestColumns(manifest, columns, fields, partition, has_exact_bounds=exact)


def _field_to_json(field: PartitionColumn) -> list[Any]:
    kind = None if field.field_type is None else str(field.field_type)
    return [field.field_id, field.name, kind]


def _field_from_json(raw: list[Any]) -> PartitionColumn:
    field_id, name, kind = raw
    field_type = None if kind is None else parse_type(kind)
    if field_type is not None and not isinstance(field_type, PrimitiveType):
        raise ValueError(f"a partition field of type {kind}")
    return PartitionColumn(field_id, name, field_type)
