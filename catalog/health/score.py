"""The score of a table, as Apache Amoro computes it for its optimizer (CommonPartitionEvaluator).

Each partition starts with 40 points for the sizes of its files, 40 for equality deletes and 20 for
position deletes, and loses them by how far files are below 3/4 of the target size on average, and
by the share of deleted rows. Few files or bytes lose few points. A table's score is the average of
its partitions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from icecomb.catalog.health.table_health import HealthScore
from icecomb.catalog.health.threshold import DELETED_SHARE, MINOR_FILES

if TYPE_CHECKING:
    from icecomb.format.inspect.file_census import FileCensus
    from icecomb.format.inspect.partition_counts import PartitionCounts

_WEIGHTS: Final = (40, 40, 20)
_Numbers = npt.NDArray[np.float64]


def score_of(census: FileCensus, undersized: int, unpartitioned: Iterable[int]) -> HealthScore:
    """Compute the score of a snapshot's files.

    Args:
        undersized: 3/4 of the target size, in bytes.
        unpartitioned: Specs without fields: their equality deletes count for all partitions.
    """
    everywhere = [number for number in unpartitioned if number in census.partitions]
    wide = census.total("equality_deletes", everywhere)
    rows = census.total("rows")
    points = [
        _points(table, undersized, 0.0 if number in everywhere else _share(wide, rows))
        for number, table in census.partitions.items()
    ]
    kept = [np.concatenate(column) for column in zip(*points, strict=True)]
    if not kept or not len(kept[0]):
        return HealthScore()
    return HealthScore(*(math.ceil(float(column.mean())) for column in kept))


def _points(
    partitions: PartitionCounts, undersized: int, wide: float
) -> tuple[_Numbers, _Numbers, _Numbers]:
    """Return the points per partition with data files: sizes, equality and position deletes."""
    numbers = {
        name: partitions[name].astype(np.float64)
        for name in (
            *("files", "bytes", "rows", "undersized_files", "undersized_bytes"),
            *("position_deletes", "equality_deletes"),
        )
    }
    numbers = {name: column[numbers["files"] > 0] for name, column in numbers.items()}
    small, small_bytes = numbers["undersized_files"], numbers["undersized_bytes"]
    average = _ratio(small_bytes, small, most=np.inf)
    too_small = 1 - np.minimum(average, undersized) / undersized
    matters = _weight(numbers["files"], numbers["bytes"], undersized)
    by_value = np.minimum(_ratio(numbers["equality_deletes"], numbers["rows"]) + wide, 1)
    by_position = _ratio(numbers["position_deletes"], numbers["rows"])
    lost = (
        _weight(small, small_bytes, undersized) * too_small,
        matters * np.minimum(by_value / DELETED_SHARE, 1),
        matters * np.minimum(by_position / (2 * DELETED_SHARE), 1),
    )
    first, second, third = (
        np.ceil(weight - weight * share) for weight, share in zip(_WEIGHTS, lost, strict=True)
    )
    return first, second, third


def _weight(files: _Numbers, size: _Numbers, undersized: int) -> _Numbers:
    """Return the weight: none for one file, full from some number of files and bytes on."""
    share = np.minimum(files / MINOR_FILES, 1) * np.minimum(size / undersized, 1)
    return np.where(files > 1, share, 0.0)


def _ratio(part: _Numbers, whole: _Numbers, most: float = 1.0) -> _Numbers:
    found = np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)
    return np.minimum(found, most)


def _share(part: int, whole: int) -> float:
    return min(part / whole, 1.0) if whole else 0.0
