"""What an examination or a plan finds: a fact, or what stands in the way, with its remedy."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass
from enum import Enum
from functools import partial
from itertools import islice
from typing import Any, Final


class Severity(str, Enum):
    """How much a finding matters, the most serious first."""

    BLOCKER = "blocker"
    PROBLEM = "problem"
    WARNING = "warning"
    NOTE = "note"
    OK = "ok"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding.

    Attributes:
        severity: ``BLOCKER`` stops a plan before anything is changed. ``PROBLEM``: something is
            wrong. ``WARNING``: something may go wrong. ``NOTE``: worth knowing. ``OK``: looked at,
            and fine.
        code: A stable name for programs, as ``unknown-format``, or what was looked at, as
            ``metadata file``.
        message: One sentence, what was found and where.
        remedy: What to do about it, a command where there is one, or what happens.
        places: The columns, partitions or files concerned (not more than a handful).
        count: How many places there are in all.
    """

    severity: Severity
    code: str
    message: str
    remedy: str | None = None
    places: tuple[str, ...] = ()
    count: int = 0

    def to_json(self) -> dict[str, Any]:
        """The finding for programs."""
        return {**asdict(self), "severity": self.severity.value, "places": list(self.places)}


_SHOWN: Final = 5


class Mentions(Collection[str]):
    """Any number of places of a finding: all are counted, a handful is kept."""

    def __init__(self) -> None:
        self._first: list[str] = []
        self._count = 0

    def add(self, place: str) -> None:
        """Count one more."""
        self._count += 1
        if len(self._first) < _SHOWN:
            self._first.append(place)

    def __len__(self) -> int:
        """How many there are."""
        return self._count

    def __iter__(self) -> Iterator[str]:
        """The first of them."""
        return iter(self._first)

    def __contains__(self, place: object) -> bool:
        """Whether one is among the first."""
        return place in self._first


def _finding(
    severity: Severity, code: str, message: str, remedy: str, places: Collection[str] = ()
) -> Finding:
    return Finding(severity, code, message, remedy, tuple(islice(places, _SHOWN)), len(places))


blocker: Final = partial(_finding, Severity.BLOCKER)
"""Make a finding of a plan: code, message, remedy and all places."""
warning: Final = partial(_finding, Severity.WARNING)
note: Final = partial(_finding, Severity.NOTE)
