"""Counts of files by partition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from icecomb.format.arrow.array_build import integers
from icecomb.format.arrow.number_view import Longs, group_numbers, together

COUNTS: Final = (
    "files",
    "bytes",
    "rows",
    "small_files",
    "small_bytes",
    "unsorted_files",
    "unsorted_bytes",
    "position_delete_files",
    "position_deletes",
    "equality_delete_files",
    "equality_deletes",
    "delete_bytes",
)
"""The counts of a partition; deleted rows are counted as delete files state them."""
NEVER: Final = (1 << 63) - 1
"""The data sequence number of the oldest data file if there is none."""


@dataclass(frozen=True, slots=True)
class PartitionCounts:
    """The counts of files in the partitions of one spec, one row per partition.

    Attributes:
        values: The partition values, one array per field, as a manifest has them.
        oldest: The lowest data sequence number of the data files, or `NEVER`.
    """

    values: tuple[pa.Array, ...]
    counts: Mapping[str, Longs]
    oldest: Longs

    def __len__(self) -> int:
        return len(self.oldest)

    def __getitem__(self, name: str) -> Longs:
        return self.counts[name]


def added_up(
    values: Sequence[pa.Array], counts: Mapping[str, Longs], oldest: Longs
) -> PartitionCounts:
    """Sum up rows with the same values; `oldest` is `NEVER` for others than data files."""
    numbers, first = group_numbers(values, len(oldest))
    order = np.argsort(numbers, kind="stable")
    starts = np.searchsorted(numbers[order], np.arange(len(first)))

    def total(column: Longs) -> Longs:
        return np.add.reduceat(column[order], starts) if len(first) else column[:0]

    least = np.minimum.reduceat(oldest[order], starts) if len(first) else oldest[:0]
    places = integers(first.tolist())
    return PartitionCounts(
        tuple(array.take(places) for array in values),
        {name: total(counts[name]) for name in COUNTS},
        least,
    )


def joined(parts: Sequence[PartitionCounts]) -> PartitionCounts:
    """Merge counts of one spec; the type of a field may have been widened between them."""
    if len(parts) == 1:
        return parts[0]
    values = [together(arrays) for arrays in zip(*(part.values for part in parts), strict=True)]
    counts = {name: np.concatenate([part[name] for part in parts]) for name in COUNTS}
    return added_up(values, counts, np.concatenate([part.oldest for part in parts]))
