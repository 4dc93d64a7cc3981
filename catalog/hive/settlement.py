"""What became of an alter that did not simply succeed: found out by looking, never by guessing."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from icecomb.catalog.configuration import number
from icecomb.catalog.hive.thrift.entity import HiveTable
from icecomb.catalog.hive.thrift.failure import RefusedError
from icecomb.catalog.hive.thrift.server import MODIFIED
from icecomb.catalog.pointer import Committed, Conflict, MetadataVersion, Outcome, Unknown
from icecomb.format.errors import IcecombError

if TYPE_CHECKING:
    from icecomb.format.file_io import FileIO
    from icecomb.format.metadata import TableMetadata

_STORE_TROUBLE: Final = ("JDO", "SQLException", "onnection", "imeout", "imed out", "Datastore")
"""Words of answers in which the server says that its own database failed, perhaps at the commit."""
_LOOKS_AFTER_ANSWER: Final = 4


class Settlement:
    """One swap whose outcome is to be told.

    Made before the alter is sent, so that bad settings are found while nothing has happened.

    Args:
        entry: Reads the entry; None if there is none.
        history: The metadata files before the one that an entry points at, as far as it tells, and
            ``new`` if its change is in that one; None if it cannot be read.
        expected: The file that was to be replaced; None for a new entry.
        new: The file that was to come.
        properties: Those of the table or view.
        checked: The server was told which pointer it may replace, and enforces that.
    """

    def __init__(
        self,
        entry: Callable[[], HiveTable | None],
        history: Callable[[HiveTable], Collection[str] | None],
        expected: str | None,
        new: str,
        properties: Mapping[str, str],
        *,
        checked: bool,
    ) -> None:
        self._entry = entry
        self._history = history
        self._expected = expected
        self._new = new
        self._checked = checked
        self._pauses = tuple(pauses(properties))

    def after_silence(self, cause: Exception) -> Outcome:
        """The answer was lost: the alter may have happened, and may still happen."""
        seen: str | None = None
        for pause in self._pauses:
            time.sleep(pause)
            try:
                entry = self._entry()
            except IcecombError:
                continue
            seen = entry.metadata_location if entry else None
            if self._new == seen:
                return Committed()
            log = self._log(entry)
            if log is None:
                continue
            if self._new in log:
                return Committed()
            if self._checked and self._expected is not None and self._expected in log:
                # Others went on from the pointer that a late alter would expect: it cannot happen.
                return Conflict("another writer was first", seen)
        return self._unknown(cause, seen)

    def after_answer(self, cause: Exception) -> Outcome:
        """The server said no: nothing will happen any more, but it may refuse its own success.

        A server repeats a call when its own database fails, and then finds the pointer moved.
        """
        for pause in self._pauses[:_LOOKS_AFTER_ANSWER]:
            time.sleep(pause)
            try:
                entry = self._entry()
            except IcecombError:
                continue
            seen = entry.metadata_location if entry else None
            if self._new == seen:
                return Committed()
            log = self._log(entry)
            if log is None:
                continue
            if self._new in log:
                return Committed()
            return Conflict("another writer was first" if entry else "the table is gone", seen)
        return self._unknown(cause, None)

    def after_refusal(self, error: RefusedError) -> Outcome:
        """The server raised an exception other than that the table is gone.

        Raises:
            RefusedError: the change itself is refused, and it is proven that it did not happen.
        """
        outcome = self.after_answer(error)
        unmoved = isinstance(outcome, Conflict) and outcome.current == self._expected
        if MODIFIED in error.answer or not unmoved:
            return outcome
        if error.kind == "MetaException" and any(word in error.answer for word in _STORE_TROUBLE):
            return self._unknown(error, self._expected)
        raise error

    def _unknown(self, cause: Exception, seen: str | None) -> Unknown:
        reason = str(getattr(cause, "message", cause))
        return Unknown(reason, seen, cause, checked=self._checked)

    def _log(self, entry: HiveTable | None) -> Collection[str] | None:
        location = entry.metadata_location if entry else None
        if entry is None or location is None or location == self._expected:
            return ()
        return self._history(entry)


def table_history(
    io: FileIO, expected: MetadataVersion | None, new: MetadataVersion
) -> Callable[[HiveTable], Collection[str] | None]:
    """See `Settlement`: the metadata log of the file that a table's entry points at."""
    from icecomb.format.metadata_file import read_metadata

    def history(entry: HiveTable) -> Collection[str] | None:
        try:
            metadata = read_metadata(io, entry.metadata_location or "")
        except (IcecombError, OSError):
            return None
        known = frozenset(one.metadata_file for one in metadata.metadata_log)
        # A log may be cut to its last entry, so the new snapshot is proof as well.
        before = expected.metadata if expected else None
        return known | {new.location} if has_new_snapshot(metadata, before, new.metadata) else known

    return history


def has_new_snapshot(
    current: TableMetadata, before: TableMetadata | None, new: TableMetadata
) -> bool:
    """Whether ``current`` has the snapshot that ``new`` added to ``before``."""
    if before is None:
        return False
    newest = [snapshot.snapshot_id for snapshot in new.snapshots[-1:]]
    return any(current.has_snapshot(i) and not before.has_snapshot(i) for i in newest)


def pauses(properties: Mapping[str, str]) -> Iterator[float]:
    """Seconds before each look at the pointer: none, then as ``commit.status-check.*`` say."""
    prefix = "commit.status-check"
    retries = number(properties, f"{prefix}.num-retries", 3, least=0)
    pause = number(properties, f"{prefix}.min-wait-ms", 1_000, least=0) / 1000
    longest = number(properties, f"{prefix}.max-wait-ms", 60_000, least=0) / 1000
    left = number(properties, f"{prefix}.total-timeout-ms", 1_800_000, least=0) / 1000
    yield 0.0
    for _ in range(retries):
        if left <= 0:
            return
        yield min(pause, longest, left)
        left -= pause
        pause *= 2
