"""Counts of files by partition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.arrow.array_build import integers
from icecomb.format.arrow.number_view import Longs, group_numbers, numbers_of, together

COUNTS: Final = (
    "files",
    "bytes",
    "rows",
    "small_files",
    "small_bytes",
    "undersized_files",
    "undersized_bytes",
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

    def rows(self, chosen: Longs) -> tuple[pa.Array, ...]:
        """Return the values of some partitions."""
        places = integers(chosen.tolist())
        return tuple(array.take(places) for array in self.values)

    def take(self, chosen: Longs) -> PartitionCounts:
        """Return the counts of some partitions."""
        counts = {name: column[chosen] for name, column in self.counts.items()}
        return PartitionCounts(self.rows(chosen), counts, self.oldest[chosen])

    def without(self, others: PartitionCounts) -> PartitionCounts:
        """Return the counts of the partitions of the same spec that others do not count."""
        pairs = zip(others.values, self.values, strict=True)
        both = [together(pair) for pair in pairs]
        numbers, _ = group_numbers(both, len(others) + len(self))
        mine = numbers[len(others) :]
        return self.take(np.flatnonzero(~np.isin(mine, numbers[: len(others)])))

    def in_order(self) -> PartitionCounts:
        """Return the counts sorted by partition, nulls first, however they were collected."""
        columns = [array for array in self.values if not pa.types.is_null(array.type)]
        if not columns or len(self) < 2:
            return self
        names = [str(at) for at in range(len(columns))]
        keys = [(name, "ascending", "at_start") for name in names]
        order = pc.sort_indices(pa.table(columns, names=names), sort_keys=keys)
        return self.take(numbers_of(order).astype(np.int64))


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
