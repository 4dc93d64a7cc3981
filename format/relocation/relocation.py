"""The walk over all files of a table that contain locations, rewriting each.

What contains locations are metadata files, manifest lists, manifests, position delete files and
deletion vectors. Data files, equality deletes and statistics stay as they are. Where files are
read, and where the new ones go, is the `Route`'s.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Container, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from icecomb.format.arrow.batch_stream import stream
from icecomb.format.avro.container import (
    SYNC_SIZE,
    ContainerWriter,
    RecordForm,
    parse_container,
    plain_form,
    read_header,
)
from icecomb.format.avro.encoder import encode_string
from icecomb.format.avro.records import check_objects, damaged, fits_exactly, read_records
from icecomb.format.errors import CorruptFileError, NoSuchFileError, ValidationError
from icecomb.format.manifests.manifest import (
    DataFileContent,
    FileIdentity,
    ManifestContent,
    ManifestEntryStatus,
)
from icecomb.format.manifests.schema import ENTRY_NAMES, MANIFEST_FILE_NAMES
from icecomb.format.property.table_property import FOLDER_PATHS, FORMER_FOLDERS
from icecomb.format.relocation.delete_paths import (
    ChangedDeletes,
    change_record,
    changed_deletes,
    described,
)
from icecomb.format.relocation.route import MovedFile, Relocated, Route
from icecomb.format.spec.metadata import TableMetadata
from icecomb.format.spec.metadata_file import is_gzip, read_metadata_json
from icecomb.format.storage.location import check_local_names

if TYPE_CHECKING:
    from icecomb.format.manifests.manifest import DataFile
    from icecomb.format.storage.file_io import FileIO


S = TypeVar("S")
T = TypeVar("T")
Begin: TypeAlias = Callable[[int], AbstractContextManager[Callable[[int], None]]]
"""A function that is told of how many files there are; the other one, how many more are done."""
_Changed: TypeAlias = Generator[tuple[str, bytes], None, None]
"""Files, each with its new content."""

_AT_ONCE: Final = 8
"""The number of manifests to read at a time, and of those to create: mostly, storage is waited for.
"""
_DELETES_AT_ONCE: Final = 16
"""The number of small delete files to read, rewrite and create at a time; of large ones, one."""
_MEMBERS: Final = ("content", "file_path", "file_size_in_bytes")
"""What is needed of files that do not change."""
_LIVE: Final = ("added_files_count", "existing_files_count")


class Relocation:
    """A walk over the versions of a table.

    Args:
        end: The metadata file of the last version, as the table's metadata spells it.
        start: The metadata file of a version whose files were brought to the target before;
            only what is new since is in the result.
        without: Older metadata files and statistics to leave out, by where they would be now.
        begin: Reporter of manifests and delete files.
    """

    def __init__(
        self,
        io: FileIO,
        route: Route,
        end: str,
        start: str | None = None,
        *,
        without: Container[str] = (),
        begin: Begin = lambda _: nullcontext(lambda _: None),
    ) -> None:
        self._io = io
        self._route = route
        self._end = end
        self._start = start
        self._without = without
        self._begin = begin
        self._data: dict[str, str] = {}
        self._copied: dict[str, MovedFile] = {}
        self._counted: set[FileIdentity] = set()
        self._known_snapshots: frozenset[int] = frozenset()
        self._deletes = RelocatedDeleteFiles(io, route, self._moved_target)

    def run(self) -> Relocated:
        """Rewrite all files that contain locations, and return all files of the table."""
        result = Relocated()
        document = self._document(self._end)
        # before anything is written
        changed_document(document, self._route.kept, self._route.rewritten)
        self._deletes.properties = document.get("properties") or {}
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
        lengths: dict[str, int] = {}
        with closing(self._changed(manifests, old, lengths)) as changed:
            rewritten = [*self._all_put("manifest file", changed)]
        result.manifests = len(rewritten)
        rewritten += self._all_put("manifest list", self._changed_lists(snapshots, lengths))
        statistics = dict(statistics_files(document))
        for path in dict(statistics_files(begun)):
            statistics.pop(path, None)
        for path, size in statistics.items():
            self._copy("statistics file", path, size)
        result.deletes = len(self._counted)
        versions = self._all_put("metadata file", self._versions(document))
        result.files = [*self._copied.values(), *rewritten, *versions]
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

    def _versions(self, document: dict[str, Any]) -> Iterator[tuple[str, bytes]]:
        """Yield the rewritten metadata files, oldest first."""
        log = [entry["metadata-file"] for entry in document.get("metadata-log") or ()]
        if self._start in log:
            log = log[log.index(self._start) + 1 :]
        place = self._route.found(self._end)
        check_local_names(self._io, place, [self._route.found(one) for one in log])
        for location, older in self._io.each(place, self._older, log, _AT_ONCE):
            if isinstance(older, NoSuchFileError):
                self._route.missing(location, "older metadata file", older)
            else:
                yield location, self._version(location, older)
        yield self._end, self._version(self._end, document)

    def _older(self, location: str) -> tuple[str, dict[str, Any] | NoSuchFileError]:
        try:
            return location, self._document(location)
        except NoSuchFileError as error:
            return location, error

    def _version(self, location: str, document: dict[str, Any]) -> bytes:
        route = self._route
        chosen = with_files(document, lambda path: route.found(path) not in self._without)
        changed = changed_document(chosen, route.kept, route.rewritten)
        text = json.dumps(changed, ensure_ascii=False, separators=(",", ":")).encode()
        TableMetadata.from_json(text, location)
        return gzip.compress(text, mtime=0) if is_gzip(location) else text

    def _manifests(self, snapshots: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
        """Return the manifests of snapshots by location: what each holds, and who added it."""
        manifests: dict[str, Mapping[str, Any]] = {}
        for snapshot in snapshots:
            for location in snapshot.get("manifests") or ():
                # of format version 1, which has data files only
                added = {"content": 0, "added_snapshot_id": snapshot["snapshot-id"], "live": 0}
                manifests.setdefault(location, added)
        for _, file in self._lists(snapshots):
            for record in file.records:
                held = {
                    "content": record.get("content") or 0,
                    "added_snapshot_id": record.get("added_snapshot_id"),
                    "live": sum(record.get(name) or 0 for name in _LIVE),
                }
                manifests.setdefault(record["manifest_path"], held)
        return manifests

    def _changed_lists(
        self, snapshots: Iterable[Mapping[str, Any]], lengths: Mapping[str, int]
    ) -> Iterator[tuple[str, bytes]]:
        for path, file in self._lists(snapshots):
            for record in file.records:
                location = record["manifest_path"]
                record["manifest_path"] = self._route.rewritten(location, "manifest file")
                record["manifest_length"] = lengths.get(location, record["manifest_length"])
            yield path, file.to_bytes()

    def _lists(self, snapshots: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, AvroRecords]]:
        """Yield the manifest lists of snapshots: one by one, as a long history has many entries."""
        paths = [one["manifest-list"] for one in snapshots if one.get("manifest-list")]
        place = self._route.found(self._end)
        for path, data in self._io.each(place, self._read_list, paths, _AT_ONCE):
            if data is not None:
                yield path, AvroRecords(data, self._route.found(path), MANIFEST_FILE_NAMES)

    def _read_list(self, location: str) -> tuple[str, bytes | None]:
        return location, self._read(location, "manifest list")

    def _read_manifests(self, paths: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        place = self._route.found(self._end)
        for path, data in self._io.each(place, self._read_manifest, paths, _AT_ONCE):
            if data is not None:
                yield path, data

    def _read_manifest(self, location: str) -> tuple[str, bytes | None]:
        return location, self._read(location, "manifest file")

    def _read(self, location: str, what: str) -> bytes | None:
        self._route.rewritten(location, what)  # what is not under the prefix is not looked at
        try:
            return self._io.read(self._route.found(location))
        except NoSuchFileError as error:
            self._route.missing(location, what, error)
            return None

    def _changed(
        self,
        manifests: Mapping[str, Mapping[str, Any]],
        old: Container[str],
        lengths: dict[str, int],
    ) -> _Changed:
        """Yield manifests with other locations, and fill `lengths` with their new ones.

        Args:
            manifests: Their records in manifest lists.
            old: Those that were brought to the target before: only their length is asked for.
        """
        by_content: dict[bool, list[str]] = {True: [], False: []}
        for path, manifest in manifests.items():
            by_content[manifest["content"] == ManifestContent.DATA.value].append(path)
        files = len(manifests) + sum(manifests[path]["live"] for path in by_content[False])
        with self._begin(files) as advance:
            # data files first: position deletes are compared with them
            for one in (
                self._changed_data(by_content[True], manifests, old),
                self._changed_deletes(by_content[False], manifests, old, advance),
            ):
                with closing(one) as changed:
                    for path, content in changed:
                        lengths[path] = len(content)
                        if path not in old:
                            yield path, content
                        advance(1)

    def _changed_data(
        self,
        paths: Iterable[str],
        manifests: Mapping[str, Mapping[str, Any]],
        old: Container[str],
    ) -> _Changed:
        for path, data in self._read_manifests(paths):
            file = FilePaths(data, self._route.found(path), ENTRY_NAMES, _MEMBERS)
            moved = [
                self._moved_file(
                    entry["data_file"],
                    is_new=self._is_new(entry, manifests[path], is_old=path in old),
                )
                for entry in file.entries
            ]
            yield path, file.to_bytes(moved)

    def _changed_deletes(
        self,
        paths: Iterable[str],
        manifests: Mapping[str, Mapping[str, Any]],
        old: Container[str],
        advance: Callable[[int], None],
    ) -> _Changed:
        """Yield manifests of delete files, which are rewritten ahead: each once, and put if new."""

        def works() -> Iterator[RelocatedDeleteFile | _DeleteManifest]:
            for path, data in self._read_manifests(paths):
                file = AvroRecords(data, self._route.found(path), ENTRY_NAMES)
                manifest = _DeleteManifest(path, file, left=manifests[path]["live"])
                for entry in file.records:
                    if not (_is_live(entry) and _is_position_delete(entry["data_file"])):
                        continue
                    is_new = self._is_new(entry, manifests[path], is_old=path in old)
                    work = self._deletes.request(entry["data_file"], is_new=is_new)
                    if work is not None:
                        manifest.left -= 1
                        yield work
                yield manifest

        def begun(work: RelocatedDeleteFile | _DeleteManifest) -> tuple[Any, Any]:
            if isinstance(work, RelocatedDeleteFile) and not work.is_large:
                return work, self._deletes.rewrite(work)
            return work, None

        with closing(_ahead(begun, works(), _DELETES_AT_ONCE)) as results:
            for work, result in results:
                if isinstance(work, RelocatedDeleteFile):
                    self._deletes.note(work, result or self._deletes.rewrite(work))
                    advance(1)
                    continue
                is_old = work.location in old
                for entry in work.file.records:
                    is_new = self._is_new(entry, manifests[work.location], is_old=is_old)
                    self._change_deletes(entry, is_new=is_new, is_old=is_old)
                yield work.location, work.file.to_bytes()
                advance(max(work.left, 0))

    def _is_new(
        self, entry: Mapping[str, Any], manifest: Mapping[str, Any], *, is_old: bool
    ) -> bool:
        """Return whether a file is live, and was not brought to the target before."""
        if is_old or not _is_live(entry):
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

    def _change_deletes(self, entry: Mapping[str, Any], *, is_new: bool, is_old: bool) -> None:
        """Change the entry of a delete file in place, and note its file if that is new."""
        record = entry["data_file"]
        location = record["file_path"]
        if not _is_position_delete(record):
            record["file_path"] = self._moved_file(record, is_new=is_new)
            return
        live = _is_live(entry)
        if live and not is_old:
            self._counted.add(_identity(record))
        changed, moved = self._deletes.result(location) if live else (None, None)
        if is_new and moved is not None:
            self._copied.setdefault(moved.target, moved)
        change_record(record, changed, self._moved_reference)
        record["file_path"] = self._route.rewritten(location, "delete file")

    def _moved_data(self, location: str, what: str) -> str:
        target = self._route.kept(location, what)
        if self._data.setdefault(target, location) != location:
            raise _became_one(self._data[target], location, target)
        return target

    def _moved_target(self, delete_file: str, location: str) -> str:
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

    def _all_put(self, what: str, contents: Iterable[tuple[str, bytes]]) -> Iterator[MovedFile]:
        """Yield files as they are created."""
        return _ahead(lambda one: self._put(one[0], what, one[1]), contents, _AT_ONCE)

    def _put(self, location: str, what: str, content: bytes) -> MovedFile:
        target = self._route.rewritten(location, what)
        source = self._route.put(location, content)
        return MovedFile(what, source, target, len(content), is_rewritten=True)


@dataclass(slots=True)
class _DeleteManifest:
    """A manifest whose delete files are under way, but for some that need no rewriting."""

    location: str
    file: AvroRecords
    left: int


def _ahead(work: Callable[[S], T], items: Iterable[S], at_once: int) -> Generator[T, None, None]:
    """Yield results in order, of threads that have all ended when there are no more, or an error.

    Unlike `FileIO.each`, also on a local disk: it is waited for until what is new is durable.
    """
    producers = (lambda item=item: (work(item),) for item in items)
    yield from stream(producers, at_once)


def _is_live(entry: Mapping[str, Any]) -> bool:
    return bool(entry["status"] != ManifestEntryStatus.DELETED.value)


def _is_position_delete(record: Mapping[str, Any]) -> bool:
    return bool(record.get("content") == DataFileContent.POSITION_DELETES.value)


def _identity(record: Mapping[str, Any]) -> FileIdentity:
    return record["file_path"], record.get("content_offset"), record.get("content_size_in_bytes")


def _became_one(first: str, second: str, target: str) -> ValidationError:
    return ValidationError(
        f"{first} and {second} would both become {target}: for a table, which compares locations "
        "as text, they are two files",
        hint="Rewrite the data files of the table first, so that all are spelled alike.",
        path=second,
    )


_PROPERTIES: Final = tuple(one.key for one in FOLDER_PATHS)
_STATISTICS: Final = ("statistics", "partition-statistics")
_STATISTICS_FILES: Final = tuple((name, "statistics-path") for name in _STATISTICS)


def changed_document(
    document: dict[str, Any], kept: Callable[[str, str], str], rewritten: Callable[[str, str], str]
) -> dict[str, Any]:
    """Return the JSON object of a metadata file with other locations; other members stay.

    Args:
        kept: Function for the new location of what is not changed, from the old one and what it
            is.
        rewritten: The same for files that contain locations themselves.
    """
    changed = dict(document)
    changed["location"] = kept(document["location"], "table location")
    properties = dict(document.get("properties") or {})
    for name in _PROPERTIES:
        if name in properties:
            properties[name] = kept(str(properties[name]), f"property {name}")
    if FORMER_FOLDERS.key in properties:
        moved = _former(FORMER_FOLDERS.of(properties), kept)
        properties[FORMER_FOLDERS.key] = json.dumps(moved)
    if properties:
        changed["properties"] = properties
    if document.get("snapshots"):
        changed["snapshots"] = [_snapshot(one, rewritten) for one in document["snapshots"]]
    if document.get("metadata-log"):
        changed["metadata-log"] = [
            {**entry, "metadata-file": rewritten(entry["metadata-file"], "metadata file")}
            for entry in document["metadata-log"]
        ]
    for name in _STATISTICS:
        if document.get(name):
            changed[name] = [
                {**one, "statistics-path": kept(one["statistics-path"], "statistics file")}
                for one in document[name]
            ]
    return changed


def _former(folders: Iterable[str], kept: Callable[[str, str], str]) -> list[str]:
    found = []
    for folder in folders:
        # no file of the table is in one that is not moved
        with suppress(ValidationError):
            found.append(kept(folder, f"property {FORMER_FOLDERS.key}"))
    return found


def statistics_files(document: dict[str, Any]) -> Iterator[tuple[str, int | None]]:
    """Yield the statistics files of a metadata file, each with its length in bytes."""
    for name in _STATISTICS:
        for one in document.get(name) or ():
            yield one["statistics-path"], one.get("file-size-in-bytes")


def with_files(document: dict[str, Any], is_kept: Callable[[str], bool]) -> dict[str, Any]:
    """Return a metadata file's object with only some of its older versions and statistics."""
    chosen = {
        name: [one for one in document[name] if is_kept(one[member])]
        for name, member in (("metadata-log", "metadata-file"), *_STATISTICS_FILES)
        if document.get(name)
    }
    return {**document, **chosen}


def _snapshot(snapshot: dict[str, Any], rewritten: Callable[[str, str], str]) -> dict[str, Any]:
    changed = dict(snapshot)
    if "manifest-list" in snapshot:
        changed["manifest-list"] = rewritten(snapshot["manifest-list"], "manifest list")
    if snapshot.get("manifests"):
        # of format version 1
        changed["manifests"] = [rewritten(one, "manifest file") for one in snapshot["manifests"]]
    return changed


_WHAT: Final = "position delete file"
SMALL_BYTES: Final = 4 << 20
_SMALL_ROWS: Final = 1 << 18


@dataclass(frozen=True, slots=True)
class RelocatedDeleteFile:
    """A file of positions, or of deletion vectors, to be rewritten.

    Attributes:
        location: The file, as its manifest spells it.
        is_wanted: Whether to create the new one; else only its description is needed.
    """

    location: str
    file: DataFile
    is_wanted: bool

    @property
    def is_large(self) -> bool:
        """Whether several at a time might need too much memory."""
        file = self.file
        return file.file_size_in_bytes > SMALL_BYTES or file.record_count > _SMALL_ROWS


class RelocatedDeleteFiles:
    """What became of delete files.

    Args:
        moved: Function for the new path of a data file, which a delete file names.
    """

    def __init__(self, io: FileIO, route: Route, moved: Callable[[str, str], str]) -> None:
        self.properties: Mapping[str, str] = {}
        self._io = io
        self._route = route
        self._moved = moved
        self._requested: set[str] = set()
        self._wanted: set[str] = set()
        self._done: dict[str, tuple[ChangedDeletes, MovedFile | None]] = {}

    def request(self, record: Mapping[str, Any], *, is_new: bool) -> RelocatedDeleteFile | None:
        """Return the file to rewrite for a live entry; None if that was returned before.

        Args:
            is_new: Whether the new file is to be created.
        """
        location = record["file_path"]
        target = self._route.rewritten(location, "delete file")
        is_wanted = is_new and target not in self._wanted
        if location in self._requested and not is_wanted:
            return None
        self._requested.add(location)
        if is_wanted:
            self._wanted.add(target)
        return RelocatedDeleteFile(
            location, described(record, self._route.found(location)), is_wanted
        )

    def rewrite(
        self, one: RelocatedDeleteFile
    ) -> tuple[ChangedDeletes, MovedFile | None] | NoSuchFileError:
        """Rewrite a file, in any thread, and create it if wanted; return what `note` takes."""
        moved = partial(self._moved, one.location)
        try:
            content, changed = changed_deletes(self._io, one.file, moved, self.properties)
        except NoSuchFileError as error:
            return error
        if not one.is_wanted:
            return changed, None
        target = self._route.rewritten(one.location, "delete file")
        source = self._route.put(one.location, content)
        return changed, MovedFile(_WHAT, source, target, len(content), is_rewritten=True)

    def note(
        self,
        one: RelocatedDeleteFile,
        result: tuple[ChangedDeletes, MovedFile | None] | NoSuchFileError,
    ) -> None:
        """Keep the result of a file, for `result`; raise the error if it may not be missing."""
        if isinstance(result, NoSuchFileError):
            self._route.missing(one.location, _WHAT, result)
        else:
            self._done[one.location] = result

    def result(self, location: str) -> tuple[ChangedDeletes | None, MovedFile | None]:
        """Return how a rewritten file is described, and the new file if it was created."""
        return self._done.get(location, (None, None))


_CODECS: Final = {"null": "uncompressed", "zstandard": "zstd", "snappy": "snappy"}
"""What Iceberg calls Avro's codecs; others are written as gzip."""
_OWN: Final = frozenset(("avro.schema", "avro.codec"))


class AvroFile:
    """A manifest or manifest list in memory, whose records use `names` of field ids."""

    def __init__(self, data: bytes, location: str, names: Mapping[int, str]) -> None:
        self._container = parse_container(data, location)
        self._plain = plain_form(self._container, names)
        other = plain_form(self._container, names, fixed_as_bytes=True)
        # as decode_manifest: Iceberg Java 1.11 declares `fixed`, and writes `bytes`
        if other != self._plain and not fits_exactly(self._container, self._plain):
            self._plain = other
        check_objects(self._container, self._plain)
        _, at = read_header(data)
        self._sync = data[at : at + SYNC_SIZE]

    def _file(self, records: Iterable[bytes]) -> bytes:
        """Return the file with other encoded records."""
        container = self._container
        codec = container.text("avro.codec") or "null"
        writer = ContainerWriter(
            RecordForm(container.text("avro.schema") or "", _not_encoded),
            {key: container.text(key) or "" for key in container.metadata if key not in _OWN},
            codec=_CODECS.get(codec, "gzip"),
            sync=self._sync,
        )
        for record in records:
            writer.add_encoded(record)
        return writer.finish()


class AvroRecords(AvroFile):
    """The records of a file, to be changed in place."""

    def __init__(self, data: bytes, location: str, names: Mapping[int, str]) -> None:
        super().__init__(data, location, names)
        self.records: list[dict[str, Any]] = read_records(self._container, self._plain)

    def to_bytes(self) -> bytes:
        """Return the file with the records as they are now."""
        return self._file(map(_encoder(self._plain), self.records))


class FilePaths(AvroFile):
    """The paths of the files of a manifest, to be replaced without encoding the entries again.

    Args:
        members: Members of `data_file` to decode, `file_path` among them.
    """

    def __init__(
        self, data: bytes, location: str, names: Mapping[int, str], members: Container[str]
    ) -> None:
        super().__init__(data, location, names)
        self.entries: list[dict[str, Any]] = []
        self._encoded: list[bytes] = []
        for entry, encoded in self._decoded(members):
            self.entries.append(entry)
            self._encoded.append(encoded)

    def to_bytes(self, paths: Sequence[str]) -> bytes:
        """Return the manifest with other paths, one for each entry."""
        return self._file(map(self._replaced, self.entries, self._encoded, paths))

    def _decoded(self, members: Container[str]) -> Iterator[tuple[dict[str, Any], bytes]]:
        import fastavro

        fields = [_with_members(field, members) for field in self._plain["fields"]]
        content = b"".join(self._container.blocks)
        body, start = BytesIO(content), 0
        try:
            written = fastavro.parse_schema(self._plain)
            chosen = fastavro.parse_schema({**self._plain, "fields": fields})
            for _ in range(self._container.record_count):
                entry: Any = fastavro.schemaless_reader(body, written, chosen)
                end = body.tell()
                yield entry, content[start:end]
                start = end
        except Exception as error:  # damaged bytes surface as errors of many kinds
            raise damaged([self._container], error) from error
        if start != len(content):
            raise damaged([self._container], ValueError("they end before the file"))

    def _replaced(self, entry: Mapping[str, Any], encoded: bytes, path: str) -> bytes:
        old = encode_string(entry["data_file"]["file_path"])
        if encoded.count(old) == 1:
            return encoded.replace(old, encode_string(path))
        # another member has the same text
        import fastavro

        record: Any = fastavro.schemaless_reader(
            BytesIO(encoded), fastavro.parse_schema(self._plain), None
        )
        record["data_file"]["file_path"] = path
        return _encoder(self._plain)(record)


def _with_members(field: Mapping[str, Any], members: Container[str]) -> Mapping[str, Any]:
    if field["name"] != "data_file":
        return field
    kept = [member for member in field["type"]["fields"] if member["name"] in members]
    return {**field, "type": {**field["type"], "fields": kept}}


def _encoder(plain: Any) -> Callable[[Any], bytes]:
    """Return a function that encodes what fastavro decoded."""
    import fastavro

    parsed = fastavro.parse_schema(plain)

    def encode(record: Any) -> bytes:
        out = BytesIO()
        fastavro.schemaless_writer(out, parsed, record)
        return out.getvalue()

    return encode


def _not_encoded(_: Any) -> bytes:
    raise NotImplementedError("records are given encoded")
