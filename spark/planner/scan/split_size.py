"""Sizes of the parts of a scan that Spark reads as one partition each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from icecomb.format.property.table_property import (
    SPLIT_LOOKBACK,
    SPLIT_OPEN_FILE_COST,
    SPLIT_TARGET_SIZE,
)

if TYPE_CHECKING:
    from icecomb.spark.planner.protocol.scans import SplitHints
    from icecomb.spark.planner.scan.read_options import ReadOptions


@dataclass(frozen=True, slots=True)
class SplitSize:
    """Parameters of split planning, as in Iceberg's table properties.

    Args:
        target: The target weight of a partition, in bytes.
        open_cost: The least weight of a file, in bytes.
        lookback: The number of partitions that stay open while packing.
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
    """Return the sizes of one scan: read option, else session setting, else table property.

    Unless a read option or the session sets a size, a scan smaller than the cluster is split so
    that every core has work.
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
