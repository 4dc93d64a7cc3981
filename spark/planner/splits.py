"""Scan tasks cut into ranges and packed into Spark partitions.

A cut falls on a row group where the manifest says where they begin (split offsets), else at even
distances: Spark's Parquet reader takes the row groups whose middle lies in its range, so every
row is read once either way. A file weighs at least the cost of opening it, so that many small
files do not end up in one partition.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from icecomb.format.errors import ConfigurationError
from icecomb.format.manifest import DataFile

_TARGET: Final = "read.split.target-size"
_OPEN_COST: Final = "read.split.open-file-cost"
_LOOKBACK: Final = "read.split.planning-lookback"
_DEFAULT_TARGET: Final = 128 * 1024 * 1024
_DEFAULT_OPEN_COST: Final = 4 * 1024 * 1024
_DEFAULT_LOOKBACK: Final = 10


@dataclass(frozen=True, slots=True)
class Split:
    """A range of a data file.

    Args:
        task: The position of the file among the tasks of the scan.
        start: First byte.
        length: Bytes.
        weight: What it counts for when partitions are filled.
    """

    task: int
    start: int
    length: int
    weight: int


@dataclass(frozen=True, slots=True)
class SplitPlanning:
    """Sizes in bytes, as Iceberg's read options and table properties name them.

    Args:
        target: The most a partition should read.
        open_cost: The least a file weighs.
        lookback: How many partitions are kept open while packing.
    """

    target: int = _DEFAULT_TARGET
    open_cost: int = _DEFAULT_OPEN_COST
    lookback: int = _DEFAULT_LOOKBACK

    def splits(self, files: Iterable[DataFile]) -> list[Split]:
        """The files cut into ranges of at most about the target."""
        return [
            Split(task, start, length, max(length, self.open_cost))
            for task, file in enumerate(files)
            for start, length in self._ranges(file)
        ]

    def pack(self, splits: Iterable[Split]) -> list[list[Split]]:
        """First fit over the partitions last opened; order is kept within a partition."""
        packed: list[list[Split]] = []
        opened: list[tuple[list[Split], int]] = []
        for split in splits:
            for position, (held, weight) in enumerate(opened):
                if weight + split.weight <= self.target:
                    held.append(split)
                    opened[position] = (held, weight + split.weight)
                    break
            else:
                opened.append(([split], split.weight))
                packed.append(opened[-1][0])
                if len(opened) > self.lookback:
                    opened.pop(0)
        return packed

    def _ranges(self, file: DataFile) -> list[tuple[int, int]]:
        size = file.file_size_in_bytes
        cuts = _cuts(file.split_offsets, size)
        if cuts is None:
            count = max(1, -(-size // self.target))
            cuts = [size * part // count for part in range(count)]
        elif len(cuts) > 1:
            cuts = self._joined(cuts, size)
        ends = [*cuts[1:], size]
        return [(start, end - start) for start, end in zip(cuts, ends, strict=True)]

    def _joined(self, cuts: list[int], size: int) -> list[int]:
        """Neighbouring row groups in one range as long as they stay below the target."""
        kept = [cuts[0]]
        for start, end in zip(cuts[1:], [*cuts[2:], size], strict=True):
            if end - kept[-1] > self.target:
                kept.append(start)
        return kept


def split_planning(
    properties: Mapping[str, str],
    options: Mapping[str, str],
    hints: Mapping[str, Any],
    total_bytes: int,
) -> SplitPlanning:
    """Sizes for one scan: read option before session setting before table property before default.

    Without a size that someone chose, a scan smaller than the cluster is cut so that every core
    has work.

    Raises:
        ConfigurationError: A size is not a positive number.
    """
    open_cost = _positive(
        options.get("file-open-cost") or properties.get(_OPEN_COST), _DEFAULT_OPEN_COST, _OPEN_COST
    )
    lookback = _positive(
        options.get("lookback") or properties.get(_LOOKBACK), _DEFAULT_LOOKBACK, _LOOKBACK
    )
    chosen = options.get("split-size") or (
        hints.get("split_bytes") if hints.get("max_split_bytes_set") else None
    )
    target = _positive(chosen or properties.get(_TARGET), _DEFAULT_TARGET, _TARGET)
    if not chosen:
        share = total_bytes // max(1, int(hints.get("parallelism") or 1))
        target = max(1, min(target, max(open_cost, share)))
    return SplitPlanning(target, open_cost, lookback)


def _cuts(offsets: Sequence[int] | None, size: int) -> list[int] | None:
    """Where row groups begin, from byte 0 on; None when the manifest does not say it credibly."""
    if not offsets:
        return None
    increasing = all(a < b for a, b in itertools.pairwise(offsets))
    if not increasing or offsets[0] < 0 or offsets[-1] >= size:
        return None
    return [0, *offsets[1:]]


def _positive(text: Any, default: int, name: str) -> int:
    if text is None:
        return default
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise ConfigurationError(
            f"{name} must be a positive whole number, not {text!r}",
            hint="give it in bytes, as 134217728",
        )
    return value
