"""The outcome of a change that did not simply succeed: observed, never guessed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Final, TypeAlias

from icecomb.catalog.commit.pointer import Committed, Conflict, Outcome, Unknown
from icecomb.catalog.hive.thrift.failure import RefusedError
from icecomb.catalog.hive.thrift.length_limits import is_too_long
from icecomb.catalog.hive.thrift.server import MODIFIED, NO_DIRECT_SQL
from icecomb.format.cancellation import rest
from icecomb.format.errors import IcecombError
from icecomb.format.property.table_property import (
    STATUS_CHECK_MAX_WAIT,
    STATUS_CHECK_MIN_WAIT,
    STATUS_CHECK_TOTAL_TIMEOUT,
    STATUS_CHECKS,
)

if TYPE_CHECKING:
    from icecomb.catalog.hive.thrift.entity import HiveTable

_STORE_TROUBLE: Final = ("JDO", "SQLException", "onnection", "imeout", "imed out", "Datastore")
"""Words of answers that say that the server's database failed, perhaps at the commit."""
_POLLS_AFTER_ANSWER: Final = 4
_MOST_CHECKS: Final = 1000


class ChangeState(Enum):
    """The state of a requested change, as the entry tells.

    ``HAPPENED``: the change is there, or later commits build on it. ``NOT_YET``: the entry is what
    it was before. ``OVERTAKEN``: other commits replaced what the change expects, for good.
    ``ELSEWHERE``: the entry is something else, and nothing tells what was in between.
    ``UNREADABLE``: the history cannot be read now.
    """

    HAPPENED = auto()
    NOT_YET = auto()
    OVERTAKEN = auto()
    ELSEWHERE = auto()
    UNREADABLE = auto()


@dataclass(frozen=True, slots=True)
class Observation:
    """The entry at one poll, None if there is none, and what it tells about the change."""

    state: ChangeState
    entry: HiveTable | None

    @property
    def current(self) -> str | None:
        """The metadata file that the entry points at."""
        return self.entry.metadata_location if self.entry else None


Poll: TypeAlias = "Callable[[], Observation]"
"""A poll of the metastore; it raises an `IcecombError` if that fails."""


class Settlement:
    """The settlement of one change's outcome.

    Made before the request is sent, so that bad settings are found while nothing has happened.

    Args:
        properties: Properties of the table or view: ``commit.status-check.*``.
        checked: Whether the request named the value it may replace, and the server enforces that.
    """

    def __init__(self, poll: Poll, properties: Mapping[str, str], *, checked: bool) -> None:
        self._poll = poll
        self._checked = checked
        self._pauses = tuple(pauses(properties))

    def after_silence(self, cause: Exception) -> Outcome:
        """Settle a lost answer: the change may have happened, and may still happen."""
        current: str | None = None
        for observed in self._observations(len(self._pauses)):
            current = observed.current
            if observed.state is ChangeState.HAPPENED:
                return Committed(found=True)
            if self._checked and observed.state is ChangeState.OVERTAKEN:
                # The value that a late request expects is gone: it cannot succeed.
                return Conflict("another writer was first", current)
        return self._unknown(cause, current)

    def after_answer(self, cause: Exception) -> Outcome:
        """Settle a refusal by the server, which can no longer happen but may have succeeded.

        A server repeats a call when its database fails, and then finds its own change.
        """
        observed = self._first_clear()
        return self._unknown(cause, None) if observed is None else self._answered(observed, cause)

    def after_refusal(self, error: RefusedError) -> Outcome:
        """Settle an exception of the server other than that the table is gone.

        RefusedError is raised if the change is refused, and proven not to have happened.
        """
        observed = self._first_clear()
        if observed is None:
            return self._unknown(error, None)
        if observed.state is not ChangeState.NOT_YET or MODIFIED in error.answer:
            return self._answered(observed, error)
        store = error.kind == "MetaException" and NO_DIRECT_SQL not in error.answer
        store = store and not is_too_long(error.answer)
        if store and any(word in error.answer for word in _STORE_TROUBLE):
            return self._unknown(error, observed.current)
        raise error

    def _answered(self, observed: Observation, cause: Exception) -> Outcome:
        if observed.state is ChangeState.HAPPENED:
            return Committed(found=True)
        if observed.state is ChangeState.ELSEWHERE and observed.entry is not None:
            # Later commits may build on a success that was refused, and no longer list it.
            return self._unknown(cause, observed.current)
        reason = "another writer was first" if observed.entry else "the table is gone"
        return Conflict(reason, observed.current)

    def _first_clear(self) -> Observation | None:
        observations = self._observations(_POLLS_AFTER_ANSWER)
        return next((one for one in observations if one.state is not ChangeState.UNREADABLE), None)

    def _observations(self, most: int) -> Iterator[Observation]:
        for pause in self._pauses[:most]:
            # The operation was canceled: what is known by now is the answer.
            if pause and not rest(pause):
                return
            try:
                observed = self._poll()
            except IcecombError:
                continue
            yield observed

    def _unknown(self, cause: Exception, current: str | None) -> Unknown:
        reason = str(getattr(cause, "message", cause))
        return Unknown(reason, current, cause, checked=self._checked)


def pauses(properties: Mapping[str, str]) -> Iterator[float]:
    """Yield the seconds before each poll: none, then as ``commit.status-check.*`` say.

    Whoever writes to the table's folder writes its properties: number and time are bounded.
    """
    retries = min(STATUS_CHECKS.of(properties), _MOST_CHECKS)
    pause = STATUS_CHECK_MIN_WAIT.of(properties) / 1000
    longest = STATUS_CHECK_MAX_WAIT.of(properties) / 1000
    total = min(STATUS_CHECK_TOTAL_TIMEOUT.of(properties), STATUS_CHECK_TOTAL_TIMEOUT.default)
    left = total / 1000
    yield 0.0
    for _ in range(retries):
        if left <= 0:
            return
        yield min(pause, longest, left)
        left -= pause
        pause *= 2
