"""What an examination finds: a fact, or a problem with its remedy."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Level(str, Enum):
    """How serious a finding is."""

    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    PROBLEM = "problem"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding.

    Attributes:
        level: ``PROBLEM``: something is wrong. ``WARNING``: something may go wrong. ``NOTE``: worth
            knowing. ``OK``: looked at, and fine.
        subject: What was looked at, as ``metadata file``.
        message: What was found.
        remedy: What to do, a command where there is one.
    """

    level: Level
    subject: str
    message: str
    remedy: str | None = None
