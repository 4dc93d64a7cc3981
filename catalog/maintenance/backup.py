"""A table brought to another location from its files alone: `icecomb table relocate`.

Its catalog may be gone, and the folder of the files another one than the metadata says. The files
that are there stay as they are: new ones are created at the target, the metadata file last.
"""

from __future__ import annotations

import hashlib
import re
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

from icecomb.catalog.report.progress import SILENT, each
from icecomb.format.errors import (
    FileAlreadyExistsError,
    NoSuchFileError,
    ValidationError,
)
from icecomb.format.relocation.relocation import Relocation
from icecomb.format.relocation.route import LocationChange, MovedFile, joined
from icecomb.format.spec.metadata import TableMetadata
from icecomb.format.spec.metadata_file import METADATA_SUFFIXES, metadata_folder, read_metadata_json
from icecomb.format.storage.file_io import copy_file
from icecomb.format.storage.file_system import create_own
from icecomb.format.storage.location import led_out, plain_texts

if TYPE_CHECKING:
    from icecomb.catalog.report.progress import Progress
    from icecomb.format.storage.file_io import FileIO

_METADATA: Final = "metadata file"
_METADATA_FOLDER: Final = re.compile(r"/metadata(?:/relocated-[0-9a-f]{8})*")
_OLDER: Final = "older metadata file"
_STATISTICS: Final = "statistics file"
_DISPENSABLE: Final = frozenset((_OLDER, _STATISTICS))
"""What no reader of the table needs."""
_COPIERS: Final = 4


@dataclass(frozen=True, slots=True)
class LackingFile:
    """A file that is missing, or has another length than its manifest states.

    Attributes:
        stated: The length that its manifest states, in bytes; None if it is missing.
        actual: Its length in bytes; None if it is missing.
    """

    what: str
    location: str
    stated: int | None = None
    actual: int | None = None

    def __str__(self) -> str:
        if self.actual is None:
            return f"{self.what} {self.location}"
        return f"{self.what} {self.location}: {self.actual} bytes, not {self.stated}"


@dataclass(frozen=True, slots=True)
class RelocationPlan:
    """What it takes to have a table at another location.

    Attributes:
        source: The prefix that its paths have.
        folder: Where the files of that prefix are.
        target: The prefix that the paths get.
        files: All its files; those that others name come before these.
        to_copy: The files that are not at the target yet and do not change.
        missing: Files that readers of the table need, and that are not there.
        wrong_sizes: Files of another length than stated, if that was to be checked.
        left_out: Missing older metadata files and statistics, without which the table is complete.
    """

    metadata_file: str
    source: str
    folder: str
    target: str
    metadata: TableMetadata
    new_metadata_file: str
    files: tuple[MovedFile, ...]
    to_copy: tuple[MovedFile, ...]
    missing: tuple[LackingFile, ...]
    wrong_sizes: tuple[LackingFile, ...]
    left_out: tuple[LackingFile, ...]

    @property
    def is_blocked(self) -> bool:
        """Whether the table cannot be relocated as it is."""
        return bool(self.missing or self.wrong_sizes)

    @property
    def bytes_to_copy(self) -> int:
        """The length of the files to copy, as far as it is stated."""
        return sum(file.size or 0 for file in self.to_copy)


def plan_relocation(
    io: FileIO,
    metadata_file: str,
    source: str | None,
    target: str,
    *,
    check_sizes: bool = False,
    progress: Progress = SILENT,
) -> RelocationPlan:
    """Read a table's files; return what is missing and what is to be copied; write nothing.

    Args:
        source: The prefix of the paths in the file; None for the location of the table.
        target: The prefix that they get, where the files are to be; it may be where they are.
        check_sizes: Whether to compare the lengths of data files with their manifests.
    """
    text = read_metadata_json(io, metadata_file)
    metadata = TableMetadata.from_json(text, metadata_file)
    change = LocationChange(metadata.location if source is None else source, target, io.properties)
    written, folder = _places(change, metadata_file, metadata)
    if source is None:
        _check_location(change, written, metadata_file)
    route = _Route(io, change, folder)
    begin = partial(progress.task, "reading", unit="files")
    done = Relocation(io, route, written, begin=begin).run()
    _check_links(io, folder, route.looked_at)
    _check_links(io, target, [file.target for file in done.files])
    lacking = [*route.lacking]
    kept = [file for file in done.files if not file.is_rewritten]
    sizes = _sizes(io, [route.found(metadata.location)], [file.source for file in kept])
    wrong = []
    for file in kept:
        actual = sizes.get(file.source)
        if actual is None:
            lacking.append(LackingFile(file.what, file.source))
        elif check_sizes and file.size is not None and file.size != actual:
            wrong.append(LackingFile(file.what, file.source, file.size, actual))
    gone = {one.location for one in lacking}
    return RelocationPlan(
        metadata_file=metadata_file,
        source=change.source,
        folder=folder,
        target=target,
        metadata=metadata,
        new_metadata_file=route.rewritten(written, _METADATA),
        files=tuple(file for file in done.files if file.source not in gone),
        to_copy=tuple(_to_copy(io, metadata, route, kept, sizes)),
        missing=tuple(one for one in lacking if one.what not in _DISPENSABLE),
        wrong_sizes=tuple(wrong),
        left_out=tuple(one for one in lacking if one.what in _DISPENSABLE),
    )


def relocate(
    io: FileIO, plan: RelocationPlan, *, copy: bool = False, progress: Progress = SILENT
) -> int:
    """Make the table at the target as planned, and return the number of copied files.

    After a failure, a new plan goes on from there.
    """
    name = plan.metadata.location
    if plan.is_blocked:
        first = (*plan.missing, *plan.wrong_sizes)[0]
        raise ValidationError(
            f"The table of {plan.metadata_file} (written for {name}) is not complete: "
            f"{len(plan.missing)} files are missing and {len(plan.wrong_sizes)} have another "
            f"length than stated, such as {first}",
            hint="Restore them, or choose the metadata file of an older version.",
            path=first.location,
        )
    if plan.to_copy and not copy:
        first_file = plan.to_copy[0]
        raise ValidationError(
            f"{len(plan.to_copy)} files of {plan.metadata_file} are not in {plan.target}, such as "
            f"{first_file.target}",
            hint="Copy them first, or have icecomb do it: --copy.",
            path=first_file.target,
        )
    if plan.to_copy:
        copied = each(
            *(progress, "copying", "files", plan.to_copy),
            lambda file: copy_file(io, file.source, file.target),
            _COPIERS,
        )
        deque(copied, maxlen=0)
    change = LocationChange(plan.source, plan.target, io.properties)
    written, _ = _places(change, plan.metadata_file, plan.metadata)
    without = frozenset(one.location for one in plan.left_out)
    route = _Route(io, change, plan.folder, is_written=True)
    begin = partial(progress.task, "rewriting", unit="files")
    Relocation(io.to_copy(), route, written, without=without, begin=begin).run()
    for location, content in route.last:
        create_own(io, location, content)
    return len(plan.to_copy)


@dataclass
class _Route:
    """A `Route` from a folder to another one, or to the same one."""

    io: FileIO
    change: LocationChange
    folder: str
    is_written: bool = False
    lacking: list[LackingFile] = field(default_factory=list)
    last: list[tuple[str, bytes]] = field(default_factory=list)
    looked_at: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        here, there = plain_texts([self.folder, self.change.target], self.io.properties)
        self._stays = here.rstrip("/") == there.rstrip("/")
        both = f"{self.change.source}\n{self.change.target}"
        self._key = hashlib.sha256(both.encode()).hexdigest()[:8]

    def found(self, location: str) -> str:
        rest = self.change.rest(location)
        if rest is None:
            return location
        place = joined(self.folder, rest)
        self.looked_at.add(place)
        return place

    def kept(self, location: str, what: str) -> str:
        return self.change.moved(location, what)

    def rewritten(self, location: str, what: str) -> str:
        """Implement `Route.rewritten`: beside the original where that has the name."""
        moved = self.change.moved(location, what)
        if not self._stays:
            return moved
        folder, _, name = moved.rpartition("/")
        return f"{folder}/relocated-{self._key}/{name}"

    def put(self, location: str, content: bytes) -> str:
        """Implement `Route.put`: metadata files are kept for last."""
        target = self.rewritten(location, _METADATA)
        if location.endswith(METADATA_SUFFIXES):
            self.last.append((target, content))
        elif self.is_written:
            create_own(self.io, target, content)
        return target

    def missing(self, location: str, what: str, error: NoSuchFileError) -> None:
        """Implement `Route.missing`: what was there when it was planned is not passed over."""
        if self.is_written and what not in _DISPENSABLE:
            raise error
        one = LackingFile(what, self.found(location))
        if one not in self.lacking:
            self.lacking.append(one)


def _places(change: LocationChange, metadata_file: str, metadata: TableMetadata) -> tuple[str, str]:
    """Return what the metadata calls its file, and the folder that has the files of the prefix."""
    here, _, name = metadata_file.rpartition("/")
    log = [entry.metadata_file for entry in metadata.metadata_log[-1:]]
    snapshot = metadata.current_snapshot()
    lists = [] if snapshot is None else [snapshot.manifest_list or ""]
    folders = [text.rpartition("/")[0] for text in (*log, *lists)]
    folders.append(metadata_folder(metadata))
    for folder in folders:
        rest = change.rest(folder)
        if rest is not None and here.endswith(rest):
            return f"{folder}/{name}", here[: len(here) - len(rest)] or "/"
    raise ValidationError(
        f"{metadata_file} is not where the table has its metadata: that is "
        f"{folders[0]}, and {change.source} is the prefix to replace",
        hint="Give the prefix of the paths in it (--from), and keep the folders below it together.",
        path=metadata_file,
    )


def _check_location(change: LocationChange, written: str, metadata_file: str) -> None:
    """Refuse a location above the table: below that are files of others, which would be copied."""
    rest = change.rest(written.rpartition("/")[0])
    if rest is None or not _METADATA_FOLDER.fullmatch(rest):
        raise ValidationError(
            f"{metadata_file} has the location {change.source}, and its metadata is not in "
            f"{joined(change.source, '/metadata')}; whether the folder is the table's own cannot "
            "be told",
            hint="Give the prefix of the paths in it (--from).",
            path=metadata_file,
        )


def _check_links(io: FileIO, folder: str, locations: Iterable[str]) -> None:
    """Refuse files that are somebody else's: who gave the folder away may have put a link there."""
    inside = (one for one in locations if one.rstrip("/") != folder.rstrip("/"))
    if outside := led_out(folder, inside, io.properties):
        first = min(outside)
        raise ValidationError(
            f"A symbolic link leads from {first} out of {folder}, which is not followed",
            hint="If you know what it leads to, put that in its stead.",
            path=first,
        )


def _sizes(io: FileIO, folders: Iterable[str], wanted: Iterable[str]) -> Mapping[str, int]:
    """Return the lengths of files: of all in some folders, and of those wanted elsewhere."""
    sizes = {}
    for folder in folders:
        sizes.update({status.location: status.size for status in io.list(folder)})

    def size(location: str) -> tuple[str, int | None]:
        try:
            return location, io.size(location)
        except NoSuchFileError:
            return location, None

    others = [one for one in wanted if one not in sizes]
    if others:
        found = io.each(others[0], size, others)
        sizes.update({one: length for one, length in found if length is not None})
    return sizes


def _to_copy(
    io: FileIO,
    metadata: TableMetadata,
    route: _Route,
    files: Iterable[MovedFile],
    sizes: Mapping[str, int],
) -> Iterable[MovedFile]:
    """Yield the files that are not at the target yet."""
    moving = [file for file in files if file.source in sizes and file.source != file.target]
    if not moving:
        return
    place = route.kept(metadata.location, "table location")
    there = _sizes(io, [place], [file.target for file in moving])
    for file in moving:
        size = there.get(file.target)
        if size is None:
            yield file
        elif size != sizes[file.source]:
            raise FileAlreadyExistsError(
                f"{file.target} exists, with {size} bytes, and {file.source} has "
                f"{sizes[file.source]}",
                hint="Choose an empty target, or remove that file.",
                path=file.target,
            )
