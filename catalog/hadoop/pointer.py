"""The pointer of a file-system table: the number of its newest metadata file.

A commit creates the file of the next number. Its text is written under a temporary name and then
published under the final one, which never replaces a file (`FileIO.create`): of several writers
exactly one succeeds, in one process or in many. There are no locks for that. Writers queue, so that
none of them loses every time: those on one machine by `icecomb.catalog.hadoop.process_lock`, and
where that is impossible, as on HDFS, by `icecomb.catalog.hadoop.process_lock`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from icecomb.catalog.commit.commit import check_commit_allowed, check_new_data_folder
from icecomb.catalog.commit.commit_queue import fair_lock
from icecomb.catalog.commit.pointer import (
    Committed,
    Conflict,
    Described,
    MetadataVersion,
    Outcome,
    Unknown,
)
from icecomb.catalog.configuration.catalog_property import (
    FOLDER_LOCK_INTERVAL,
    FOLDER_LOCK_PATIENCE,
    FOLDER_LOCK_TIMEOUT,
    LOCK_IMPL,
)
from icecomb.catalog.hadoop.process_lock import Patience, ProcessLock, Tickets
from icecomb.format.errors import (
    CorruptFileError,
    FileAlreadyExistsError,
    FileStateUnknownError,
    IcecombError,
    NoSuchFileError,
    NoSuchIcebergTableError,
    NoSuchTableError,
    UnsupportedError,
    ValidationError,
)
from icecomb.format.holding import is_interrupt
from icecomb.format.shell_command import shell_command
from icecomb.format.spec.metadata_file import (
    METADATA_SUFFIXES,
    VERSION_HINT,
    VERSION_NUMBER,
    compression_marker,
    metadata_bytes,
    read_metadata,
    read_metadata_json,
    version_of,
)

if TYPE_CHECKING:
    from icecomb.format.holding import Holding
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.storage.file_io import FileIO
    from icecomb.format.storage.file_system import FileSystem

_NO_LOCK: Final = {None, "org.apache.iceberg.util.LockManagers$InMemoryLockManager"}
"""Iceberg's default serializes the threads of one process, as icecomb's queue does."""
_HINT_BYTES: Final = 32
"""More than a version's number, and the end of its line, take."""
_SPELLINGS: Final = (".metadata.json", ".gz.metadata.json", ".metadata.json.gz")


class HadoopPointer:
    """The `MetadataPointer` of a file-system table; `folder` has no trailing slash.

    Attributes:
        name: The table's name, for messages.
        properties: The properties of the catalog.
    """

    def __init__(self, io: FileIO, folder: str, name: str, properties: Mapping[str, str]) -> None:
        self._io = io
        self._folder = folder
        self.name = name
        self.properties = properties
        self._files = VersionFiles(io, folder)
        self._locks: tuple[ProcessLock, Tickets] | None = None
        self._seen: TableMetadata | None = None

    def check_writable(self, metadata: TableMetadata) -> None:
        """Implement `MetadataPointer.check_writable`; refuse a dropped table.

        Writing to it would create its folder again. A ``lock-impl`` that names a Java class, and
        storage that replaces files, are refused, too.
        """
        check_commit_allowed(self.name, metadata)
        self._check_lock()
        self._check_storage(self._files.folder)
        if metadata is self._seen and self._storage.has_slow_requests:
            # it existed when the change began, and `swap` checks again before publishing
            return
        if not self._io.is_folder(self._files.folder):
            raise self._missing()
        self._seen = metadata

    def check_deletable(self, metadata: TableMetadata) -> None:
        """Implement `MetadataPointer.check_deletable`; refuse a copied or registered table.

        Also refused is another path of the table's folder: of the files at its location it is
        unknown whether the table there needs them.
        """
        location = metadata.location.rstrip("/")
        if self._is_at(location):
            return
        newest = f"{self._files.folder}/{(self._files.newest() or '').rpartition('/')[2]}"
        raise ValidationError(
            f"Files of {self.name} cannot be deleted from here: its folder is {self._folder}, but "
            f"its metadata names {location}, whose files may be needed by a table there",
            hint=f"Open {location} instead if that is this table by another path; else make this "
            f"one independent: {shell_command('table', 'relocate', newest)} --to <another folder> "
            "--copy.",
            table=self.name,
            path=location,
        )

    def own_folders(self) -> Sequence[str]:
        """Implement `WriteGuard.own_folders`: a table of a folder has that one."""
        return (self._folder,)

    def _is_at(self, location: str) -> bool:
        """Return whether the table's folder is this one, however it is spelled."""
        if location == self._folder:
            return True
        from icecomb.format.operation.expiry.location_keys import Spelling

        return Spelling(self._io.properties).are_same(location, self._folder)

    def locate(self) -> str:
        """Return the table's newest metadata file, without opening it.

        NoSuchIcebergTableError is raised if the folder is a table of a catalog with a server.
        """
        location = self._files.newest()
        if location is not None:
            return location
        other = self._files.others()
        if other is None:
            raise self._missing()
        raise NoSuchIcebergTableError(
            f"{self.name} is not a file-system table: {other} belongs to a catalog",
            hint="Open it by that catalog, or open the metadata file itself to read it.",
            table=self.name,
            path=other,
        )

    def load(self) -> MetadataVersion:
        """Implement `MetadataPointer.load`; two different newest files raise CorruptFileError."""
        # others delete old files, and a proxy may report a deleted file as existing
        with suppress(NoSuchFileError):
            return self._load_newest()
        return self._load_newest()

    def _load_newest(self) -> MetadataVersion:
        from icecomb.format.property.table_property import METADATA_DELETE_AFTER_COMMIT

        location = self.locate()
        self._files.check_unambiguous(location, self.name)
        metadata = read_metadata(self._io, location)
        if METADATA_DELETE_AFTER_COMMIT.of(metadata.properties):
            newest = self._files.behind_a_gap(location)
            if newest is not None:
                return MetadataVersion(newest, read_metadata(self._io, newest))
        return MetadataVersion(location, metadata)

    def stage(self, base: MetadataVersion | None, metadata: TableMetadata) -> MetadataVersion:
        """Implement `MetadataPointer.stage`: choose the name; writing the file is the commit.

        All writers on one base must compete for one name. So it depends only on the base: a new
        ``write.metadata.compression-codec`` applies from the commit after the one that sets it.
        """
        from icecomb.format.property.table_property import METADATA_PATH

        self._check_lock()
        if METADATA_PATH.key in metadata.properties:
            raise ValidationError(
                f"{self.name}: a file-system table cannot have {METADATA_PATH.key}",
                hint="Its metadata is found in its own folder only; remove the property.",
                table=self.name,
            )
        if base is not None and base.metadata.location != metadata.location:
            raise ValidationError(
                f"{self.name}: the location of a file-system table cannot be changed from "
                f"{base.metadata.location} to {metadata.location}",
                hint="Create a table at the other location and copy the rows into it.",
                table=self.name,
            )
        if base is not None:
            check_new_data_folder(self, self._io, base.metadata, metadata)
        compression_marker(metadata)
        if base is None:
            # no folder yet: its name must not look taken to other writers
            self._check_storage(self._folder.rpartition("/")[0])
        marker = "" if base is None else compression_marker(base.metadata)
        location = self._files.name(1 if base is None else _number(base) + 1, marker)
        return MetadataVersion(location, metadata)

    def discard(self, new: MetadataVersion) -> None:
        """Implement `MetadataPointer.discard`: a file of this name, if any, is another writer's."""

    def swap(self, expected: MetadataVersion | None, new: MetadataVersion) -> Outcome:
        version = _number(new)
        # most writers that are too late find out here, before they send anything; where requests
        # are slow, the one that writes the file tells as well
        if (
            expected is not None
            and not self._storage.has_slow_requests
            and self._io.exists(new.location)
        ):
            return Conflict("another writer was first", new.location)
        data = metadata_bytes(new.metadata, new.location, expected.metadata if expected else None)
        with (
            self._io.prepare(new.location, data) as publish,
            self._files.hint(version) as write_hint,
        ):
            overtaken = self._overtaken(expected, new)
            if overtaken is not None:
                return overtaken
            outcome = self._publish(expected, new, publish)
            if isinstance(outcome, Committed):
                write_hint()
        return outcome

    def queue(self, held: Holding, base: MetadataVersion | None = None) -> bool:
        """Implement `MetadataPointer.queue`; on local folders, also among processes."""
        lock = fair_lock((HadoopPointer, self._folder))
        timeout_s = FOLDER_LOCK_TIMEOUT.of(self.properties) / 1000
        waited = lock.take(held, self.name, timeout_s, FOLDER_LOCK_TIMEOUT.key)
        if self._locks is None:
            patience_s = FOLDER_LOCK_PATIENCE.of(self.properties) / 1000
            interval_s = FOLDER_LOCK_INTERVAL.of(self.properties) / 1000
            patience = Patience(self._files.newest, patience_s, timeout_s)
            self._locks = (
                ProcessLock(self._io, self._folder, patience),
                Tickets(self._io, self._files.folder, patience, interval_s),
            )
        processes, tickets = self._locks
        if processes.take(held):
            return waited or (base is not None and self._files.find(_number(base) + 1) is not None)
        return tickets.let_pass(held) or waited

    def wait_in_queue(self, base: MetadataVersion) -> bool:
        """Implement `MetadataPointer.wait_in_queue`, where processes cannot lock a folder."""
        return self._locks is not None and self._locks[1].draw(_number(base))

    def exclusive(self, held: Holding, metadata: Described) -> bool:  # noqa: ARG002
        """Implement `MetadataPointer.exclusive`: there are no locks."""
        return False

    @property
    def _storage(self) -> FileSystem:
        return self._io.served_by(self._folder)

    def _check_lock(self) -> None:
        """Refuse a lock that others may rely on, as Iceberg's ``HadoopCatalog`` takes it."""
        named = LOCK_IMPL.of(self.properties)
        if named not in _NO_LOCK:
            raise UnsupportedError(
                f"{self.name}: {LOCK_IMPL} is {named}, a Java class: icecomb cannot take "
                "that lock, and would write without it",
                hint=f"Leave {LOCK_IMPL} out for icecomb if all writers publish by a rename that "
                "replaces nothing, as on HDFS, or let Iceberg Java write; reading needs no lock.",
                table=self.name,
            )

    def _check_storage(self, folder: str) -> None:
        """Refuse storage where two concurrent commits may both succeed, and one is lost."""
        if not self._io.replaces_nothing(folder):
            raise UnsupportedError(
                f"{self.name}: the store of {folder} replaces objects despite a conditional write "
                "(If-None-Match: *): of two commits at once one would be lost",
                hint="Keep the table in a metastore, or update the store's software.",
                table=self.name,
            )

    def _missing(self) -> NoSuchTableError:
        return NoSuchTableError(
            f"There is no table {self.name}",
            hint="Check the name: a table is a folder with metadata/v1.metadata.json or "
            "later ones.",
            table=self.name,
        )

    def _overtaken(self, expected: MetadataVersion | None, new: MetadataVersion) -> Conflict | None:
        """Return the conflict with a commit that is visible before it is tried."""
        if expected is None:
            found = self._files.newest()
            return Conflict("the name is taken", found) if found else None
        version = _number(new)
        looked = self._answers(
            lambda: expected.location if self._is_of_this_table(expected) else None,
            # another writer may compress its files; whether this name is free is seen when it is
            # published
            lambda: self._files.find(version, but=new.location),
            lambda: self._beyond(version),
            # a writer that continues from one of two bases hides the other
            lambda: self._files.check_unambiguous(expected.location, self.name),
        )
        if next(looked) is None:
            return Conflict("another writer was first: its base is gone", self._files.newest())
        found = next(looked) or next(looked) or next(looked)
        return Conflict("another writer was first", found) if found else None

    def _answers(self, *questions: Callable[[], str | None]) -> Iterator[str | None]:
        """Yield the questions' answers, asked concurrently where that is faster."""
        return self._io.each(self._folder, lambda ask: ask(), questions, needs_all=False)

    def _beyond(self, version: int) -> str | None:
        """Return a file newer than a version's, if the hint names one.

        If a table has its old files deleted, a late writer's base may still exist, because a writer
        was killed before deleting it, while the file after it is gone.
        """
        found = self._files.beyond(version)
        return None if found is None else found[1]

    def _is_of_this_table(self, expected: MetadataVersion) -> bool:
        """Return whether the base still exists; a re-created table has new files and uuid."""
        try:
            text = read_metadata_json(self._io, expected.location)
        except NoSuchFileError:
            return False
        if expected.metadata.table_uuid is None:
            return True
        uuid = str(expected.metadata.table_uuid).encode()
        return uuid in text or uuid in text.lower()

    def _publish(
        self,
        expected: MetadataVersion | None,
        new: MetadataVersion,
        publish: Callable[[], None],
    ) -> Outcome:
        try:
            publish()
        except IcecombError as error:
            if is_interrupt(error):
                raise
            if isinstance(error, FileAlreadyExistsError) and self._storage.refusal_is_proof:
                return Conflict("another writer was first", new.location)
            # the request may have been sent twice on its way: an existing file may be this writer's
            return self._after(error, new)
        # The file exists, and readers may see it: from here on no error may look like a failure.
        if expected is None:
            return Committed()
        version = _number(new)
        # If the table has its old files deleted, this file may have filled the gap that another
        # writer's file left, long after that writer's commit.
        try:
            looked = self._answers(
                lambda: self._beyond(version),
                lambda: expected.location if self._io.exists(expected.location) else None,
            )
            newest = next(looked)
            if newest is None or self._files.find(version + 1) is not None:
                if next(looked) is not None:
                    return Committed()
                newest = self._files.newest()
        except IcecombError as error:
            return Unknown(error.message, None, error)
        if newest == new.location:
            return Committed()
        gone = NoSuchFileError(
            f"Files after {expected.location} were deleted during the commit",
            hint="Load the table again and check whether it has the change before repeating it.",
            table=self.name,
            path=expected.location,
        )
        return Unknown(gone.message, newest, gone)

    def _after(self, error: IcecombError, new: MetadataVersion) -> Outcome:
        """Determine the outcome of a failed write; raise ``error`` if no file exists."""
        from icecomb.format.spec.metadata import TableMetadata

        try:
            found = read_metadata_json(self._io, new.location)
            if found == new.metadata.to_json().encode():
                return Committed()
            # another writer's file can be parsed, unlike a login page of a proxy
            TableMetadata.from_json(found, new.location)
        except NoSuchFileError:
            newest = self._later(new)
            is_open = isinstance(error, FileStateUnknownError | FileAlreadyExistsError)
            if newest is None and not is_open:
                raise error from None
            # where old files are deleted, this file may have existed, and others continued from it
            return Unknown(error.message, newest, error)
        except IcecombError:
            return Unknown(error.message, None, error)
        return Conflict("another writer was first", new.location)

    def _later(self, new: MetadataVersion) -> str | None:
        """Return a file of a later version, if there is one or if that is unknown."""
        try:
            newest = self._files.newest()
        except IcecombError:
            return new.location
        number = None if newest is None else version_of(newest)
        return newest if number is not None and number > _number(new) else None


def _number(version: MetadataVersion) -> int:
    found = version_of(version.location)
    if found is None:
        raise UnsupportedError(
            f"{version.location} is not named as a version of a file-system table",
            hint="Open it by the catalog that created it, or read it by open_table.",
            path=version.location,
        )
    return found


class VersionFiles:
    """The numbered metadata files in the folder of a table, which need not exist, and their hint.

    The files are ``v<N>.metadata.json``, compressed ``v<N>.gz.metadata.json``, or
    ``v<N>.metadata.json.gz`` by old writers. The newest is the one whose successor does not exist;
    ``version-hint.text`` only tells where to start the search. It is written after the file that it
    names, so it may be outdated, missing or useless, and nothing depends on it.

    Of two writers, one of which compresses, both can write a version: which of the files is the
    table is undecidable, unless both have the same contents.
    """

    def __init__(self, io: FileIO, folder: str) -> None:
        self._io = io
        self.folder = f"{folder}/metadata"

    def newest(self) -> str | None:
        """Return the newest metadata file; None if there is no numbered one."""
        found = self.beyond(-1) or self._listed()
        if found is None:
            return None
        version, location = found
        while (following := self.find(version + 1)) is not None:
            version, location = version + 1, following
        return location

    def behind_a_gap(self, location: str) -> str | None:
        """Return the newest file if the apparent one was written late, after its deletion.

        Both its own request and that of a hint were delayed. No writer deletes the version before
        the newest one.
        """
        version = version_of(location)
        if version is None or self.find(version - 1) is not None:
            return None
        listed = self._listed()
        return listed[1] if listed is not None and listed[0] > version else None

    def beyond(self, version: int) -> tuple[int, str] | None:
        """Return the version that the hint names and its file, if it exists and is a later one."""
        try:
            text = self._hinted().strip()
        except (IcecombError, OSError):
            return None
        if not re.fullmatch(VERSION_NUMBER.encode(), text) or int(text) <= version:
            return None
        location = self.find(int(text))
        return None if location is None else (int(text), location)

    def _hinted(self) -> bytes:
        location = f"{self.folder}/{VERSION_HINT}"
        if not self._io.served_by(location).is_local:
            return self._io.read(location)
        with self._io.open_to_copy(location) as source:  # a sparse file may have gigabytes
            return bytes(source.read(_HINT_BYTES))

    def find(self, version: int, but: str | None = None) -> str | None:
        """Return the file of a version, ignoring the name `but`; None if there is none."""
        return next(self._there(version, but), None)

    def check_unambiguous(self, location: str, table: str) -> None:
        """Refuse a version of which another file has different contents: CorruptFileError."""
        version = version_of(location)
        if version is None:
            return

        def alike(other: str) -> bool:
            return read_metadata_json(self._io, other) == read_metadata_json(self._io, location)

        for other in self._there(version, location):
            with suppress(NoSuchFileError):
                # a proxy may have answered with another file: the second read decides
                if alike(other) or alike(other):
                    continue
                raise CorruptFileError(
                    f"{table} has two metadata files of version {version}, which differ: "
                    f"{location} and {other}",
                    hint="Two writers wrote it, and each lacks the other's commit: read both by "
                    "open_table(<file>), move one out of the folder, repeat its change.",
                    table=table,
                    path=other,
                )

    def _there(self, version: int, but: str | None) -> Iterator[str]:
        """Yield the files of a version except one; checked lazily where that is as quick."""
        names = [f"{self.folder}/v{version}{spelling}" for spelling in _SPELLINGS]
        names = [name for name in names if name != but]
        there = self._io.each(self.folder, self._io.exists, names, needs_all=False)
        return (name for name, found in zip(names, there, strict=True) if found)

    def name(self, version: int, marker: str) -> str:
        """Return the location for a new version's file; for `marker` see `compression_marker`."""
        return f"{self.folder}/v{version}{marker}.metadata.json"

    def others(self) -> str | None:
        """Return a metadata file of a table that a server's catalog manages; None without one."""
        for location in self._list():
            if location.endswith(METADATA_SUFFIXES) and version_of(location) is None:
                return location
        return None

    @contextmanager
    def hint(self, version: int) -> Iterator[Callable[[], None]]:
        """Prepare the hint at a version; yield the function that writes it.

        A failure only costs the next readers time.
        """
        data = str(version).encode()
        with self._io.prepare(f"{self.folder}/{VERSION_HINT}", data, replace=True) as publish:

            def write() -> None:
                with suppress(IcecombError, OSError):
                    publish()

            yield write

    def _listed(self) -> tuple[int, str] | None:
        found: dict[int, str] = {}
        for location in self._list():
            version = version_of(location)
            if version is not None:
                found[version] = location
        return max(found.items(), default=None)

    def _list(self) -> Iterator[str]:
        """Yield the files directly in the folder."""
        with suppress(NoSuchFileError):
            for status in self._io.list(self.folder):
                if status.location.rpartition("/")[0] == self.folder:
                    yield status.location
