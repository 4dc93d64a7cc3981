"""Tables whose newest version is of a later time than it is: a writer's clock was ahead."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from icecomb.format.spec.values.temporal import human_timestamptz

if TYPE_CHECKING:
    from icecomb.format.spec.metadata import TableMetadata

_ALLOWED_MS: Final = 60_000
"""How far apart clocks may be; Iceberg Java refuses metadata that goes back by more."""


def clock_skew(metadata: TableMetadata) -> str | None:
    """Return what a table's time in the future means, for people; None if it has none."""
    ahead = metadata.last_updated_ms - time.time_ns() // 1_000_000
    if ahead <= _ALLOWED_MS:
        return None
    seconds = ahead // 1000
    amount = f"{seconds} s" if seconds < 7200 else f"{seconds // 3600} h"
    if seconds >= 172_800:
        amount = f"{seconds // 86_400} days"
    at = human_timestamptz(metadata.last_updated_ms * 1000)
    return (
        f"its newest version is of {at}, {amount} ahead of this machine's clock: as times must "
        "ascend, commits until then are stamped a millisecond after each other, which time travel "
        "and expiry by age go by"
    )
