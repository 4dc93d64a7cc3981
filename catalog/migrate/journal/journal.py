"""The journal of a migration, kept beside the table, to resume or revert it.

It is in ``<table location>/_icecomb_migration/<id>/``. Hive, Spark and Trino skip names that begin
with ``_``, so readers of the Hive table never see it, and removal of orphan files does not either.

    partitions-00000.json ...   the metastore's partition objects, exactly, in pages
    journal.json                the table object, exactly, and the choices; written last
    step-<name>.json            one for each step, written when it is done (an intent: before it)
    files-00000.parquet ...     the files as they were planned (`stated_files`)
    taken-00000.json ...        the values of partitions whose entries are about to be dropped
    grants.json                 privileges on partitions, which go with their entries

Every file is created once, completely or not at all, and never changed. Beside the journals are
kept footers (`kept_footers`), which belong to none of them.

Whoever may write to the folder may write such files, and they are acted upon with the rights of
whoever migrates. So what they name is deleted or moved only in the table's own folders.

Spark's overwrites delete a table's folder with all hidden files in it. So there is a second copy of
each journal beside the folder, in ``<parent>/_icecomb_journals/<folder>/<id>/``, if that can be
written; it is removed when the migration is reverted or finalized.
"""

from __future__ import annotations

import datetime as dt
import json
import operator
import re
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from enum import Enum
from itertools import count, islice
from typing import Any, Final

from icecomb.catalog.hive.thrift.entity import HivePartition, HiveTable
from icecomb.catalog.hive.thrift.entity_json import (
    partition_from_json,
    partition_to_json,
    table_from_json,
    table_to_json,
)
from icecomb.catalog.hive.thrift.grants import PartitionGrant
from icecomb.catalog.migrate.choices import Choices
from icecomb.format.errors import (
    CorruptFileError,
    FileAlreadyExistsError,
    IcecombError,
    MigrationError,
    NoSuchFileError,
    reason_of,
)
from icecomb.format.storage.file_io import FileIO
from icecomb.format.storage.file_system import FileStatus
from icecomb.format.storage.location import plain_texts
from icecomb.format.storage.own_file import create_own

FOLDER: Final = "_icecomb_migration"
COPIES: Final = "_icecomb_journals"
_VERSION: Final = 2
_WITHOUT_TAKEN: Final = 1
"""The version of journals that do not list the removed partitions."""
_PAGE: Final = 500
_GRANTS: Final = "grants.json"
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

    def partitions(self) -> Iterator[HivePartition]:
        """Yield the exact old partitions, but for the table's name."""
        database, table = self.table.database, self.table.name
        for number in range(self.pages):
            location = f"{self.location}/{_page_name(number)}"
            page = _read(self.io, location)
            with _reading(location):
                found = [partition_from_json(one) for one in page["partitions"]]
            for partition in found:
                yield replace(partition, database=database, table=table)

    def renamed(self, database: str, name: str) -> Journal:
        """Return this journal with its table's current name, under which it is reverted."""
        return replace(self, table=replace(self.table, database=database, name=name))

    def metadata_files(self, *, later: bool = False) -> list[str]:
        """Return the existing metadata files that this migration wrote.

        Args:
            later: Whether to include those of commits since, and of other writers.
        """
        writing = self.step(Step.WRITING)
        if writing is None:
            return []
        # Journals without the uuid were written by older versions.
        of_attempt = _METADATA_FILE.replace("{0}", writing.get("unique", _UUID))
        name = re.compile(_ANY_METADATA_FILE if later else of_attempt)
        listed = (status.location for status in self.io.list(writing["folder"]))
        existing = set(writing["existing"])
        return [one for one in listed if one not in existing and name.fullmatch(one)]

    def added_files(self) -> list[str]:
        """Return the files that a begun revert takes out of the table's folders."""
        added: list[str] = (self.step(Step.REVERTING) or {"added": []})["added"]
        paths = dict(zip(added, plain_texts(added, self.io.properties), strict=True))
        (home,) = plain_texts([self.home], self.io.properties)
        outside = {name: path for name, path in paths.items() if not path.startswith(f"{home}/")}
        if outside:
            folders = (one.storage.location or "" for one in self.partitions())
            own = tuple(f"{one}/" for one in plain_texts(folders, self.io.properties) if one)
            outside = {name: path for name, path in outside.items() if not path.startswith(own)}
        for name in outside:
            raise self._foreign(Step.REVERTING, f"{name} is in no folder of the table")
        return added

    def note_taken(self, partitions: Iterable[HivePartition]) -> None:
        """Record that this migration is about to drop the entries of some partitions."""
        data = _encoded({"values": [list(one.values) for one in partitions]})
        self._create_first((self._taken_location(number) for number in count()), data)

    def note_grants(self, grants: Iterable[PartitionGrant]) -> None:
        """Record the privileges on partitions before the first entry is dropped; once."""
        body = _encoded({"grants": [one.to_json() for one in grants]})
        with suppress(FileAlreadyExistsError):
            self.create(_GRANTS, body)

    def grants(self) -> list[PartitionGrant]:
        """Return the recorded privileges on partitions."""
        location = f"{self.location}/{_GRANTS}"
        try:
            found = _read(self.io, location)
        except NoSuchFileError:
            return []
        with _reading(location):
            return [PartitionGrant.from_json(one) for one in found["grants"]]

    def added(self) -> dict[str, FileStatus | None]:
        """Return the files of Hive's writers taken in after the conversion, or about to be.

        Each with what storage said of it; journals of older versions do not know.
        """
        found: dict[str, FileStatus | None] = {}
        for attempt in range(self._attempts(Step.ADDING)):
            facts = self.step(Step.ADDING, attempt) or {"files": []}
            found |= dict.fromkeys(facts["files"])
            stated = (FileStatus(*one) for one in facts.get("stated", ()))
            found |= {one.location: one for one in stated}
        return found

    def taken(self) -> Iterator[tuple[str, ...]]:
        """Yield the values of partitions whose entries this migration dropped or was about to."""
        for number in count():
            location = self._taken_location(number)
            try:
                page = _read(self.io, location)
            except NoSuchFileError:
                return
            with _reading(location):
                values = [tuple(one) for one in page["values"]]
            yield from values

    def step(self, step: Step, attempt: int | None = None) -> dict[str, Any] | None:
        """Return the facts recorded for a step's newest attempt; None if it was not recorded."""
        if attempt is None:
            attempt = self._attempts(step) - 1
        if attempt < 0:
            return None
        found = _read(self.io, self._step_location(step, attempt))
        for name, kind in _FACTS.get(step, {}).items():
            if name in found and not kind(found[name]):
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
        self._create_first((self._step_location(step, one) for one in attempts), body)

    def create(self, name: str, data: bytes) -> None:
        """Create a file of the journal, and its copy."""
        create_own(self.io, f"{self.location}/{name}", data)
        self._create_copy(name, data)

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

    def _create_first(self, locations: Iterator[str], data: bytes) -> None:
        """Create a file under the first free name: other runs may create some, too."""
        for location in locations:
            with suppress(FileAlreadyExistsError):
                create_own(self.io, location, data)
                self._create_copy(location[len(self.location) + 1 :], data)
                break

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

    def _foreign(self, step: Step, what: str) -> CorruptFileError:
        path = f"{self.location}/step-{step.value}.json"
        return CorruptFileError(
            f"{path} is not the journal of the table in {self.home}: {what}; nothing was touched",
            hint="find out who wrote it; where the folder was copied or moved, remove the journal",
            path=path,
        )

    def _attempts(self, step: Step) -> int:
        attempt = 0
        while self.io.exists(self._step_location(step, attempt)):
            attempt += 1
        return attempt

    def _taken_location(self, number: int) -> str:
        return f"{self.location}/taken-{number:05}.json"

    def _step_location(self, step: Step, attempt: int) -> str:
        suffix = f"-{attempt}" if attempt else ""
        return f"{self.location}/step-{step.value}{suffix}.json"


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _is_uuid(value: object) -> bool:
    return isinstance(value, str) and re.fullmatch(_UUID, value) is not None


_FACTS: Final[Mapping[Step, Mapping[str, Callable[[object], bool]]]] = {
    Step.WRITING: {"folder": _is_text, "existing": _are_texts, "unique": _is_uuid},
    Step.PREPARED: {"uuid": _is_uuid, "metadata-location": _is_text},
    Step.ADDING: {"files": _are_texts},
    Step.REVERTING: {"added": _are_texts, "pointer": lambda it: it is None or _is_text(it)},
}
"""What the recorded facts must be of which others follow."""


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

    def create(name: str, data: bytes) -> None:
        nonlocal copy
        create_own(io, f"{location}/{name}", data)
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
    create("journal.json", _encoded(body))
    home = table_location.rstrip("/")
    return Journal(io, location, migration_id, table, pages, total, choices, home, copy=copy)


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
        if one.endswith("/journal.json") and _ID.fullmatch(one.split("/")[-2])
    }


def _copies(table_location: str) -> str:
    """Return the folder of the copies of a table's journals; empty if it has no parent folder."""
    parent, _, name = table_location.rstrip("/").rpartition("/")
    return f"{parent}/{COPIES}/{name}" if parent.rstrip("/:") == parent != "" else ""


def _open_journal(io: FileIO, location: str, home: str) -> Journal:
    raw = _read(io, location)
    if raw.get("version") not in (_WITHOUT_TAKEN, _VERSION):
        raise MigrationError(
            f"{location} was written by another version of icecomb",
            hint="use that version, or a newer one",
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
            f"{location} lacks {error}", hint="restore the journal from a backup", path=location
        ) from error
    except Exception as error:  # decoders of JSON, Base64 and Thrift have errors of their own
        raise CorruptFileError(
            f"{location} is not a journal of icecomb: {reason_of(error)}",
            hint="restore the journal from a backup",
            path=location,
        ) from error


def _page_name(number: int) -> str:
    return f"partitions-{number:05}.json"


def _read(io: FileIO, location: str) -> dict[str, Any]:
    try:
        raw = json.loads(io.read(location))
    except NoSuchFileError:
        raise
    except (ValueError, RecursionError) as error:
        raise CorruptFileError(
            f"{location} is not JSON", hint="restore the journal from a backup", path=location
        ) from error
    if not isinstance(raw, dict):
        raise CorruptFileError(
            f"{location} is not a journal file",
            hint="restore the journal from a backup",
            path=location,
        )
    return raw


def _encoded(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, indent=1, ensure_ascii=False).encode()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
