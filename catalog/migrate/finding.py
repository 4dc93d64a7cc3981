"""What a migration plan finds: each with a severity, the place, and a remedy."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

ACCEPTABLE: Final = {
    "bucketing": "lose the table's Hive bucketing (the rows stay, the layout is not promised)",
    "missing-partitions": "leave out partitions whose folder does not exist",
    "subdirectories": "take over files in sub-folders of a partition, too",
}
"""Blockers that a user may accept by name, and what accepting means."""


class Severity(Enum):
    """How much a finding matters."""

    BLOCKER = "blocker"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing a plan found.

    Attributes:
        severity: a blocker stops the migration before anything is changed.
        code: a stable name for programs, for example ``not-parquet``.
        message: one sentence, what was found and where.
        remedy: what to do about it, or what happens.
        places: the columns, partitions or files concerned (not more than a handful).
        count: how many places there are in all.
    """

    severity: Severity
    code: str
    message: str
    remedy: str
    places: tuple[str, ...] = ()
    count: int = 0

    def to_json(self) -> dict[str, Any]:
        """The finding for programs."""
        return {
            "severity": self.severity.value,
            "code": self.code,
            "message": self.message,
            "remedy": self.remedy,
            "places": list(self.places),
            "count": self.count,
        }


def blocker(code: str, message: str, remedy: str, places: tuple[str, ...] = ()) -> Finding:
    """A finding that stops the migration."""
    return _finding(Severity.BLOCKER, code, message, remedy, places)


def warning(code: str, message: str, remedy: str, places: tuple[str, ...] = ()) -> Finding:
    """A finding the user should know before going on."""
    return _finding(Severity.WARNING, code, message, remedy, places)


def note(code: str, message: str, remedy: str, places: tuple[str, ...] = ()) -> Finding:
    """A finding that only explains."""
    return _finding(Severity.NOTE, code, message, remedy, places)


_SHOWN: Final = 5


def _finding(
    severity: Severity, code: str, message: str, remedy: str, places: tuple[str, ...]
) -> Finding:
    return Finding(severity, code, message, remedy, places[:_SHOWN], len(places))
