"""Counts of the live files of a snapshot by partition, in one columnar pass over its manifests.

It knows what maintenance asks, unlike `partition_statistics`, which answers as Iceberg's tables and
files of statistics do: which files are small or unsorted, and which delete files reach none. Memory
holds the manifests being read, one row per partition, and one row per delete file.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.arrow.array_build import ZERO, integers, null, scalar
from icecomb.format.arrow.batch_stream import in_order
from icecomb.format.arrow.number_view import (
    Longs,
    group_numbers,
    numbers_of,
    together,
    truths_of,
)
from icecomb.format.expressions.manifest_metrics import BOUNDS
from icecomb.format.manifests.manifest import DataFileContent, ManifestContent
from icecomb.format.manifests.reader import Batch, decoding_threads, fetch_batches, read_batch
from icecomb.format.rows.deletes.position_delete import path_range
from icecomb.format.rows.values.metadata_columns import DELETE_FILE_PATH

if TYPE_CHECKING:
    from icecomb.format.manifests.columns import ManifestColumns
    from icecomb.format.manifests.manifest import ManifestFile
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.storage.file_io import FileIO


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


WORKERS: Final = min(4, os.cpu_count() or 1)
_PENDING_ROWS: Final = 200_000
"""The most rows for partitions of single manifests to collect before they are merged."""


@dataclass(frozen=True, slots=True)
class CensusLimits:
    """The limits by which a census classifies files; sizes are in bytes.

    Attributes:
        small: The size below which data files are small.
        sort_order_id: The order without which files are unsorted; None if none is required.
    """

    small: int
    sort_order_id: int | None = None
    by_snapshot: bool = False


@dataclass(frozen=True, slots=True)
class Source:
    """The data files that a snapshot (0 if no manifest names it) added and that are still live.

    Attributes:
        size: The size in bytes of the file at `path`, which is one of them.
    """

    snapshot_id: int
    files: int
    path: str
    size: int


@dataclass(frozen=True, slots=True)
class FileCensus:
    """The counts of the live files in a snapshot.

    Attributes:
        sources: The snapshots that added the data files; empty unless requested.
    """

    manifests: tuple[ManifestFile, ...] = ()
    partitions: Mapping[int, PartitionCounts] = field(default_factory=dict)
    dangling: DanglingDeletes = DanglingDeletes()
    sources: tuple[Source, ...] = ()

    def total(self, name: str, spec_ids: Iterable[int] | None = None) -> int:
        """Return the sum of one of the counts over all specs, or over these."""
        chosen = self.partitions if spec_ids is None else spec_ids
        parts = (self.partitions[number] for number in chosen if number in self.partitions)
        return sum(int(part[name].sum()) for part in parts)


def take_census(
    metadata: TableMetadata,
    io: FileIO,
    manifests: Sequence[ManifestFile],
    limits: CensusLimits,
    *,
    threads: int = WORKERS,
) -> FileCensus:
    """Count the live files of a snapshot; `threads` is the number of manifests held at a time."""
    live = tuple(manifest for manifest in manifests if manifest.has_live_files())
    found = _Count(metadata, io, limits)
    for content in (ManifestContent.DELETES, ManifestContent.DATA):
        found.read([manifest for manifest in live if manifest.content is content], threads)
    return found.census(live)


@dataclass(frozen=True, slots=True)
class _Part:
    """The counts of one manifest."""

    spec_id: int
    counts: PartitionCounts
    sources: tuple[Source, ...] = ()
    deletes: DeleteRows | None = None
    targets: Targets | None = None


class _Count:
    """The sum of the counts of several manifests."""

    def __init__(self, metadata: TableMetadata, io: FileIO, limits: CensusLimits) -> None:
        self._metadata = metadata
        self._io = io
        self._limits = limits
        self._parts: dict[int, list[PartitionCounts]] = {}
        self._pending = 0
        self._sources: dict[int, Source] = {}
        self._deletes = LiveDeletes()

    def read(self, manifests: Sequence[ManifestFile], threads: int) -> None:
        """Count the files of manifests; delete manifests must come before data manifests."""
        fetched = fetch_batches(self._io, manifests, _statistics, cache=None)
        workers = decoding_threads(manifests, threads)
        for part in chain.from_iterable(in_order(self._look_at, fetched, workers)):
            self._add(part)

    def _look_at(self, batch: Batch) -> list[_Part]:
        """Read a batch of manifests; several threads may do so at a time."""
        spec_by_id = self._metadata.spec_by_id
        decoded = read_batch(self._io, batch, spec_by_id, _statistics, cache=None)
        return list(map(self._look, decoded))

    def _look(self, columns: ManifestColumns) -> _Part:
        spec = self._metadata.spec_by_id(columns.manifest.partition_spec_id)
        is_data = columns.manifest.content is ManifestContent.DATA
        values = _partition(columns, [f.field_id for f in spec.fields])
        counts = self._counted(columns, values)
        if not is_data:
            deletes = delete_rows(columns, values, is_global=spec.is_unpartitioned)
            return _Part(spec.spec_id, counts, deletes=deletes)
        return _Part(
            spec.spec_id,
            counts,
            tuple(_sources(columns)) if self._limits.by_snapshot else (),
            targets=self._deletes.targets_among(columns),
        )

    def _add(self, part: _Part) -> None:
        """Add the counts of one manifest."""
        self._parts.setdefault(part.spec_id, []).append(part.counts)
        self._pending += len(part.counts)
        for source in part.sources:
            known = self._sources.get(source.snapshot_id)
            files = source.files + (known.files if known else 0)
            self._sources[source.snapshot_id] = replace(known or source, files=files)
        if part.deletes is not None:
            self._deletes.add(part.spec_id, part.deletes)
        if part.targets is not None:
            self._deletes.found(part.targets)
        if self._pending > _PENDING_ROWS:
            self._parts = {number: [joined(parts)] for number, parts in self._parts.items()}
            self._pending = 0

    def census(self, manifests: tuple[ManifestFile, ...]) -> FileCensus:
        """Return the complete census."""
        partitions = {number: joined(parts) for number, parts in sorted(self._parts.items())}
        dangling = self._deletes.dangling(partitions)
        return FileCensus(manifests, partitions, dangling, tuple(self._sources.values()))

    def _counted(self, columns: ManifestColumns, values: list[pa.Array]) -> PartitionCounts:
        """Count the live files of a manifest by partition."""
        limits = self._limits
        live = None if columns.live.true_count == len(columns) else columns.live

        def known(array: pa.Array) -> Longs:
            found = _chosen(array, live)
            if found.null_count:
                found = found.fill_null(scalar(0, found.type))
            return numbers_of(found).astype(np.int64, copy=False)

        def column(name: str) -> Longs:
            return known(columns.column(name))

        content, size = column("content"), known(columns.content_lengths)
        rows = np.maximum(column("record_count"), 0)
        data = content == DataFileContent.DATA.value
        by_position = content == DataFileContent.POSITION_DELETES.value
        by_value = content == DataFileContent.EQUALITY_DELETES.value
        small = data & (size < limits.small)
        unsorted = data & (limits.sort_order_id is not None)
        if limits.sort_order_id is not None:
            unsorted &= column("sort_order_id") != limits.sort_order_id
        return added_up(
            [_chosen(array, live) for array in values],
            {
                "files": data.astype(np.int64),
                "bytes": size * data,
                "rows": rows * data,
                "small_files": small.astype(np.int64),
                "small_bytes": size * small,
                "unsorted_files": unsorted.astype(np.int64),
                "unsorted_bytes": size * unsorted,
                "position_delete_files": by_position.astype(np.int64),
                "position_deletes": rows * by_position,
                "equality_delete_files": by_value.astype(np.int64),
                "equality_deletes": rows * by_value,
                "delete_bytes": size * ~data,
            },
            np.where(data, column("sequence_number"), NEVER),
        )


def _partition(columns: ManifestColumns, field_ids: list[int]) -> list[pa.Array]:
    """Return partition values in the order of the spec's fields; null if the file has none."""
    written = columns.partition_columns
    places = {column.field_id: at for at, column in enumerate(written)}
    found = []
    for at, number in enumerate(field_ids):
        unnamed = at < len(written) and written[at].field_id is None
        place = places.get(number, at if unnamed else None)
        found.append(pa.nulls(len(columns)) if place is None else columns.partition(place))
    return found


def _chosen(array: pa.Array, mask: pa.Array | None) -> pa.Array:
    return array if mask is None else array.filter(mask)


def _sources(columns: ManifestColumns) -> Iterator[Source]:
    """Yield the live files of a data manifest by the snapshot that added them."""
    live = columns.live
    ids = numbers_of(columns.column("snapshot_id").fill_null(ZERO).filter(live))
    found, first, counts = np.unique(ids, return_index=True, return_counts=True)
    places = integers(first.tolist())
    paths = columns.column("file_path").filter(live).take(places).to_pylist()
    sizes = columns.column("file_size_in_bytes").filter(live).take(places).to_pylist()
    pairs = zip(found.tolist(), counts.tolist(), paths, sizes, strict=True)
    for snapshot_id, files, path, size in pairs:
        yield Source(snapshot_id, files, path, size)


def _statistics(manifest: ManifestFile) -> Collection[str]:
    return () if manifest.content is ManifestContent.DATA else DELETE_STATISTICS


NEVER: Final = (1 << 63) - 1
"""The data sequence number of the oldest data file if there is none."""


@dataclass(frozen=True, slots=True)
class PartitionCounts:
    """The counts of files in the partitions of one spec, one row per partition.

    Attributes:
        values: The partition values, one array per field, as a manifest has them.
        counts: By name; deleted rows are counted as delete files state them.
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
        {name: total(column) for name, column in counts.items()},
        least,
    )


def joined(parts: Sequence[PartitionCounts]) -> PartitionCounts:
    """Merge counts of one spec; the type of a field may have been widened between them."""
    if len(parts) == 1:
        return parts[0]
    values = [together(arrays) for arrays in zip(*(part.values for part in parts), strict=True)]
    counts = {name: np.concatenate([part[name] for part in parts]) for name in parts[0].counts}
    return added_up(values, counts, np.concatenate([part.oldest for part in parts]))
