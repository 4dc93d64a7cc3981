"""The walk over all files of a table that contain locations, rewriting each.

What contains locations are metadata files, manifest lists, manifests, position delete files and
deletion vectors. Data files, equality deletes and statistics stay as they are. Where files are
read, and where the new ones go, is the `Route`'s.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

from icecomb.format.errors import CorruptFileError, NoSuchFileError, ValidationError
from icecomb.format.manifests.manifest import (
    DataFileContent,
    FileIdentity,
    ManifestContent,
    ManifestEntryStatus,
)
from icecomb.format.manifests.schema import ENTRY_NAMES, MANIFEST_FILE_NAMES
from icecomb.format.relocation.avro_records import AvroRecords, FilePaths
from icecomb.format.relocation.delete_paths import (
    ChangedDeletes,
    change_record,
    changed_deletes,
    described,
)
from icecomb.format.relocation.metadata_paths import (
    changed_document,
    statistics_files,
    with_files,
)
from icecomb.format.spec.metadata import TableMetadata
from icecomb.format.spec.metadata_file import is_gzip, read_metadata_json

if TYPE_CHECKING:
    from icecomb.format.relocation.location_change import LocationChange
    from icecomb.format.storage.file_io import FileIO

_AT_ONCE: Final = 8
"""The number of manifests to read at a time."""
_MEMBERS: Final = ("content", "file_path", "file_size_in_bytes")
"""What is needed of files that do not change."""


class Route(Protocol):
    """Where the files of a table are, and where they go."""

    @property
    def change(self) -> LocationChange:
        """The prefix that is replaced in locations."""

    def found(self, location: str) -> str:
        """Return where the file of a location in the metadata is now."""

    def kept(self, location: str, what: str) -> str:
        """Return the new location of a file that stays as it is.

        Raises:
            ValidationError: If it is not under the source prefix.
        """

    def rewritten(self, location: str, what: str) -> str:
        """Return the new location of a file that is rewritten; raises as `kept`."""

    def put(self, location: str, content: bytes) -> str:
        """Take the new content of a file; return where it is to be copied from."""

    def missing(self, location: str, what: str, error: NoSuchFileError) -> None:
        """Note that a file is missing, or raise the error."""


@dataclass(frozen=True, slots=True)
class MovedFile:
    """A file of the table at its new location.

    Attributes:
        what: What it is.
        source: Where it is to be copied from: the file itself, or a rewritten one.
        target: The new location.
        size: Its length in bytes as its manifest states it; None if none does.
        is_rewritten: Whether it contains locations, and was rewritten.
    """

    what: str
    source: str
    target: str
    size: int | None = None
    is_rewritten: bool = False


@dataclass(slots=True)
class Relocated:
    """The files that a relocation found or wrote.

    Attributes:
        files: All files to be copied, those that name others after these; the metadata file last.
        manifests: The number of rewritten manifests.
        deletes: The number of rewritten position delete files and deletion vectors.
    """

    files: list[MovedFile] = field(default_factory=list)
    manifests: int = 0
    deletes: int = 0


class Relocation:
    """A walk over the versions of a table.

    Args:
        io: File system that holds the files.
        route: Where they are, and where they go.
        end: The metadata file of the last version, as the table's metadata spells it.
        start: The metadata file of a version whose files were brought to the target before; only
            what is new since is in the result.
        without: Older metadata files and statistics to leave out, by where they would be now.
    """

    def __init__(
        self,
        io: FileIO,
        route: Route,
        end: str,
        start: str | None = None,
        *,
        without: Container[str] = (),
    ) -> None:
        self._io = io
        self._route = route
        self._end = end
        self._start = start
        self._without = without
        self._data: dict[str, str] = {}
        self._deletes: dict[str, ChangedDeletes | None] = {}
        self._copied: dict[str, MovedFile] = {}
        self._counted: set[FileIdentity] = set()
        self._known_snapshots: frozenset[int] = frozenset()
        self._properties: Mapping[str, str] = {}

    def run(self) -> Relocated:
        """Rewrite all files that contain locations, and return all files of the table.

        Raises:
            ValidationError: If a file is not under the source prefix, or two locations become one.
            CorruptFileError: If a file is damaged.
            NoSuchFileError: If a file is missing, unless the route notes it.
        """
        result = Relocated()
        document = self._document(self._end)
        # before anything is written
        changed_document(document, self._route.kept, self._route.rewritten)
        self._properties = document.get("properties") or {}
        begun = {} if self._start is None else self._document(self._start)
        self._known_snapshots = frozenset(one["snapshot-id"] for one in begun.get("snapshots", ()))
        snapshots = [
            one
            for one in document.get("snapshots") or ()
            if one["snapshot-id"] not in self._known_snapshots
        ]
        present = {one["snapshot-id"] for one in document.get("snapshots") or ()}
        # the lists of others may be gone by now, and their files are not needed
        both = [one for one in begun.get("snapshots") or () if one["snapshot-id"] in present]
        old = self._manifests(both)
        manifests = self._manifests(snapshots)
        # data files first: position deletes are compared with them
        order = sorted(manifests, key=lambda path: manifests[path]["content"])
        lengths, rewritten = {}, []
        for path, data in self._io.each(
            self._route.found(self._end), self._read_manifest, order, _AT_ONCE
        ):
            if data is None:
                continue
            content = self._changed_manifest(path, data, manifests[path], is_old=path in old)
            lengths[path] = len(content)
            if path not in old:
                result.manifests += 1
                rewritten.append(self._put(path, "manifest file", content))
        for path, file in self._lists(snapshots):
            for record in file.records:
                location = record["manifest_path"]
                record["manifest_path"] = self._route.rewritten(location, "manifest file")
                record["manifest_length"] = lengths.get(location, record["manifest_length"])
            rewritten.append(self._put(path, "manifest list", file.to_bytes()))
        statistics = dict(statistics_files(document))
        for path in dict(statistics_files(begun)):
            statistics.pop(path, None)
        for path, size in statistics.items():
            self._copy("statistics file", path, size)
        result.deletes = len(self._counted)
        result.files = [*self._copied.values(), *rewritten, *self._versions(document)]
        return result

    def _document(self, location: str) -> dict[str, Any]:
        found = self._route.found(location)
        text = read_metadata_json(self._io, found)
        metadata = TableMetadata.from_json(text, found)
        for one in (*metadata.statistics, *metadata.partition_statistics):
            if not isinstance(one.get("statistics-path"), str):
                raise CorruptFileError(
                    f"{found}: a statistics file has no statistics-path",
                    hint="Another version of the file may be intact: see the table's metadata log.",
                    path=found,
                )
        document: dict[str, Any] = json.loads(text)
        return document

    def _versions(self, document: dict[str, Any]) -> Iterator[MovedFile]:
        """Yield the rewritten metadata files, oldest first."""
        log = [entry["metadata-file"] for entry in document.get("metadata-log") or ()]
        if self._start in log:
            log = log[log.index(self._start) + 1 :]
        for location in log:
            try:
                older = self._document(location)
            except NoSuchFileError as error:
                self._route.missing(location, "older metadata file", error)
                continue
            yield self._put_version(location, older)
        yield self._put_version(self._end, document)

    def _put_version(self, location: str, document: dict[str, Any]) -> MovedFile:
        route = self._route
        chosen = with_files(document, lambda path: route.found(path) not in self._without)
        changed = changed_document(chosen, route.kept, route.rewritten)
        text = json.dumps(changed, ensure_ascii=False, separators=(",", ":")).encode()
        TableMetadata.from_json(text, location)
        content = gzip.compress(text, mtime=0) if is_gzip(location) else text
        return self._put(location, "metadata file", content)

    def _manifests(self, snapshots: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
        """Return the manifests of snapshots by location: what each holds, and who added it."""
        manifests: dict[str, Mapping[str, Any]] = {}
        for snapshot in snapshots:
            for location in snapshot.get("manifests") or ():
                # of format version 1, which has data files only
                added = {"content": 0, "added_snapshot_id": snapshot["snapshot-id"]}
                manifests.setdefault(location, added)
        for _, file in self._lists(snapshots):
            for record in file.records:
                held = {
                    "content": record.get("content") or 0,
                    "added_snapshot_id": record.get("added_snapshot_id"),
                }
                manifests.setdefault(record["manifest_path"], held)
        return manifests

    def _lists(self, snapshots: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, AvroRecords]]:
        """Yield the manifest lists of snapshots: one by one, as a long history has many entries."""
        paths = [one["manifest-list"] for one in snapshots if one.get("manifest-list")]
        place = self._route.found(self._end)
        for path, data in self._io.each(place, self._read_list, paths, _AT_ONCE):
            if data is not None:
                yield path, AvroRecords(data, self._route.found(path), MANIFEST_FILE_NAMES)

    def _read_list(self, location: str) -> tuple[str, bytes | None]:
        return location, self._read(location, "manifest list")

    def _read_manifest(self, location: str) -> tuple[str, bytes | None]:
        return location, self._read(location, "manifest file")

    def _read(self, location: str, what: str) -> bytes | None:
        try:
            return self._io.read(self._route.found(location))
        except NoSuchFileError as error:
            self._route.missing(location, what, error)
            return None

    def _changed_manifest(
        self, location: str, data: bytes, manifest: Mapping[str, Any], *, is_old: bool
    ) -> bytes:
        """Return a manifest with other locations.

        Args:
            location: The manifest.
            data: Its bytes.
            manifest: Its record in a manifest list.
            is_old: Whether it was brought to the target before, and only its length is asked for.
        """
        found = self._route.found(location)
        if manifest["content"] == ManifestContent.DATA.value:
            paths = FilePaths(data, found, ENTRY_NAMES, _MEMBERS)
            return paths.to_bytes(
                [
                    self._moved_file(
                        entry["data_file"], is_new=self._is_new(entry, manifest, is_old=is_old)
                    )
                    for entry in paths.entries
                ]
            )
        file = AvroRecords(data, found, ENTRY_NAMES)
        for entry in file.records:
            record = entry["data_file"]
            is_new = self._is_new(entry, manifest, is_old=is_old)
            if record.get("content") == DataFileContent.POSITION_DELETES.value:
                live = entry["status"] != ManifestEntryStatus.DELETED.value
                if live and not is_old:
                    self._counted.add(_identity(record))
                self._change_deletes(record, live=live, is_new=is_new)
            else:
                record["file_path"] = self._moved_file(record, is_new=is_new)
        return file.to_bytes()

    def _is_new(
        self, entry: Mapping[str, Any], manifest: Mapping[str, Any], *, is_old: bool
    ) -> bool:
        """Return whether a file is live, and was not brought to the target before."""
        if is_old or entry["status"] == ManifestEntryStatus.DELETED.value:
            return False
        added_by = entry.get("snapshot_id") or manifest["added_snapshot_id"]
        return added_by not in self._known_snapshots

    def _moved_file(self, record: Mapping[str, Any], *, is_new: bool) -> str:
        """Return the new location of a file that does not change, and note it if it is new."""
        is_data = not record.get("content")
        what = "data file" if is_data else "delete file"
        target = self._moved_data(record["file_path"], what)
        if is_new:
            self._copy(what, record["file_path"], record["file_size_in_bytes"])
        return target

    def _change_deletes(self, record: dict[str, Any], *, live: bool, is_new: bool) -> None:
        location = record["file_path"]
        target = self._route.rewritten(location, "delete file")
        if live:
            self._rewrite_deletes(record, target, is_new=is_new)
        change_record(record, self._deletes.get(location) if live else None, self._moved_reference)
        record["file_path"] = target

    def _rewrite_deletes(self, record: Mapping[str, Any], target: str, *, is_new: bool) -> None:
        """Rewrite a delete file once, and put it if it is new; there may be many large ones."""
        location = record["file_path"]
        wanted = is_new and target not in self._copied
        if location in self._deletes and (self._deletes[location] is None or not wanted):
            return
        found = self._route.found(location)
        try:
            content, changed = changed_deletes(
                self._io,
                described(record, found, self._io.size(found)),
                lambda path: self._moved_target(path, location),
                self._properties,
            )
        except NoSuchFileError as error:
            self._route.missing(location, "position delete file", error)
            self._deletes[location] = None
            return
        self._deletes[location] = changed
        if wanted:
            source = self._route.put(location, content)
            self._copied[target] = MovedFile(
                "position delete file", source, target, len(content), is_rewritten=True
            )

    def _moved_data(self, location: str, what: str) -> str:
        target = self._route.kept(location, what)
        if self._data.setdefault(target, location) != location:
            raise _became_one(self._data[target], location, target)
        return target

    def _moved_target(self, location: str, delete_file: str) -> str:
        """Return the new location of a data file that a delete file names."""
        target = self._route.kept(location, f"data file (in delete file {delete_file})")
        if self._data.get(target, location) != location:
            raise _became_one(self._data[target], location, target)
        return target

    def _moved_reference(self, location: str) -> str | None:
        rest = self._route.change.rest(location)
        return None if rest is None else self._route.kept(location, "data file")

    def _copy(self, what: str, location: str, size: int | None) -> None:
        target = self._route.kept(location, what)
        if target not in self._copied:
            self._copied[target] = MovedFile(what, self._route.found(location), target, size)

    def _put(self, location: str, what: str, content: bytes) -> MovedFile:
        target = self._route.rewritten(location, what)
        source = self._route.put(location, content)
        return MovedFile(what, source, target, len(content), is_rewritten=True)


def _identity(record: Mapping[str, Any]) -> FileIdentity:
    return record["file_path"], record.get("content_offset"), record.get("content_size_in_bytes")


def _became_one(first: str, second: str, target: str) -> ValidationError:
    return ValidationError(
        f"{first} and {second} would both become {target}: for a table, which compares locations "
        "as text, they are two files",
        hint="Rewrite the data files of the table first, so that all are spelled alike.",
        path=second,
    )
