"""The journal of a migration, kept beside the table, to resume or revert it.

It is in ``<table location>/_icecomb_migration/<id>/``. Hive, Spark and Trino skip names that begin
with ``_``, so readers of the Hive table never see it, and removal of orphan files does not either.

    partitions-00000.json ...   the metastore's partition objects, exactly, in pages
    journal.json                the table object, exactly, and the choices; written last
    step-<name>.json            one for each step, written when it is done (an intent: before it)
    files-00000.parquet ...     the files as they were planned (`stated_files`)
    taken-00000.json ...        the values of partitions whose entries are about to be dropped
    grants.json                 privileges on partitions, which go with their entries
    digests.json                the SHA-256 of all files that are there before the conversion

``digests.json`` is confirmed by the entry, and ``taken`` once the table has no more partitions.

Every file is created once, completely or not at all, and never changed.

Whoever may write to the folder may write such files, and they are acted upon with the rights of
whoever migrates. So the conversion gives the entry the digest of ``digests.json``, by which every
file that it lists is checked whenever it is read (see `vouching`), and what the others name is
deleted or moved only in the table's own folders. The entry, too, says whether it was verified.

Spark's overwrites delete a table's folder with all hidden files in it. So there is a second copy of
each journal beside the folder, in ``<parent>/_icecomb_journals/<folder>/<id>/``, if that can be
written; it is removed when the migration is reverted or finalized.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import operator
import re
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from io import BytesIO
from itertools import count, islice, zip_longest
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from icecomb.catalog.hive.thrift.entity import HivePartition, HiveTable
from icecomb.catalog.hive.thrift.partitions import PartitionGrant, Partitions
from icecomb.catalog.hive.thrift.thrift_codec import (
    partition_from_json,
    partition_from_wire,
    partition_to_json,
    table_from_json,
    table_to_json,
)
from icecomb.catalog.migrate.choices import Choices
from icecomb.catalog.migrate.source.spool import Spool, batch_of
from icecomb.format.errors import (
    CorruptFileError,
    FileAlreadyExistsError,
    IcecombError,
    MigrationError,
    NoSuchFileError,
    reason_of,
)
from icecomb.format.input_limit import bounded_json, whole_number
from icecomb.format.rows.parquet.own_table import OwnTable
from icecomb.format.storage.file_io import FileIO
from icecomb.format.storage.file_system import FileStatus, create_own
from icecomb.format.storage.location import plain_texts

if TYPE_CHECKING:
    from typing_extensions import Self

FOLDER: Final = "_icecomb_migration"
COPIES: Final = "_icecomb_journals"
_VERSION: Final = 2
_WITHOUT_TAKEN: Final = 1
"""The version of journals that do not list the removed partitions."""
_PAGE: Final = 500
_JOURNAL: Final = "journal.json"
_GRANTS: Final = "grants.json"
_DIGESTS: Final = "digests.json"
_LISTED: Final = re.compile(
    rf"{_JOURNAL}|{_GRANTS}|partitions-\d+\.json|files-\d+\.parquet"
    r"|step-(?:writing|prepared)(?:-\d+)?\.json"
)
"""The files whose digests an entry confirms: all of them are written before the conversion."""
_MARKER: Final = "icecomb-reverted:"
_UUID: Final = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_ID: Final = re.compile(r"\d{8}T\d{6}\.\d{6}Z-[0-9a-f]{8}")
_METADATA_FILE: Final = (
    r".*/(?:\d+-{0}(?:\.gz)?\.metadata\.json(?:\.gz)?|snap--?\d+-\d+-{0}\.avro|{0}-m\d+\.avro)"
)
"""The names of a migration's metadata files: files of Hive tables may be Avro, too."""
_ANY_METADATA_FILE: Final = (
    r"(?s).*(?:\.(?:json|avro|stats|puffin|text|gz)"
    r"|/(?:icecomb-gc|partition-stats)-[^/]*\.parquet)"
)


class Step(Enum):
    """The steps of a migration, in order; the value is the step's file name.

    ``WRITING``, ``PREPARED``, ``SWAPPING``, ``ADDING`` and ``REVERTING`` are intents, written
    before the change they announce. ``ADDING`` names files that Hive's writers added after the
    conversion. ``UNANSWERED`` says that a request may arrive late that the metastore would not
    refuse, ``RETURNED`` that the entry was converted back, with all its partitions.
    """

    WRITING = "writing"
    PREPARED = "prepared"
    SWAPPING = "swapping"
    SWAPPED = "swapped"
    ADDING = "adding"
    UNANSWERED = "unanswered"
    CLEANED = "cleaned"
    VERIFIED = "verified"
    FINALIZED = "finalized"
    REVERTING = "reverting"
    RETURNED = "returned"
    REVERTED = "reverted"


@dataclass(frozen=True, slots=True)
class Journal:
    """One migration of one table.

    Attributes:
        migration_id: The last part of the folder's name; ids sort by the time of their creation.
        table: The exact old Hive table; see `renamed` for its name.
        pages: Number of files of partitions.
        tells_taken: Whether `taken` lists the removed partitions.
        home: The table's folder.
        copy: The folder of the second copy; empty if there is none.
        is_copy: Whether this is the second copy, and the first one is gone.
        told_taken: What the entry says of the pages of `taken`; empty if nothing.
        is_open: Whether the entry says that files of Hive's are still kept, so that the migration
            was not finalized.
    """

    io: FileIO
    location: str
    migration_id: str
    table: HiveTable
    pages: int
    partition_count: int
    choices: Choices
    home: str
    tells_taken: bool = True
    copy: str = ""
    is_copy: bool = False
    body: str = ""
    told_taken: str = ""
    is_open: bool = False
    digests: dict[str, str] = field(default_factory=dict, repr=False, compare=False)
    _seen: dict[str, str] = field(default_factory=dict, repr=False, compare=False)

    def seal(self) -> str:
        """List the digests of all files so far; return the one that the entry is to have."""
        data = _encoded({"id": self.migration_id, "files": self.digests})
        self.create(_DIGESTS, data)
        return _sha256(data)

    def confirmed(self, digest: str) -> Journal | None:
        """Return this journal, each of whose files is checked when it is read.

        Args:
            digest: The digest in the table's entry.

        Returns:
            None if it is of another journal.
        """
        with suppress(NoSuchFileError):
            location = f"{self.location}/{_DIGESTS}"
            data = self.io.read(location)
            if _sha256(data) == digest:
                told = _parsed(data, location)
                with _reading(location):
                    if (told["id"], told["files"][_JOURNAL]) == (self.migration_id, self.body):
                        return replace(self, digests=told["files"])
        return None

    def read(self, name: str) -> bytes:
        """Return the contents of a file of the journal.

        Args:
            name: The file's name in the journal's folder.

        Raises:
            NoSuchFileError: If there is none, or only one that somebody added to a journal that is
                vouched for.
            CorruptFileError: If it is not what was written.
        """
        location = f"{self.location}/{name}"
        is_listed = _LISTED.fullmatch(name) is not None
        # What was compared must not be exchanged afterwards, whoever vouches.
        wanted = (self.digests or self._seen).get(name)
        if self.digests and wanted is None and is_listed:
            raise NoSuchFileError(
                f"{location} is not of this journal", hint="Find out who added it.", path=location
            )
        try:
            data = self.io.read(location)
        except NoSuchFileError:
            if wanted is not None:
                raise self._exchanged(location, "is gone, which was there") from None
            raise
        if is_listed:
            found = _sha256(data)
            if self._seen.setdefault(name, wanted or found) != found:
                raise self._exchanged(location, "is not what it was")
        return data

    def partitions(self) -> Iterator[HivePartition]:
        """Yield the exact old partitions, but for the table's name."""
        database, table = self.table.database, self.table.name
        for number in range(self.pages):
            name = _page_name(number)
            page = self._json(name)
            with _reading(f"{self.location}/{name}"):
                found = [partition_from_json(one) for one in page["partitions"]]
            for partition in found:
                yield replace(partition, database=database, table=table)

    def renamed(self, database: str, name: str) -> Journal:
        """Return this journal with its table's current name, under which it is reverted."""
        return replace(self, table=replace(self.table, database=database, name=name))

    @property
    def is_at_home(self) -> bool:
        """Whether the metadata that the migration wrote is in the table's folder."""
        prepared = self.step(Step.PREPARED)
        if prepared is None:
            return True
        folder = prepared["metadata-location"].rpartition("/")[0]
        own, named = plain_texts([f"{self.home}/metadata", folder], self.io.properties)
        return own == named

    def metadata_files(self, *, later: bool = False, confirmed: bool = True) -> list[str]:
        """Return the existing metadata files that this migration wrote.

        Args:
            later: Whether to include those of commits since, and of other writers.
            confirmed: Whether the entry confirms that there was a migration: without that, files
                of Hive's may be in the folder, too.
        """
        writing = self.step(Step.WRITING)
        if writing is None:
            return []
        # Journals without the uuid were written by older versions.
        unique = _UUID if later else writing.get("unique") or _UUID
        any_name = later and confirmed
        name = re.compile(_ANY_METADATA_FILE if any_name else _METADATA_FILE.replace("{0}", unique))
        listed = (status.location for status in self.io.list(writing["folder"]))
        existing = set(writing["existing"])
        return [one for one in listed if one not in existing and name.fullmatch(one)]

    def added_files(self, *, partitions: bool) -> list[str]:
        """Return the files that a begun revert takes out of the table's folders."""
        added: list[str] = (self.step(Step.REVERTING) or {}).get("added") or []
        self.check_own(added, partitions=partitions)
        return added

    def check_own(self, files: list[str], *, partitions: bool) -> None:
        """Check that files are in the table's folders.

        Args:
            files: The locations of the files.
            partitions: Whether the folders of the journal's partitions are the table's, too.

        Raises:
            CorruptFileError: If one is in none of them.
        """
        paths = dict(zip(files, plain_texts(files, self.io.properties), strict=True))
        (home,) = plain_texts([self.home], self.io.properties)
        outside = {name: path for name, path in paths.items() if not path.startswith(f"{home}/")}
        if outside and partitions:
            folders = (one.storage.location or "" for one in self.partitions())
            own = tuple(f"{one}/" for one in plain_texts(folders, self.io.properties) if one)
            outside = {name: path for name, path in outside.items() if not path.startswith(own)}
        for name in outside:
            raise self._foreign(Step.REVERTING, f"{name} is in no folder of the table")

    def note_taken(self, partitions: Iterable[HivePartition]) -> None:
        """Record that this migration is about to drop the entries of some partitions."""
        data = _encoded({"values": [list(one.values) for one in partitions]})
        self._create_first(map(_taken_name, count()), data)

    def note_grants(self, grants: Iterable[PartitionGrant]) -> None:
        """Record the privileges on partitions before the first entry is dropped; once."""
        body = _encoded({"grants": [one.to_json() for one in grants]})
        with suppress(FileAlreadyExistsError):
            self.create(_GRANTS, body)

    def grants(self) -> list[PartitionGrant]:
        """Return the recorded privileges on partitions."""
        try:
            found = self._json(_GRANTS)
        except NoSuchFileError:
            return []
        with _reading(f"{self.location}/{_GRANTS}"):
            return [PartitionGrant.from_json(one) for one in found["grants"]]

    def added(self) -> dict[str, FileStatus | None]:
        """Return the files of Hive's writers taken in after the conversion, or about to be.

        Each with what storage said of it; journals of older versions do not know.
        """
        found: dict[str, FileStatus | None] = {}
        for attempt in range(self._attempts(Step.ADDING)):
            facts = self.step(Step.ADDING, attempt) or {"files": []}
            found |= dict.fromkeys(facts["files"])
            stated = (FileStatus(*one) for one in facts.get("stated") or ())
            found |= {one.location: one for one in stated}
        return found

    def taken(self) -> Iterator[tuple[str, ...]]:
        """Yield the values of partitions whose entries this migration dropped or was about to."""
        found = self._taken_pages()
        for name, wanted in found:
            data = self.read(name)
            location = f"{self.location}/{name}"
            if _sha256(data) != wanted:
                raise self._exchanged(location, "is not what it was")
            page = _parsed(data, location)
            with _reading(location):
                values = [tuple(one) for one in page["values"]]
                if not all(map(_are_texts, page["values"])):
                    raise ValueError("values of partitions are texts")
            yield from values

    def taken_told(self) -> str:
        """Return what an entry is to say of the pages of `taken`: their number and digest."""
        return _told_of(digest for _, digest in self._taken_pages())

    def _taken_pages(self) -> list[tuple[str, str]]:
        """Return the names and digests of the pages, those that the entry confirms if it does."""
        said = whole_number(self.told_taken.partition(":")[0])
        found: list[tuple[str, str]] = []
        for name in map(_taken_name, count() if said is None else range(said)):
            try:
                found.append((name, _sha256(self.read(name))))
            except NoSuchFileError:  # noqa: PERF203 - after the last one
                if said is None:
                    break
                location = f"{self.location}/{name}"
                raise self._exchanged(location, "is gone, which was there") from None
        if said is not None and _told_of(digest for _, digest in found) != self.told_taken:
            location = f"{self.location}/{_taken_name(0)}"
            raise self._exchanged(location, "or a page after it is not what it was")
        return found

    def step(self, step: Step, attempt: int | None = None) -> dict[str, Any] | None:
        """Return the facts recorded for a step's newest attempt; None if it was not recorded."""
        if attempt is None:
            attempt = self._attempts(step) - 1
        if attempt < 0 or (step is Step.FINALIZED and self.is_open):
            return None
        found = self._json(_step_name(step, attempt))
        for name, is_kind in {"at-ms": _is_time, **_FACTS.get(step, {})}.items():
            if not is_kind(found.get(name)):
                raise self._foreign(step, f"its {name} is not what icecomb writes")
        if step is Step.WRITING:
            own, named = plain_texts(
                [f"{self.home}/metadata", found.get("folder", "")], self.io.properties
            )
            if own != named:
                raise self._foreign(step, f"it names {found.get('folder')}, not {self.home}")
        return found

    def steps(self) -> dict[Step, dict[str, Any]]:
        """Return all recorded steps with their newest facts."""
        found = ((step, self.step(step)) for step in Step)
        return {step: facts for step, facts in found if facts is not None}

    def record(self, step: Step, **facts: Any) -> None:
        """Record that a step is done (or begins, for an intent)."""
        body = _encoded({"step": step.value, "at-ms": _now_ms(), **facts})
        attempts = count(self._attempts(step))
        self._create_first((_step_name(step, one) for one in attempts), body)

    def create(self, name: str, data: bytes) -> None:
        """Create a file of the journal, and its copy."""
        create_own(self.io, f"{self.location}/{name}", data)
        self._create_copy(name, data)
        self._note(name, data)

    def discard_copy(self) -> None:
        """Remove the second copy, which is no longer needed."""
        if self.copy:
            folders = [self.copy]
            while folders[-1].rpartition("/")[2] != COPIES:
                folders.append(folders[-1].rpartition("/")[0])
            with suppress(IcecombError):  # a copy left behind is harmless
                self.io.delete([status.location for status in self.io.list(self.copy)])
                for folder in folders:
                    self.io.delete_folder(folder)

    def _create_copy(self, name: str, data: bytes) -> None:
        if self.copy:
            with suppress(IcecombError):  # the first copy has it
                create_own(self.io, f"{self.copy}/{name}", data)

    def _create_first(self, names: Iterator[str], data: bytes) -> None:
        """Create a file under the first free name: other runs may create some, too."""
        for name in names:
            with suppress(FileAlreadyExistsError):
                self.create(name, data)
                break

    def _note(self, name: str, data: bytes) -> None:
        # of one that was only read, all files before the conversion are written
        if self.digests and _LISTED.fullmatch(name):
            self.digests[name] = _sha256(data)

    def _json(self, name: str) -> dict[str, Any]:
        return _parsed(self.read(name), f"{self.location}/{name}")

    def _exchanged(self, location: str, what: str) -> CorruptFileError:
        return CorruptFileError(
            f"{location} {what} when the table was migrated, or first read: it is not acted upon",
            hint="Find out who changed it, and restore the journal from a backup.",
            path=location,
        )

    @property
    def marker(self) -> str:
        """The value that replaces the pointer right after the entry was converted back."""
        return f"{_MARKER}{self.migration_id}"

    @property
    def reverted(self) -> bool:
        """Whether the old table is restored."""
        return self.step(Step.REVERTED) is not None

    @property
    def finalized(self) -> bool:
        """Whether the migration was finalized, which gives up the way back."""
        return self.step(Step.FINALIZED) is not None

    @property
    def says_finalized(self) -> bool:
        """Whether a file of the journal says so, whatever the entry says."""
        return self._attempts(Step.FINALIZED) > 0

    def _foreign(self, step: Step, what: str) -> CorruptFileError:
        path = f"{self.location}/step-{step.value}.json"
        return CorruptFileError(
            f"{path} is not the journal of the table in {self.home}: {what}; nothing was touched",
            hint="Find out who wrote it; where the folder was copied or moved, remove the journal; "
            "`--trust-journal` (trust_journal=True) believes what it says of folders of "
            "partitions.",
            path=path,
        )

    def _attempts(self, step: Step) -> int:
        attempt = 0
        while self._has(_step_name(step, attempt)):
            attempt += 1
        return attempt

    def _has(self, name: str) -> bool:
        if self.digests and _LISTED.fullmatch(name):
            return name in self.digests
        return self.io.exists(f"{self.location}/{name}")


def _taken_name(number: int) -> str:
    return f"taken-{number:05}.json"


def _step_name(step: Step, attempt: int) -> str:
    suffix = f"-{attempt}" if attempt else ""
    return f"step-{step.value}{suffix}.json"


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _is_uuid(value: object) -> bool:
    return isinstance(value, str) and re.fullmatch(_UUID, value) is not None


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63


def _is_time(value: object) -> bool:
    return isinstance(value, int) and _is_number(value) and 0 <= value < _NO_TIME_MS


def _are_statuses(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(one, list)
        and len(one) == _STATUS
        and _is_text(one[0])
        and all(map(_is_number, one[1:]))
        for one in value
    )


def _or_none(is_kind: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: value is None or is_kind(value)


_NO_TIME_MS: Final = 10**14
"""A time that no clock has, and that still has a date."""
_STATUS: Final = 4
_FACTS: Final[Mapping[Step, Mapping[str, Callable[[object], bool]]]] = {
    Step.WRITING: {"folder": _is_text, "existing": _are_texts, "unique": _or_none(_is_uuid)},
    Step.PREPARED: {
        "uuid": _is_uuid,
        "metadata-location": _is_text,
        "snapshot-id": _or_none(_is_number),
        **dict.fromkeys(("partitions", "files", "rows"), _is_number),
    },
    Step.ADDING: {"files": _are_texts, "stated": _or_none(_are_statuses)},
    Step.REVERTING: {
        "added": _or_none(_are_texts),
        "changed": _or_none(_are_texts),
        "pointer": _or_none(_is_text),
    },
}
"""What the recorded facts must be, beside the time that every step has."""


def start_journal(
    io: FileIO,
    table_location: str,
    table: HiveTable,
    partitions: Iterable[HivePartition],
    choices: Choices,
) -> Journal:
    """Write a new journal of the exact old state, before anything is changed."""
    now = dt.datetime.now(dt.timezone.utc)
    migration_id = f"{now:%Y%m%dT%H%M%S.%fZ}-{uuid.uuid4().hex[:8]}"
    location = f"{table_location.rstrip('/')}/{FOLDER}/{migration_id}"
    root = _copies(table_location)
    copy = f"{root}/{migration_id}" if root else ""
    digests: dict[str, str] = {}

    def create(name: str, data: bytes) -> None:
        nonlocal copy
        create_own(io, f"{location}/{name}", data)
        digests[name] = _sha256(data)
        try:
            if copy:
                create_own(io, f"{copy}/{name}", data)
        except IcecombError:
            copy = ""

    pages = total = 0
    left = map(partition_to_json, partitions)
    while page := list(islice(left, _PAGE)):
        create(_page_name(pages), _encoded({"partitions": page}))
        pages += 1
        total += len(page)
    body = {
        "version": _VERSION,
        "id": migration_id,
        "started-ms": _now_ms(),
        "choices": choices.to_json(),
        "partition-pages": pages,
        "partition-count": total,
        "table": table_to_json(table),
    }
    create(_JOURNAL, _encoded(body))
    return Journal(
        io,
        location,
        migration_id,
        table,
        pages,
        total,
        choices,
        table_location.rstrip("/"),
        copy=copy,
        body=digests[_JOURNAL],
        digests=digests,
    )


def find_journals(io: FileIO, table_location: str) -> list[Journal]:
    """Return all complete journals of a table's folder, oldest first, or their copies if gone."""
    home = table_location.rstrip("/")
    found = _listed(io, f"{home}/{FOLDER}")
    root = _copies(table_location)
    try:
        copies = _listed(io, root) if root else {}
    except IcecombError:  # the folder beside the table's may not be readable
        copies = {}
    return [
        replace(_open_journal(io, found[one], home), copy=copies.get(one, "").rpartition("/")[0])
        if one in found
        else replace(_open_journal(io, copies[one], home), is_copy=True)
        for one in sorted(found.keys() | copies.keys())
    ]


def _listed(io: FileIO, root: str) -> dict[str, str]:
    """Return the complete journals below a folder, by their ids."""
    locations = (status.location for status in io.list(root))
    return {
        one.split("/")[-2]: one
        for one in locations
        if one.endswith(f"/{_JOURNAL}") and _ID.fullmatch(one.split("/")[-2])
    }


def _copies(table_location: str) -> str:
    """Return the folder of the copies of a table's journals; empty if it has no parent folder."""
    parent, _, name = table_location.rstrip("/").rpartition("/")
    return f"{parent}/{COPIES}/{name}" if parent.rstrip("/:") == parent != "" else ""


def _open_journal(io: FileIO, location: str, home: str) -> Journal:
    data = io.read(location)
    raw = _parsed(data, location)
    if raw.get("version") not in (_WITHOUT_TAKEN, _VERSION):
        raise MigrationError(
            f"{location} was written by another version of icecomb",
            hint="Use that version, or a newer one.",
            path=location,
        )
    with _reading(location):
        return Journal(
            io,
            location.rpartition("/")[0],
            location.split("/")[-2],
            table_from_json(raw["table"]),
            operator.index(raw["partition-pages"]),
            operator.index(raw["partition-count"]),
            Choices.from_json(raw["choices"]),
            home,
            tells_taken=raw["version"] != _WITHOUT_TAKEN,
            body=_sha256(data),
        )


@contextmanager
def _reading(location: str) -> Iterator[None]:
    """Name the file in errors about values that are not what icecomb writes."""
    try:
        yield
    except IcecombError:
        raise
    except KeyError as error:
        raise CorruptFileError(
            f"{location} lacks {error}", hint="Restore the journal from a backup.", path=location
        ) from error
    except Exception as error:  # decoders of JSON, Base64 and Thrift have errors of their own
        raise CorruptFileError(
            f"{location} is not a journal of icecomb: {reason_of(error)}",
            hint="Restore the journal from a backup.",
            path=location,
        ) from error


def _page_name(number: int) -> str:
    return f"partitions-{number:05}.json"


def _parsed(data: bytes, location: str) -> dict[str, Any]:
    try:
        raw = bounded_json(data)
    except ValueError as error:
        raise CorruptFileError(
            f"{location} is not JSON: {reason_of(error)}",
            hint="Restore the journal from a backup.",
            path=location,
        ) from error
    if not isinstance(raw, dict):
        raise CorruptFileError(
            f"{location} is not a journal file",
            hint="Restore the journal from a backup.",
            path=location,
        )
    return raw


def _encoded(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, indent=1, ensure_ascii=False).encode()


def _told_of(digests: Iterable[str]) -> str:
    found = [*digests]
    return f"{len(found)}:{_sha256(''.join(found).encode())}"


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


_FILES: Final = pa.schema(
    [("path", pa.string()), ("size", pa.int64()), ("mtime", pa.int64()), ("id", pa.int64())]
)


_BATCH: Final = 10_000


def keep_files(journal: Journal, pages: Iterable[list[FileStatus]]) -> None:
    """Keep the statuses in storage of the files that are taken over."""
    for number, page in enumerate(pages):
        rows = [(one.location, one.size, one.mtime_ms, lasting_id(one)) for one in page]
        columns = zip(*rows, strict=True)
        arrays = [pa.array(one, kind) for one, kind in zip(columns, _FILES.types, strict=True)]
        out = BytesIO()
        pq.write_table(pa.Table.from_arrays(arrays, schema=_FILES), out, compression="zstd")
        journal.create(_name(number), out.getvalue())


def kept_files(journal: Journal) -> Iterator[list[FileStatus]]:
    """Yield pages of the files as they were planned; none for journals of older versions."""
    for number in count():
        location = f"{journal.location}/{_name(number)}"
        try:
            data = journal.read(_name(number))
        except NoSuchFileError:
            return
        try:
            page = list(_statuses(data))
        except ValueError as error:
            raise CorruptFileError(
                f"{location} is not what was written: {error}",
                hint="Restore the journal from a backup.",
                path=location,
            ) from error
        yield page


def _statuses(data: bytes) -> Iterator[FileStatus]:
    """Yield the statuses in a page.

    Raises:
        ValueError: If it is not what was written.
    """
    for batch in OwnTable(data, _FILES, nulls=False).batches(_BATCH):
        yield from map(FileStatus, *(column.to_pylist() for column in batch.columns))


def lasting_id(status: FileStatus) -> int:
    """Return the id of a file that is the same on every host, or 0."""
    # A local file's id depends on the number of its device, which differs between hosts, and on
    # the time when its permissions changed.
    return 0 if status.location.startswith(("/", "file:")) else status.file_id


def _name(number: int) -> str:
    return f"files-{number:05}.parquet"


_PAGES: Final = pa.schema([pa.field("partition", pa.binary(), nullable=False)])


class PartitionPages:
    """The partitions of one table; a context manager that releases the disk space at its end."""

    def __init__(self, partitions: Partitions, table: HiveTable) -> None:
        self._partitions = partitions
        self._table = table
        self._pages = Spool(_PAGES)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # an empty spool would look like a table without partitions
        del self._pages

    def read(self) -> Iterator[HivePartition]:
        """Yield the metastore's current partitions, and keep them on the local disk."""
        self._pages = Spool(_PAGES)
        for page in self._asked():
            self._pages.append(batch_of(_PAGES, [(one,) for one in page]))
            yield from map(partition_from_wire, page)

    def kept(self) -> Iterator[HivePartition]:
        """Yield the kept partitions again."""
        for page in self._kept():
            yield from map(partition_from_wire, page)

    def is_current(self) -> bool:
        """Return whether the metastore still has exactly these partitions."""
        return all(
            now is not None
            and then is not None
            and (now == then or _decoded(now) == _decoded(then))
            for now, then in zip_longest(self._asked(), self._kept())
        )

    def _asked(self) -> Iterator[list[bytes]]:
        if self._table.partition_keys:
            database, name = self._table.database, self._table.name
            for names in self._partitions.name_pages(database, name):
                yield self._partitions.encoded(database, name, names)

    def _kept(self) -> Iterator[list[bytes]]:
        for batch in self._pages:
            yield batch.column(0).to_pylist()


def _decoded(page: list[bytes]) -> list[HivePartition]:
    # A server may send the same parameters in another order.
    return list(map(partition_from_wire, page))
