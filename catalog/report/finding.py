"""Findings of an examination or a plan: a fact or an obstacle, with its remedy."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass
from enum import Enum
from functools import partial
from itertools import islice
from typing import Any, Final


class Severity(str, Enum):
    """The severity of a finding, the most serious first."""

    BLOCKER = "blocker"
    PROBLEM = "problem"
    WARNING = "warning"
    NOTE = "note"
    OK = "ok"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding of an examination or a plan.

    Attributes:
        severity: ``BLOCKER`` stops a plan before anything is changed. ``PROBLEM``: something is
            wrong. ``WARNING``: something may go wrong. ``NOTE``: worth knowing. ``OK``: checked,
            and fine.
        code: A stable name for programs, such as ``unknown-format``, or the checked subject, such
            as ``metadata file``.
        message: One sentence: what was found, and where.
        remedy: The way to fix it, a command if there is one; or the consequence.
        places: The columns, partitions or files concerned (a handful at most).
        count: Number of all places.
    """

    severity: Severity
    code: str
    message: str
    remedy: str | None = None
    places: tuple[str, ...] = ()
    count: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return the finding for programs."""
        return {**asdict(self), "severity": self.severity.value, "places": list(self.places)}


_SHOWN: Final = 5


class Mentions(Collection[str]):
    """The places of a finding, all counted, a handful kept."""

    def __init__(self) -> None:
        self._first: list[str] = []
        self._count = 0

    def add(self, place: str) -> None:
        """Count one more place."""
        self._count += 1
        if len(self._first) < _SHOWN:
            self._first.append(place)

    def __len__(self) -> int:
        """Return the number of all places."""
        return self._count

    def __iter__(self) -> Iterator[str]:
        """Iterate over the first places."""
        return iter(self._first)

    def __contains__(self, place: object) -> bool:
        """Return whether a position is among the first."""
        return place in self._first


def _finding(
    severity: Severity, code: str, message: str, remedy: str, places: Collection[str] = ()
) -> Finding:
    return Finding(severity, code, message, remedy, tuple(islice(places, _SHOWN)), len(places))


blocker: Final = partial(_finding, Severity.BLOCKER)
"""Create a finding of a plan from code, message, remedy and all places."""
warning: Final = partial(_finding, Severity.WARNING)
note: Final = partial(_finding, Severity.NOTE)
