"""Counts of delete files that apply to no data file of a snapshot (spec: Scan Planning)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.arrow.array_build import ZERO, null, scalar
from icecomb.format.arrow.number_view import (
    Longs,
    group_numbers,
    numbers_of,
    together,
    truths_of,
)
from icecomb.format.expressions.manifest_metrics import BOUNDS
from icecomb.format.inspect.partition_counts import NEVER, PartitionCounts
from icecomb.format.manifests.manifest import DataFileContent
from icecomb.format.rows.deletes.path_range import path_range
from icecomb.format.rows.values.metadata_columns import DELETE_FILE_PATH

if TYPE_CHECKING:
    from icecomb.format.manifests.columns import ManifestColumns

DELETE_STATISTICS: Final = BOUNDS
"""The statistics of delete manifests to read: the bounds of the paths that deletes name."""
_TEXT: Final = pa.large_string()


@dataclass(frozen=True, slots=True)
class DanglingDeletes:
    """The number of delete files that apply to no data file, and their total size in bytes."""

    files: int = 0
    size: int = 0


@dataclass(frozen=True, slots=True)
class DeleteRows:
    """The live files of a delete manifest, one row per file; sizes are in bytes.

    Attributes:
        by_value: A mask of the files that hold equality deletes.
        targets: The only data file that a file has positions of; null if it is not a single
            one.
        is_global: Whether equality deletes apply to all partitions, as their spec has no
            fields.
    """

    values: tuple[pa.Array, ...]
    numbers: Longs
    sizes: Longs
    by_value: npt.NDArray[np.bool_]
    is_vector: npt.NDArray[np.bool_]
    targets: pa.Array
    is_global: bool


@dataclass(frozen=True, slots=True)
class Targets:
    """Live data files that delete files name, with their data sequence numbers."""

    paths: pa.Array
    numbers: Longs


def delete_rows(
    columns: ManifestColumns, values: Sequence[pa.Array], *, is_global: bool
) -> DeleteRows:
    """Return the live files of a delete manifest, which has `DELETE_STATISTICS`."""
    live = columns.live
    equality = scalar(DataFileContent.EQUALITY_DELETES.value, pa.int32())
    by_value = pc.equal(columns.column("content"), equality)
    lower, upper = (columns.statistic(name, DELETE_FILE_PATH.field_id) for name in BOUNDS)
    pairs = zip(lower.to_pylist(), upper.to_pylist(), strict=True)
    only = pa.array([path_range(*pair).only for pair in pairs], _TEXT)
    named = pc.coalesce(columns.column("referenced_data_file"), only)
    return DeleteRows(
        tuple(array.filter(live) for array in values),
        numbers_of(columns.column("sequence_number").fill_null(ZERO).filter(live)),
        numbers_of(columns.content_lengths.filter(live)),
        truths_of(by_value.filter(live)),
        truths_of(columns.vectors.filter(live)),
        pc.if_else(by_value, null(_TEXT), named).filter(live),
        is_global,
    )


class LiveDeletes:
    """The delete files of a snapshot, and the live data files that they name."""

    def __init__(self) -> None:
        self._rows: dict[int, list[DeleteRows]] = {}
        self._targets: pa.Array | None = None
        self._found: list[Targets] = []

    def add(self, spec_id: int, rows: DeleteRows) -> None:
        """Add the files of one delete manifest; add all of them before reading data manifests."""
        self._rows.setdefault(spec_id, []).append(rows)
        named = rows.targets.drop_null()
        if len(named):
            before = [] if self._targets is None else [self._targets]
            self._targets = pc.unique(pa.concat_arrays([*before, named]))

    def targets_among(self, columns: ManifestColumns) -> Targets | None:
        """Return the live files of a data manifest that deletes name; None if they name none."""
        if self._targets is None:
            return None
        paths = columns.column("file_path")
        chosen = pc.and_(columns.live, pc.is_in(paths, value_set=self._targets))
        numbers = columns.column("sequence_number").fill_null(ZERO).filter(chosen)
        return Targets(paths.filter(chosen), numbers_of(numbers))

    def found(self, targets: Targets) -> None:
        """Add the result of `targets_among`."""
        self._found.append(targets)

    def dangling(self, partitions: Mapping[int, PartitionCounts]) -> DanglingDeletes:
        """Return the count of delete files that apply to no data file; counts are by spec."""
        first = min((int(p.oldest.min()) for p in partitions.values() if len(p)), default=NEVER)
        found = []
        for spec_id, parts in self._rows.items():
            for rows in parts:
                oldest = _oldest_of(rows.values, len(rows.numbers), partitions[spec_id])
                least = self._oldest_targets(rows.targets, oldest)
                if rows.is_global:
                    least = np.where(rows.by_value, first, least)
                # equality deletes apply only to older files, position deletes also to equal age
                reaches = np.where(rows.by_value, least < rows.numbers, least <= rows.numbers)
                found.append((rows, reaches))
        # with a vector, readers ignore position delete files about its data file
        vectors = [rows.targets.filter(pa.array(rows.is_vector & r)) for rows, r in found]
        covered = pa.concat_arrays([pa.array([], _TEXT), *vectors])
        files = size = 0
        for rows, reaches in found:
            ignored = truths_of(pc.is_in(rows.targets.drop_null(), value_set=covered))
            named = truths_of(rows.targets.is_valid())
            reaches[named] &= ~ignored | rows.is_vector[named]
            files += int((~reaches).sum())
            size += int(rows.sizes[~reaches].sum())
        return DanglingDeletes(files, size)

    def _oldest_targets(self, targets: pa.Array, otherwise: Longs) -> Longs:
        """Return the sequence numbers of the named files, `NEVER` for those that do not exist."""
        named = truths_of(targets.is_valid())
        if not named.any():
            return otherwise
        if not self._found:
            return np.where(named, NEVER, otherwise)
        paths = pa.concat_arrays([one.paths for one in self._found])
        numbers = np.concatenate([one.numbers for one in self._found])
        place = scalar(len(numbers), pa.int32())
        places = numbers_of(pc.index_in(targets, value_set=paths).fill_null(place))
        return np.where(named, np.append(numbers, NEVER)[places], otherwise)


def _oldest_of(values: tuple[pa.Array, ...], count: int, partitions: PartitionCounts) -> Longs:
    """Return for each delete file the sequence number of the oldest data file in its partition."""
    pairs = zip(values, partitions.values, strict=True)
    both = [together(pair) for pair in pairs]
    numbers, _ = group_numbers(both, count + len(partitions))
    oldest = np.full(count + len(partitions), NEVER, np.int64)
    oldest[numbers[count:]] = partitions.oldest
    return oldest[numbers[:count]]
