"""Committing: apply a change to the newest metadata, write the file, swap the pointer, or retry."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, TypeVar
from uuid import uuid4

from icecomb.catalog.commit.pointer import (
    Committed,
    MetadataPointer,
    MetadataVersion,
    Outcome,
    Owner,
    Pointer,
    Unknown,
    V,
    Version,
    WriteGuard,
)
from icecomb.catalog.configuration.catalog_property import (
    COMMIT_LONGEST,
    COMMIT_LONGEST_WAIT,
    FORMAT_VERSION_MAX,
)
from icecomb.format.cancellation import check_wanted, pause
from icecomb.format.errors import (
    AlreadyCommittedError,
    CommitFailedError,
    CommitStateUnknownError,
    IcecombError,
    OperationCanceledError,
    UnsupportedError,
    ValidationError,
)
from icecomb.format.holding import Holding, is_interrupt
from icecomb.format.property.table_property import (
    COMMIT_MAX_WAIT,
    COMMIT_MIN_WAIT,
    COMMIT_RETRIES,
    COMMIT_TOTAL_TIMEOUT,
    METADATA_DELETE_AFTER_COMMIT,
    METADATA_PATH,
)
from icecomb.format.secret import one_line
from icecomb.format.shell_command import shell_command
from icecomb.format.spec.metadata_file import clock_skew, metadata_folder
from icecomb.format.spec.own_folders import OwnFolders, named_folders, outside_text

if TYPE_CHECKING:
    from icecomb.format.spec.change.update import Changes
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.view import ViewMetadata
    from icecomb.format.storage.file_io import FileIO

M = TypeVar("M")
_LOG: Final = logging.getLogger(__name__)
_UNMOVED: Final = 10
"""Refusals after each of which the newest version is the same: more than a slow listing takes."""


class Producer(Protocol):
    """A change of a table that can be repeated on a newer base, as `SnapshotProducer` is."""

    @property
    def starting_point(self) -> tuple[str, int] | None:
        """A branch, and its snapshot after which conflicts are checked; None for no checks."""

    @property
    def writes_files(self) -> bool:
        """Whether `apply` writes manifests: refused where nothing vouches for their folder."""

    def apply(self, base: TableMetadata) -> Changes:
        """Return the changes on ``base``; may write files, and reuses those written before."""

    def clean_up(self, committed: TableMetadata | None) -> None:
        """Delete the files it wrote that ``committed`` (None: nothing committed) does not need."""


@dataclass(frozen=True, slots=True)
class RetrySettings:
    """``commit.retry.*``: how often and how long a commit that lost a race is retried."""

    retries: int
    min_wait_s: float
    max_wait_s: float
    total_s: float

    @classmethod
    def of(
        cls, properties: Mapping[str, str], catalog: Mapping[str, str], *, locked: bool
    ) -> RetrySettings:
        """Read the settings from the table's properties, else Iceberg's defaults.

        Without locks a retry is cheap and says little about the next one: the defaults are then 100
        retries and 1 s, so that no writer sleeps long while others commit again and again.

        Whoever writes to the table's folder writes its properties: the times are bounded by the
        catalog's.
        """
        longest, total = COMMIT_LONGEST_WAIT.of(catalog), COMMIT_LONGEST.of(catalog)
        max_wait = COMMIT_MAX_WAIT.of(properties, default=None if locked else 1_000)
        return cls(
            retries=COMMIT_RETRIES.of(properties, default=None if locked else 100),
            min_wait_s=min(COMMIT_MIN_WAIT.of(properties), longest) / 1000,
            max_wait_s=min(max_wait, longest) / 1000,
            total_s=min(COMMIT_TOTAL_TIMEOUT.of(properties), total) / 1000,
        )

    def are_used_up(self, attempt: int, seconds: float) -> bool:
        """Return whether no retry is left after attempt ``attempt`` (from 1) and this time."""
        return attempt > self.retries or seconds > self.total_s

    def pause(self, attempt: int) -> float:
        """Seconds before the retry after failed attempt ``attempt`` (from 1): full jitter."""
        longest = min(self.min_wait_s * 2 ** min(attempt - 1, 62), self.max_wait_s)
        return random.uniform(0, longest)  # noqa: S311 - spreads load


def commit(
    pointer: MetadataPointer, io: FileIO, base: MetadataVersion, producer: Producer
) -> MetadataVersion:
    """Commit a change on ``base`` or what followed it; return the new version, or ``base``.

    The first attempt prepares everything before it locks other writers out. If it then finds itself
    overtaken, it applies the change again while they are still locked out; without locks it retries
    as ``commit.retry.*`` say.

    CommitStateUnknownError means that it is unknown whether the commit happened; with any other
    IcecombError, such as CommitFailedError, nothing was committed.
    """
    from icecomb.format.operation.merging import MergingProducer

    if isinstance(producer, MergingProducer):
        # names in the change are those the caller knows, whatever others have renamed since
        producer.name_columns_by(base.metadata.schema())

    made: set[int] = set()
    newest = base

    def change(base: MetadataVersion) -> TableMetadata:
        nonlocal newest
        newest = base
        changed = _changed(pointer, io, base, producer)
        if changed.format_version > base.metadata.format_version:
            check_format_version(pointer.name, changed, io.properties)
        made.update(_new_snapshots(base.metadata, changed))
        return changed

    try:
        followed, done = commit_version(pointer, base, change)
    except CommitStateUnknownError:
        raise
    except AlreadyCommittedError:
        # an earlier attempt, considered lost or unknown, was committed after all: its files are
        # needed
        return newest
    except IcecombError as error:
        # icecomb's own errors prove that nothing was committed; an interrupt does not.
        if is_interrupt(error):
            raise
        with suppress(IcecombError, OSError):
            if made and _has_one_of((newest := pointer.load()).metadata, made):
                return newest
        with suppress(IcecombError, OSError):
            producer.clean_up(None)
        raise
    if (skew := clock_skew(followed.metadata)) is not None:
        _LOG.warning(
            "%s: %s; check the clocks of the machines that write to it", pointer.name, skew
        )
    _delete_unlogged(io, pointer, followed.metadata, done.metadata)
    with _done():
        producer.clean_up(done.metadata)
    return done


def commit_version(pointer: Pointer[V, M], base: V, change: Callable[[V], M]) -> tuple[V, V]:
    """Commit a change; return the version that was followed, and the new one; see `commit`.

    The function ``change`` returns a version's own metadata if nothing changes; then the two are
    the same.
    """
    with Holding() as held, held:
        if pointer.queue(held, base):
            base = newest_of(pointer, base)
        return _attempts(pointer, base, change)


def _attempts(pointer: Pointer[V, M], base: V, change: Callable[[V], M]) -> tuple[V, V]:
    started = time.monotonic()
    attempt = unmoved = 0
    failure: CommitFailedError | None = None
    while True:
        attempt += 1
        if attempt > 1:
            newest = newest_of(pointer, base)
            unmoved = unmoved + 1 if newest.location == base.location else 0
            if failure is not None and unmoved >= _UNMOVED:
                raise _blocked(pointer.name, base, attempt - 1, failure) from failure
            base = newest
        base, new = _prepared(pointer, base, change)
        if new is base:
            # "nothing to change" holds only for the newest version
            newest = newest_of(pointer, base)
            if newest.location == base.location:
                return base, base
            if _is_overtaken(pointer, newest, attempt, started):
                raise _outrun(pointer.name, attempt, newest)
            continue
        with Holding() as held, held:
            locked = _exclusive(held, pointer, base, new)
            settings = RetrySettings.of(base.metadata.properties, pointer.properties, locked=locked)
            failure = _try(pointer, base, new)
            if failure is not None and locked and attempt <= settings.retries:
                attempt += 1
                base = newest_of(pointer, base)
                new = _prepare(pointer, base, change)
                failure = _try(pointer, base, new)
        if failure is None:
            return base, new
        taken = time.monotonic() - started
        if settings.are_used_up(attempt, taken):
            raise _used_up(pointer.name, attempt, taken, failure) from failure
        if not pointer.wait_in_queue(base):
            pause(min(settings.pause(attempt), settings.total_s - taken))


def newest_of(pointer: Pointer[V, M], base: V) -> V:
    """Return the newest version, if it is still of the table or view of ``base``.

    CommitFailedError is raised if it was dropped, and another table or view has its name.
    """
    newest = pointer.load()
    if base.uuid is not None and newest.uuid != base.uuid:
        raise CommitFailedError(
            f"{pointer.name} was dropped, and a new {base.kind} has its name",
            hint=f"Load the {base.kind} again and repeat the change, if the new one is meant.",
            current=newest.location,
            **{base.kind: pointer.name},
        )
    return newest


def _exclusive(held: Holding, pointer: Pointer[V, M], base: V, new: V) -> bool:
    """Keep other writers out; if that fails, discard ``new``, which nobody will ever need."""
    try:
        locked = pointer.exclusive(held, base.metadata)
        # the last moment at which it is known that nothing is committed
        check_wanted()
    except IcecombError:
        pointer.discard(new)
        raise
    return locked


def _try(pointer: Pointer[V, M], base: V, new: V) -> CommitFailedError | None:
    if new is not base:
        try:
            settle(pointer, base, new)
        except CommitFailedError as failure:
            if is_interrupt(failure):
                raise
            _LOG.info("an attempt to commit failed: %s", failure.message)
            return failure
    return None


def _prepared(pointer: Pointer[V, M], base: V, change: Callable[[V], M]) -> tuple[V, V]:
    """Return the version that is followed, and the change on it, staged.

    A failure on a version that others have replaced proves nothing: its files may have expired
    meanwhile. Then the race was lost, and the newest version counts.
    """
    started, attempt = time.monotonic(), 0
    while True:
        attempt += 1
        try:
            return base, _prepare(pointer, base, change)
        except OperationCanceledError:
            raise
        except IcecombError as error:
            if is_interrupt(error):
                raise
            newest = newest_of(pointer, base)
            if newest.location == base.location:
                raise
            if _is_overtaken(pointer, newest, attempt, started):
                raise
            base = newest


def _is_overtaken(pointer: Pointer[V, M], newest: V, attempt: int, started: float) -> bool:
    """Return whether others were first as often as a commit without locks is retried."""
    settings = RetrySettings.of(newest.metadata.properties, pointer.properties, locked=False)
    return settings.are_used_up(attempt, time.monotonic() - started)


def _prepare(pointer: Pointer[V, M], base: V, change: Callable[[V], M]) -> V:
    """Stage the change on ``base``; return ``base`` itself if there is nothing to change."""
    changed = change(base)
    return base if changed is base.metadata else pointer.stage(base, changed)


def _changed(
    guard: WriteGuard, io: FileIO, base: MetadataVersion, producer: Producer
) -> TableMetadata:
    """Return the metadata with a producer's changes."""
    from icecomb.format.spec.change.update import update_table_metadata

    guard.check_writable(base.metadata)
    if producer.writes_files:
        check_new_files(guard, io, base.metadata)
    changes = producer.apply(base.metadata)
    for requirement in changes.requirements:
        requirement.check(base.metadata)
    return update_table_metadata(base.metadata, changes.updates, base_location=base.location)


def _has_one_of(metadata: TableMetadata, made: Iterable[int]) -> bool:
    """Return whether an attempt considered overtaken was committed: by its snapshots."""
    return any(metadata.snapshot_by_id(number) is not None for number in made)


def _new_snapshots(before: TableMetadata, after: TableMetadata) -> Iterator[int]:
    """Yield the snapshots that a change adds, which are last in the list."""
    for snapshot in reversed(after.snapshots):
        if before.snapshot_by_id(snapshot.snapshot_id) is not None:
            return
        yield snapshot.snapshot_id


def settle(pointer: Pointer[V, M], base: V | None, new: V) -> None:
    """Swap the pointer and convert the outcome to a return or an error; see `commit`.

    ``new`` is discarded when, and only when, it is proven that nobody will ever need it.
    """
    begun = time.monotonic()
    try:
        outcome = swapped(pointer, base, new)
    except IcecombError as error:
        if not is_interrupt(error):
            pointer.discard(new)
        raise
    if isinstance(outcome, Committed):
        taken = (time.monotonic() - begun) * 1000
        _LOG.info("%s: committed %s in %.0f ms", pointer.name, new.location, taken)
        return
    if isinstance(outcome, Unknown):
        seen = outcome.current or "(could not be read)"
        checked = ("--checked",) if outcome.checked else ()
        raise CommitStateUnknownError(
            f"{pointer.name}: it is unknown whether the commit happened: {outcome.reason}. "
            f"New metadata: {new.location}; current metadata: {seen}",
            hint="Nothing was deleted; before you repeat the commit, ask for its outcome: "
            f"{shell_command('commit', 'settle', *checked, pointer.name, new.location)}",
            table=pointer.name,
            new=new.location,
            current=outcome.current,
        ) from outcome.cause
    pointer.discard(new)
    raise CommitFailedError(
        f"{pointer.name}: {outcome.reason}",
        hint="Load the table again and repeat the change.",
        table=pointer.name,
        current=outcome.current,
    )


def swapped(pointer: Pointer[V, M], base: V | None, new: V) -> Outcome:
    """Return the outcome of `Pointer.swap`; an error proves that nothing changed, or interrupts.

    Any error that is not icecomb's own is an unknown outcome: that of an answer, perhaps to a swap
    that was made, from which neither icecomb nor a library could make anything.
    """
    try:
        return pointer.swap(base, new)
    except IcecombError:
        raise
    except Exception as error:
        if is_interrupt(error):
            raise
        reason = one_line(f"{type(error).__name__}: {error}")
        return Unknown(reason, None, error)


def check_commit_allowed(name: str, metadata: TableMetadata) -> None:
    """Refuse, before anything is written, tables that only another implementation can write."""
    if "encryption.key-id" in metadata.properties:
        raise UnsupportedError(
            f"{name} is encrypted: icecomb cannot write to it",
            hint="Write to it with Iceberg Java.",
            table=name,
        )


def check_new_files(guard: WriteGuard, io: FileIO, metadata: TableMetadata) -> None:
    """Refuse, before anything is written, to write where only the metadata file says.

    Whoever writes to the table's folder could otherwise have rows written to any other table's.
    """
    from icecomb.format.rows.write.location_provider import data_folder

    folders = (data_folder(metadata.location, metadata.properties), metadata_folder(metadata))
    _check_folders(guard, io, metadata, folders)


def check_new_lists(guard: WriteGuard, io: FileIO, metadata: TableMetadata) -> None:
    """Refuse to write a list beside the metadata where only the metadata file says."""
    _check_folders(guard, io, metadata, [metadata_folder(metadata)])


def check_new_data_folder(
    owner: Owner, io: FileIO, before: TableMetadata | None, metadata: TableMetadata
) -> None:
    """Refuse to have new data files go where, once committed, only the metadata file says.

    What the metadata before said may stay: only new files are refused there.
    """
    from icecomb.format.rows.write.location_provider import data_folder

    folder = data_folder(metadata.location, metadata.properties)
    if before is None or folder != data_folder(before.location, before.properties):
        _check_folders(owner, io, metadata, [folder])


def check_metadata_folder(
    owner: Owner,
    io: FileIO,
    before: TableMetadata | ViewMetadata,
    metadata: TableMetadata | ViewMetadata,
) -> None:
    """Refuse to write new metadata where only the file before it says.

    Whoever commits vouches for what that did not name.
    """
    named = METADATA_PATH.of(metadata.properties) or metadata.location
    if named in named_folders(before):
        _check_folders(owner, io, metadata, [metadata_folder(metadata)])


def _check_folders(
    owner: Owner, io: FileIO, metadata: TableMetadata | ViewMetadata, folders: Sequence[str]
) -> None:
    vouched = owner.own_folders()
    try:
        OwnFolders(vouched, metadata, io.properties).check_new_files(owner.name, folders)
    except ValidationError:
        if not _is_opened_folder(owner, io, metadata.location):
            raise
        known = [*vouched, metadata.location]
        OwnFolders(known, metadata, io.properties).check_new_files(owner.name, folders)


def _is_opened_folder(owner: Owner, io: FileIO, location: str) -> bool:
    """Return whether a location is the folder of a table by another path, a mount or a router.

    A new file in one of them is seen in the other: anything that is there already, as a uuid or a
    copy of metadata, may be of another table.
    """
    folder = next(iter(owner.own_folders()), None)
    if not folder:
        return False
    name = f"metadata/.same-folder.{uuid4().hex}.tmp"
    mark = f"{folder.rstrip('/')}/{name}"
    try:
        io.create(mark, b"")
        return io.exists(f"{location.rstrip('/')}/{name}")
    except (IcecombError, OSError):
        return False
    finally:
        with suppress(IcecombError, OSError):
            io.discard([mark])


def check_format_version(name: str, metadata: TableMetadata, properties: Mapping[str, str]) -> None:
    """Refuse a new or upgraded table with a format version above ``format-version.max``.

    The metadata is that of the table as it would be.
    """
    highest = FORMAT_VERSION_MAX.of(properties)
    if highest is not None and metadata.format_version > highest:
        raise UnsupportedError(
            f"{name} cannot have format version {metadata.format_version}: the catalog's "
            f"{FORMAT_VERSION_MAX.key} is {highest}, as other engines of the warehouse read "
            "nothing newer",
            hint=f"Use version {highest}; or raise {FORMAT_VERSION_MAX.key} once all engines that "
            "read the table know the version.",
            table=name,
        )


@contextmanager
def _done() -> Iterator[None]:
    """Suppress errors once the commit is done: they would look like its failure."""
    try:
        yield
    except (IcecombError, OSError):
        pass
    except Exception as error:
        if is_interrupt(error):
            raise
        _LOG.info("what followed a commit failed: %s", type(error).__name__)


def _delete_unlogged(
    io: FileIO, guard: WriteGuard, base: TableMetadata, new: TableMetadata
) -> None:
    """Delete the files dropped from the metadata log, if the table asks for it."""
    with _done():
        if not METADATA_DELETE_AFTER_COMMIT.of(new.properties):
            return
        guard.check_deletable(new)
        kept = {entry.metadata_file for entry in new.metadata_log}
        gone = [e.metadata_file for e in base.metadata_log if e.metadata_file not in kept]
        own = OwnFolders(guard.own_folders(), new, io.properties)
        if outside := own.outside(gone):
            _LOG.warning(
                "%s: %s, which the log of metadata no longer names, are not deleted",
                new.location,
                outside_text(outside),
            )
        io.delete(own.metadata_files(gone))


def _blocked(name: str, base: Version, attempts: int, last: CommitFailedError) -> CommitFailedError:
    named = last.context.get("current") or base.location
    return CommitFailedError(
        f"{name}: not committed after {attempts} attempts: {named} is said to be first, but the "
        f"newest {base.kind} remains {base.location}; the last one: {last.message}",
        hint="A folder, a dangling link or an unfinished file may have the name of the next "
        "version: look at it, and remove it.",
        table=name,
        attempts=attempts,
        path=named,
    )


def _outrun(name: str, attempts: int, newest: Version) -> CommitFailedError:
    return CommitFailedError(
        f"{name}: it is not known that there is nothing to change: others committed during each "
        f"of {attempts} looks at it, {newest.location} at last",
        hint="Repeat the change when they are done, or raise commit.retry.num-retries.",
        attempts=attempts,
        current=newest.location,
        **{newest.kind: name},
    )


def _used_up(
    name: str, attempts: int, seconds: float, last: CommitFailedError | None
) -> CommitFailedError:
    if attempts == 1 and last is not None:
        return last
    return CommitFailedError(
        f"{name}: not committed after {attempts} attempts in {seconds:.1f} s; the last one: "
        f"{last.message if last else ''}",
        hint="Other writers were first each time: raise commit.retry.num-retries.",
        table=name,
        attempts=attempts,
    )
