"""How big the parts of a scan are that Spark reads as one partition each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from icecomb.format.spec.table_property import (
    SPLIT_LOOKBACK,
    SPLIT_OPEN_FILE_COST,
    SPLIT_TARGET_SIZE,
)

if TYPE_CHECKING:
    from icecomb.spark.planner.protocol import SplitHints
    from icecomb.spark.planner.read_options import ReadOptions


@dataclass(frozen=True, slots=True)
class SplitSize:
    """The numbers of split planning, as Iceberg's table properties name them.

    Args:
        target: What a partition should weigh, in bytes.
        open_cost: The least a file weighs, in bytes.
        lookback: How many partitions stay open while packing.
    """

    target: int = SPLIT_TARGET_SIZE.default
    open_cost: int = SPLIT_OPEN_FILE_COST.default
    lookback: int = SPLIT_LOOKBACK.default


def split_size(
    properties: Mapping[str, str],
    options: ReadOptions,
    hints: SplitHints,
    total_bytes: int,
) -> SplitSize:
    """The sizes of one scan: read option before session setting before table before default.

    Without a size that a read option or the session chose, a scan smaller than the cluster is cut
    so that every core has work.

    Args:
        properties: The table's.
        options: Of the query: `split-size`, `file-open-cost`, `lookback`; and its session's.
        hints: What Spark knows.
        total_bytes: The size of all files of the scan.

    Raises:
        ConfigurationError: A size is not a positive number.
    """
    open_cost = SPLIT_OPEN_FILE_COST.of(
        properties, _either(options.text("file-open-cost"), hints.open_cost_bytes)
    )
    lookback = SPLIT_LOOKBACK.of(properties, options.text("lookback"))
    chosen = _either(options.text("split-size", "read.split-size"), hints.split_bytes)
    target = SPLIT_TARGET_SIZE.of(properties, chosen)
    if chosen is None and options.is_adaptive(properties):
        share = total_bytes // options.parallelism(max(1, hints.parallelism))
        target = max(1, min(target, max(open_cost, share)))
    return SplitSize(target, open_cost, lookback)


def _either(said: str | None, hint: int | None) -> str | int | None:
    return hint if said is None else said
