"""Committing: apply a change to the newest metadata, write the file, swap the pointer, or retry."""

from __future__ import annotations

import logging
import random
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from icecomb.catalog.pointer import (
    Committed,
    MetadataPointer,
    MetadataVersion,
    Pointer,
    Unknown,
    V,
    WriteGuard,
)
from icecomb.format.cancellation import check_wanted, pause
from icecomb.format.errors import (
    AlreadyCommittedError,
    CommitFailedError,
    CommitStateUnknownError,
    IcecombError,
    OperationCancelledError,
    UnsupportedError,
)
from icecomb.format.spec.table_property import (
    COMMIT_MAX_WAIT,
    COMMIT_MIN_WAIT,
    COMMIT_RETRIES,
    COMMIT_TOTAL_TIMEOUT,
    METADATA_DELETE_AFTER_COMMIT,
)

if TYPE_CHECKING:
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.update import Changes
    from icecomb.format.storage.file_io import FileIO

M = TypeVar("M")
_LOG: Final = logging.getLogger(__name__)


class Producer(Protocol):
    """A change of a table that can be made again on a newer base.

    `icecomb.format.operation.snapshot_producer.SnapshotProducer` is one.
    """

    @property
    def starting_point(self) -> tuple[str, int] | None:
        """A branch, and its snapshot after which conflicts are looked for; None: they are not."""

    def apply(self, base: TableMetadata) -> Changes:
        """What is to change on ``base``; may write files, and re-uses those it wrote before."""

    def clean_up(self, committed: TableMetadata | None) -> None:
        """Delete the files it wrote that ``committed`` (None: nothing) does not need."""


@dataclass(frozen=True, slots=True)
class RetrySettings:
    """``commit.retry.*``: how often and how long a commit that lost a race is tried again."""

    retries: int
    min_wait_s: float
    max_wait_s: float
    total_s: float

    @classmethod
    def of(cls, properties: Mapping[str, str], *, locked: bool) -> RetrySettings:
        """As the table's properties say, else Iceberg's defaults.

        Without locks a retry is cheap and says little about the next one: the defaults are 100 and
        1 s then, so that nobody sleeps long while others have their turn again and again.
        """
        return cls(
            retries=COMMIT_RETRIES.of(properties, default=None if locked else 100),
            min_wait_s=COMMIT_MIN_WAIT.of(properties) / 1000,
            max_wait_s=COMMIT_MAX_WAIT.of(properties, default=None if locked else 1_000) / 1000,
            total_s=COMMIT_TOTAL_TIMEOUT.of(properties) / 1000,
        )

    def pause(self, attempt: int) -> float:
        """Seconds before the retry after failed attempt ``attempt`` (from 1): full jitter."""
        longest = min(self.min_wait_s * 2 ** (attempt - 1), self.max_wait_s)
        return random.uniform(0, longest)  # noqa: S311 - spreads load


def commit(
    pointer: MetadataPointer, io: FileIO, base: MetadataVersion, producer: Producer
) -> MetadataVersion:
    """Commit what ``producer`` makes, on ``base`` or on what others have committed since.

    The first try prepares everything before it keeps other writers out. One that then finds itself
    overtaken applies the change again while they are still kept out; where that is not possible
    (without locks) it tries again as ``commit.retry.*`` say.

    Args:
        pointer: The table's pointer.
        io: Where its metadata goes.
        base: The version the caller knows.
        producer: The change.

    Returns:
        The new version (``base`` if nothing changed).

    Raises:
        CommitFailedError: proven that nothing was committed: the retries are used up, or the lock
            was not granted (`LockTimeoutError`).
        CommitStateUnknownError: it cannot be told.
        IcecombError: the change is refused on the newest state of the table; nothing was committed.
    """
    from icecomb.format.operation.merging import MergingProducer

    if isinstance(producer, MergingProducer):
        # whoever else is first: the names in the change are those that the caller knows
        producer.name_columns_by(base.metadata.schema())

    made: set[int] = set()
    newest = base

    def change(base: MetadataVersion) -> TableMetadata:
        nonlocal newest
        newest = base
        changed = _changed(pointer, base, producer)
        made.update(_new_snapshots(base.metadata, changed))
        return changed

    try:
        followed, done = commit_version(pointer, base, change)
    except CommitStateUnknownError:
        raise
    except AlreadyCommittedError:
        # an attempt that passed for lost, or whose outcome was not known, was made: its files are
        # needed
        return newest
    except IcecombError:
        # Our own errors are raised on proof that nothing was committed; an interrupt is none.
        with suppress(IcecombError, OSError):
            if made and _has_one_of((newest := pointer.load()).metadata, made):
                return newest
        with suppress(IcecombError, OSError):
            producer.clean_up(None)
        raise
    _delete_forgotten(io, followed.metadata, done.metadata)
    with suppress(IcecombError, OSError):
        producer.clean_up(done.metadata)
    return done


def commit_version(pointer: Pointer[V, M], base: V, change: Callable[[V], M]) -> tuple[V, V]:
    """Commit what ``change`` makes of a table's or view's metadata; see `commit`.

    Args:
        pointer: Its pointer.
        base: The version the caller knows.
        change: What the metadata is to be after a version; that version's own for no change.

    Returns:
        The version that was followed, and the new one, which is the same if nothing changed.
    """
    with pointer.queue(base) as others_were_first:
        if others_were_first:
            base = newest_of(pointer, base)
        return _attempts(pointer, base, change)


def _attempts(pointer: Pointer[V, M], base: V, change: Callable[[V], M]) -> tuple[V, V]:
    started = time.monotonic()
    attempt = 0
    while True:
        attempt += 1
        if attempt > 1:
            base = newest_of(pointer, base)
        base, new = _prepared(pointer, base, change)
        if new is base:
            # nothing to change is only true of what it is like now
            if newest_of(pointer, base).location == base.location:
                return base, base
            continue
        with _alone(pointer, base, new) as alone:
            settings = RetrySettings.of(base.metadata.properties, locked=alone)
            failure = _try(pointer, base, new)
            if failure is not None and alone and attempt <= settings.retries:
                attempt += 1
                base = newest_of(pointer, base)
                new = _prepare(pointer, base, change)
                failure = _try(pointer, base, new)
        if failure is None:
            return base, new
        taken = time.monotonic() - started
        if attempt > settings.retries or taken > settings.total_s:
            raise _used_up(pointer.name, attempt, taken, failure) from failure
        if not pointer.ask_for_turn(base):
            pause(settings.pause(attempt))


def newest_of(pointer: Pointer[V, M], base: V) -> V:
    """What the pointer points at now, if it is the table or view of ``base`` still.

    Raises:
        CommitFailedError: it was dropped, and another one has its name.
    """
    newest = pointer.load()
    if base.uuid is not None and newest.uuid != base.uuid:
        raise CommitFailedError(
            f"{pointer.name} was dropped, and a new {base.kind} has its name",
            hint=f"load the {base.kind} again and repeat the change, if the new one is meant",
            current=newest.location,
            **{base.kind: pointer.name},
        )
    return newest


@contextmanager
def _alone(pointer: Pointer[V, M], base: V, new: V) -> Iterator[bool]:
    """Keep other writers out; where that fails nobody will ever need the file of ``new``."""
    with ExitStack() as stack:
        try:
            alone = stack.enter_context(pointer.exclusive(base.metadata))
            # the last moment at which it is known that nothing is committed
            check_wanted()
        except IcecombError:
            pointer.discard(new)
            raise
        yield alone


def _try(pointer: Pointer[V, M], base: V, new: V) -> CommitFailedError | None:
    if new is not base:
        try:
            settle(pointer, base, new)
        except CommitFailedError as failure:
            _LOG.info("an attempt to commit failed: %s", failure.message)
            return failure
    return None


def _prepared(pointer: Pointer[V, M], base: V, change: Callable[[V], M]) -> tuple[V, V]:
    """The version that is followed, and the change on it, staged.

    A version that others have left behind proves nothing by what fails on it: its files may have
    been expired meanwhile. Then it is a race that was lost, and the newest one counts.
    """
    while True:
        try:
            return base, _prepare(pointer, base, change)
        except OperationCancelledError:  # noqa: PERF203 - tried again
            raise
        except IcecombError:
            newest = newest_of(pointer, base)
            if newest.location == base.location:
                raise
            base = newest


def _prepare(pointer: Pointer[V, M], base: V, change: Callable[[V], M]) -> V:
    """The change on ``base``, staged; ``base`` itself if there is nothing to change."""
    changed = change(base)
    return base if changed is base.metadata else pointer.stage(base, changed)


def _changed(guard: WriteGuard, base: MetadataVersion, producer: Producer) -> TableMetadata:
    """What a producer makes of the metadata."""
    from icecomb.format.spec.update import update_table_metadata

    guard.check_writable(base.metadata)
    changes = producer.apply(base.metadata)
    for requirement in changes.requirements:
        requirement.check(base.metadata)
    return update_table_metadata(base.metadata, changes.updates, base_location=base.location)


def _has_one_of(metadata: TableMetadata, made: Iterable[int]) -> bool:
    """Whether an attempt is in that passed for one that others came before: by its snapshots."""
    return any(metadata.snapshot_by_id(number) is not None for number in made)


def _new_snapshots(before: TableMetadata, after: TableMetadata) -> Iterator[int]:
    """The snapshots that a change adds, which stand behind the others."""
    for snapshot in reversed(after.snapshots):
        if before.snapshot_by_id(snapshot.snapshot_id) is not None:
            return
        yield snapshot.snapshot_id


def settle(pointer: Pointer[V, M], base: V | None, new: V) -> None:
    """Swap the pointer and turn the outcome into a return or an error.

    ``new`` is discarded when, and only when, it is proven that nobody will ever need it.

    Raises:
        CommitFailedError: a conflict.
        CommitStateUnknownError: it cannot be told whether the pointer was swapped.
        IcecombError: the swap was refused, or the metastore was not reached.
    """
    begun = time.monotonic()
    try:
        outcome = pointer.swap(base, new)
    except IcecombError:
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
            hint="nothing was deleted; before you repeat the commit, ask what became of it: "
            f"icecomb commit settle {shlex.join((*checked, pointer.name, new.location))}",
            table=pointer.name,
            new=new.location,
            current=outcome.current,
        ) from outcome.cause
    pointer.discard(new)
    raise CommitFailedError(
        f"{pointer.name}: {outcome.reason}",
        hint="load the table again and repeat the change",
        table=pointer.name,
        current=outcome.current,
    )


def check_commit_allowed(name: str, metadata: TableMetadata) -> None:
    """Refuse, before anything is written, tables that only another implementation keeps right.

    Raises:
        UnsupportedError: the table is encrypted.
    """
    if "encryption.key-id" in metadata.properties:
        raise UnsupportedError(
            f"{name} is encrypted: icecomb cannot write to it",
            hint="write to it with Iceberg Java",
            table=name,
        )


def _delete_forgotten(io: FileIO, base: TableMetadata, new: TableMetadata) -> None:
    """Delete the files that fell out of the metadata log, where the table asks for it."""
    # The commit is done: an error now would be taken for its failure, and its files be deleted.
    with suppress(IcecombError, OSError):
        if not METADATA_DELETE_AFTER_COMMIT.of(new.properties):
            return
        kept = {entry.metadata_file for entry in new.metadata_log}
        io.delete([e.metadata_file for e in base.metadata_log if e.metadata_file not in kept])


def _used_up(
    name: str, attempts: int, seconds: float, last: CommitFailedError | None
) -> CommitFailedError:
    if attempts == 1 and last is not None:
        return last
    return CommitFailedError(
        f"{name}: not committed after {attempts} attempts in {seconds:.1f} s; the last one: "
        f"{last.message if last else ''}",
        hint="other writers were first each time: raise commit.retry.num-retries",
        table=name,
        attempts=attempts,
    )
