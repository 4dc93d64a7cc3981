"""How big the parts of a scan are that Spark reads as one partition each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from icecomb.format.errors import ConfigurationError
from icecomb.format.scan.task import SPLIT_LOOKBACK, SPLIT_OPEN_FILE_COST, SPLIT_TARGET_SIZE

_TARGET: Final = "read.split.target-size"
_OPEN_COST: Final = "read.split.open-file-cost"
_LOOKBACK: Final = "read.split.planning-lookback"


@dataclass(frozen=True, slots=True)
class SplitSize:
    """The numbers of split planning, as Iceberg's table properties name them.

    Args:
        target: What a partition should weigh, in bytes.
        open_cost: The least a file weighs, in bytes.
        lookback: How many partitions stay open while packing.
    """

    target: int = SPLIT_TARGET_SIZE
    open_cost: int = SPLIT_OPEN_FILE_COST
    lookback: int = SPLIT_LOOKBACK


def split_size(
    properties: Mapping[str, str],
    options: Mapping[str, str],
    hints: Mapping[str, Any],
    total_bytes: int,
) -> SplitSize:
    """The sizes of one scan: read option before session setting before table before default.

    Without a size that a read option or the session chose, a scan smaller than the cluster is cut
    so that every core has work.

    Args:
        properties: The table's.
        options: Of the query: `split-size`, `file-open-cost`, `lookback`.
        hints: What Spark knows: `parallelism`, `split_bytes`, `max_split_bytes_set`.
        total_bytes: The size of all files of the scan.

    Raises:
        ConfigurationError: A size is not a positive number.
    """
    open_cost = _positive(
        _OPEN_COST, options.get("file-open-cost"), properties.get(_OPEN_COST), SPLIT_OPEN_FILE_COST
    )
    lookback = _positive(
        _LOOKBACK, options.get("lookback"), properties.get(_LOOKBACK), SPLIT_LOOKBACK
    )
    session = hints.get("split_bytes") if hints.get("max_split_bytes_set") else None
    chosen = options.get("split-size", session)
    target = _positive(_TARGET, chosen, properties.get(_TARGET), SPLIT_TARGET_SIZE)
    if chosen is None:
        share = total_bytes // max(1, int(hints.get("parallelism") or 1))
        target = max(1, min(target, max(open_cost, share)))
    return SplitSize(target, open_cost, lookback)


def _positive(name: str, *candidates: Any) -> int:
    """The first candidate that is given."""
    given = next(candidate for candidate in candidates if candidate is not None)
    try:
        value = int(given)
    except ValueError:
        value = 0
    if value < 1:
        raise ConfigurationError(
            f"{name} must be a positive whole number, not {given!r}",
            hint="give it in bytes, as 134217728" if name != _LOOKBACK else "give it as 10",
        )
    return value
