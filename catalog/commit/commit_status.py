"""Status of a commit with unknown outcome, derived from the pointer and the metadata log."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

OLD_MS: Final = 3_600_000
"""No client waits, and no server repeats a call of its own, for an hour (milliseconds)."""


class CommitState(str, Enum):
    """The status of a commit."""

    COMMITTED = "committed"
    SUPERSEDED = "superseded"
    NOT_COMMITTED = "not committed"
    PENDING = "pending"
    UNKNOWN = "unknown"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class CommitStatus:
    """The status of the commit that wrote one metadata file.

    Attributes:
        state: ``COMMITTED``: the table points to it. ``SUPERSEDED``: it was committed, and other
            commits followed it. ``NOT_COMMITTED``: proven that it was not and never will be.
            ``PENDING``: not yet, but a delayed request could still commit it. ``UNKNOWN``:
            nothing that is left tells.
        reason: The evidence, for people.
        current: The metadata file that the table points to.
        leftovers: Metadata, lists and manifests that only this commit would have needed; data
            files are left to the removal of orphans, because others may refer to them.
        left_outside: Folders outside of the table's own, each with the number of such files there,
            which stay: a path in metadata may be anybody's.
    """

    state: CommitState
    reason: str
    current: str
    leftovers: tuple[str, ...] = ()
    left_outside: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_settled(self) -> bool:
        """Whether the status is final."""
        return self.state not in {CommitState.PENDING, CommitState.UNKNOWN}


def is_old(timestamp_ms: int) -> bool:
    """Return whether no request of that time can still be under way."""
    return time.time() * 1000 - timestamp_ms > OLD_MS
