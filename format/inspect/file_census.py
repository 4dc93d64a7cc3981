"""Counts of the live files of a snapshot by partition, in one columnar pass over its manifests.

Memory holds the manifests being read, one row per partition, and one row per delete file.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from icecomb.format.arrow.array_build import ZERO, integers, scalar
from icecomb.format.arrow.batch_stream import in_order
from icecomb.format.arrow.number_view import Longs, numbers_of
from icecomb.format.inspect.dangling_count import (
    DELETE_STATISTICS,
    DanglingDeletes,
    DeleteRows,
    LiveDeletes,
    Targets,
    delete_rows,
)
from icecomb.format.inspect.partition_counts import NEVER, PartitionCounts, added_up, joined
from icecomb.format.manifests.manifest import DataFileContent, ManifestContent
from icecomb.format.manifests.reader import Batch, decoding_threads, fetch_batches, read_batch

if TYPE_CHECKING:
    from icecomb.format.manifests.columns import ManifestColumns
    from icecomb.format.manifests.manifest import ManifestFile
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.storage.file_io import FileIO

WORKERS: Final = min(4, os.cpu_count() or 1)
_PENDING_ROWS: Final = 200_000
"""The most rows for partitions of single manifests to collect before they are merged."""


@dataclass(frozen=True, slots=True)
class CensusLimits:
    """The limits by which a census classifies files; sizes are in bytes.

    Attributes:
        small: The size below which data files are small.
        undersized: The size up to which data files are undersized.
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
        sizes: The number of data files by size: at n, those of 2^n to 2^(n+1) - 1 bytes; empty
            if some are only known by partition.
        sources: The snapshots that added the data files; empty unless requested.
    """

    manifests: tuple[ManifestFile, ...] = ()
    partitions: Mapping[int, PartitionCounts] = field(default_factory=dict)
    dangling: DanglingDeletes = DanglingDeletes()  # noqa: RUF009 - a constant
    sources: tuple[Source, ...] = ()

    def total(self, name: str, spec_ids: Iterable[int] | None = None) -> int:
        """Return the sum of one of `COUNTS` over all specs, or over these."""
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
    """Count the live files of a snapshot; `threads` is the number of manifests held at a time.

    Args:
        known: Partitions that are counted already; the manifests of them alone are read only if
            a delete file names a data file that no other manifest has.
    """
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
