"""Snapshots of a Paimon table and their data files (Paimon docs: Spec, Snapshot, Manifest)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from icecomb.format.errors import CorruptFileError, NoSuchFileError, UnsupportedError, reason_of
from icecomb.format.input_limit import bounded_json

if TYPE_CHECKING:
    from icecomb.format.storage.file_io import FileIO

_NAME: Final = re.compile(r"snapshot-(\d+)")
_ADD, _DELETE = 0, 1
_NEWEST_VERSION: Final = 3
_MANIFEST_VERSION: Final = 2
_FORMATS: Final = {b"PAR1": "Parquet", b"ORC": "ORC"}


@dataclass(frozen=True, slots=True)
class PaimonSnapshot:
    """One snapshot of a table.

    Attributes:
        location: The file it was read from.
        schema_id: The latest schema when it was made.
        base_manifest_list: The list of the manifests of its predecessor.
        delta_manifest_list: The list of the manifests of its changes.
        changelog_manifest_list: The list of the manifests of changelog files, or None.
        index_manifest: The manifest of index files, such as deletion vectors, or None.
        total_record_count: Number of rows in all of its data files.
        time_millis: Time of its creation, in milliseconds since the epoch.
    """

    location: str
    snapshot_id: int
    schema_id: int
    base_manifest_list: str
    delta_manifest_list: str
    changelog_manifest_list: str | None
    index_manifest: str | None
    total_record_count: int
    time_millis: int


@dataclass(frozen=True, slots=True)
class DataFileEntry:
    """A data file of a snapshot.

    Attributes:
        partition: The partition's row, in Paimon's binary form; see `table_import`.
        level: The level of the LSM tree; 0 in append tables.
        name: The file's name, without folders.
        size: Size in bytes.
        deleted_rows: Number of them that are retractions.
        external_path: The file's location, if it is not in the table's folder.
        write_columns: The file's columns, if it does not have all.
    """

    partition: bytes
    bucket: int
    level: int
    name: str
    size: int
    row_count: int
    deleted_rows: int
    schema_id: int
    external_path: str | None
    write_columns: tuple[str, ...] | None

    @property
    def identity(self) -> tuple[bytes, int, int, str]:
        """The key that the addition and the deletion of the same file share."""
        return self.partition, self.bucket, self.level, self.name


class Snapshots:
    """The snapshots of one table, in the table's folder."""

    def __init__(self, io: FileIO, location: str) -> None:
        self._io = io
        self.location = location.rstrip("/")

    def latest(self) -> PaimonSnapshot | None:
        """Return the newest snapshot, or None for a table without data."""
        found = self._numbered()
        return read_snapshot(self._io, found[max(found)]) if found else None

    def retained(self) -> Sequence[PaimonSnapshot]:
        """Return all readable states: snapshots, tags, and decoupled changelogs."""
        locations = [*self._numbered().values()]
        for folder, prefix in (("tag", "tag-"), ("changelog", "changelog-")):
            names = (status.location for status in self._io.list(f"{self.location}/{folder}"))
            locations += [name for name in names if _last(name).startswith(prefix)]
        return [read_snapshot(self._io, location) for location in locations]

    def manifests(self, snapshot: PaimonSnapshot) -> Iterator[tuple[str, int]]:
        """Yield the manifests of a snapshot in order, each with its schema's number."""
        lists = (snapshot.base_manifest_list, snapshot.delta_manifest_list)
        for name in (*lists, snapshot.changelog_manifest_list):
            if name is None:
                continue
            for record in self._records(name):
                yield (
                    self._manifest(record, name),
                    self._value(record, "_SCHEMA_ID", int, name),
                )

    def files(self, snapshot: PaimonSnapshot) -> list[DataFileEntry]:
        """Return the data files of a snapshot, whose number of rows must match."""
        added: dict[tuple[bytes, int, int, str], DataFileEntry] = {}
        deleted: dict[tuple[bytes, int, int, str], str] = {}
        for name in (snapshot.base_manifest_list, snapshot.delta_manifest_list):
            for record in self._records(name):
                manifest = self._manifest(record, name)
                for kind, entry in self.entries(manifest):
                    if entry.identity in (added if kind == _ADD else deleted):
                        what = "added" if kind == _ADD else "deleted"
                        raise self._damaged(manifest, f"data file {entry.name} is {what} twice")
                    if kind == _ADD:
                        added[entry.identity] = entry
                    else:
                        deleted[entry.identity] = manifest
        for identity, manifest in deleted.items():
            if added.pop(identity, None) is None:
                raise self._damaged(manifest, f"it deletes {identity[-1]}, which was never added")
        rows = sum(entry.row_count for entry in added.values())
        if rows != snapshot.total_record_count:
            raise CorruptFileError(
                f"{snapshot.location} says {snapshot.total_record_count} rows, its data files have "
                f"{rows}",
                hint="Restore its manifests from a backup, or roll the table back in Paimon.",
                path=snapshot.location,
            )
        return list(added.values())

    def entries(self, manifest: str) -> Iterator[tuple[int, DataFileEntry]]:
        """Yield the entries of a manifest: 0 for an addition, 1 for a deletion, and the file."""
        for record in self._records(manifest):
            self._check_version(record, manifest)
            kind = self._value(record, "_KIND", int, manifest)
            if kind not in {_ADD, _DELETE}:
                raise self._damaged(manifest, f"the kind of an entry is {kind}")
            file = self._value(record, "_FILE", dict, manifest)
            columns = file.get("_WRITE_COLS")
            yield (
                kind,
                DataFileEntry(
                    partition=self._value(record, "_PARTITION", bytes, manifest),
                    bucket=self._value(record, "_BUCKET", int, manifest),
                    level=self._value(file, "_LEVEL", int, manifest),
                    name=self._value(file, "_FILE_NAME", str, manifest),
                    size=self._value(file, "_FILE_SIZE", int, manifest),
                    row_count=self._value(file, "_ROW_COUNT", int, manifest),
                    deleted_rows=file.get("_DELETE_ROW_COUNT") or 0,
                    schema_id=self._value(file, "_SCHEMA_ID", int, manifest),
                    external_path=file.get("_EXTERNAL_PATH"),
                    write_columns=None if columns is None else tuple(columns),
                ),
            )

    def index_kinds(self, snapshot: PaimonSnapshot) -> set[str]:
        """Return the kinds of index files of a snapshot, such as `DELETION_VECTORS`."""
        name = snapshot.index_manifest
        if name is None:
            return set()
        return {self._value(r, "_INDEX_TYPE", str, name) for r in self._records(name)}

    def _numbered(self) -> dict[int, str]:
        names = (status.location for status in self._io.list(f"{self.location}/snapshot"))
        return {int(m[1]): name for name in names if (m := _NAME.fullmatch(_last(name)))}

    def _records(self, name: str) -> list[dict[str, Any]]:
        from icecomb.format.avro.container import parse_container
        from icecomb.format.avro.records import read_records

        location = f"{self.location}/manifest/{name}"
        if "/" in name or name in {"", ".", ".."}:
            raise CorruptFileError(
                f"{name!r} is not the name of a manifest, but {self.location} names it",
                hint="Roll the table back in Paimon, or restore it from a backup.",
                path=self.location,
            )
        data = self._io.read(location)
        for magic, kind in _FORMATS.items():
            if data.startswith(magic):
                raise UnsupportedError(
                    f"{location} is {kind}: icecomb reads only Avro manifests",
                    hint="Set the option manifest.format=avro and let Paimon compact the manifests "
                    "(CALL sys.compact_manifest).",
                    path=location,
                )
        container = parse_container(data, location)
        return read_records(container, container.schema)

    def _manifest(self, record: dict[str, Any], name: str) -> str:
        """Return the manifest that a record of a manifest list names."""
        self._check_version(record, name)
        found: str = self._value(record, "_FILE_NAME", str, name)
        return found

    def _check_version(self, record: dict[str, Any], name: str) -> None:
        version = record.get("_VERSION")
        if version != _MANIFEST_VERSION:
            location = f"{self.location}/manifest/{name}"
            raise UnsupportedError(
                f"{location}: version {version!r} of manifests is unknown; known is "
                f"{_MANIFEST_VERSION}",
                hint="Another version of Paimon wrote this table: use another version of icecomb.",
                path=location,
            )

    def _value(self, record: dict[str, Any], key: str, kind: type, name: str) -> Any:
        value = record.get(key)
        if not isinstance(value, kind):
            raise self._damaged(name, f"{key} is {value!r:.80}")
        return value

    def _damaged(self, name: str, reason: str) -> CorruptFileError:
        location = f"{self.location}/manifest/{name}"
        return CorruptFileError(
            f"{location}: {reason}",
            hint="Restore the manifest from a backup, or roll the table back in Paimon.",
            path=location,
        )


def read_snapshot(io: FileIO, location: str) -> PaimonSnapshot:
    """Read a snapshot file, or a tag; `NoSuchFileError` if it may have just expired."""
    try:
        data = io.read(location)
        raw = bounded_json(data)
        version = raw.get("version") or 1
        if version not in range(1, _NEWEST_VERSION + 1):
            raise UnsupportedError(
                f"{location}: version {version!r} of snapshots is unknown; known are 1 to "
                f"{_NEWEST_VERSION}",
                hint="A newer Paimon wrote this table: use a newer icecomb.",
                path=location,
            )
        return PaimonSnapshot(
            location=location,
            snapshot_id=int(raw["id"]),
            schema_id=int(raw["schemaId"]),
            base_manifest_list=str(raw["baseManifestList"]),
            delta_manifest_list=str(raw["deltaManifestList"]),
            changelog_manifest_list=raw.get("changelogManifestList"),
            index_manifest=raw.get("indexManifest"),
            total_record_count=int(raw["totalRecordCount"]),
            time_millis=int(raw["timeMillis"]),
        )
    except NoSuchFileError:
        raise
    except (
        ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError,
    ) as error:  # fmt: skip
        raise CorruptFileError(
            f"{location} is truncated or not a snapshot file "
            f"({type(error).__name__}: {reason_of(error)})",
            hint="Restore the snapshot file from a backup.",
            path=location,
        ) from error


def _last(location: str) -> str:
    return location.rsplit("/", 1)[-1]
