"""Reading of manifests from files or from the cache."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from heapq import nlargest
from itertools import accumulate, chain
from types import EllipsisType
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from icecomb.format.arrow.batch_stream import in_order
from icecomb.format.errors import (
    CorruptFileError,
    IcecombError,
)
from icecomb.format.manifests.cache import ManifestCache, manifest_cache
from icecomb.format.manifests.columns import ManifestColumns, seems_another
from icecomb.format.manifests.decoder import decode_manifest, decode_together
from icecomb.format.manifests.manifest import ManifestEntry, ManifestFile
from icecomb.format.manifests.schema import STATISTICS
from icecomb.format.storage.location import check_local_names

if TYPE_CHECKING:
    from icecomb.format.spec.partition import PartitionSpec
    from icecomb.format.storage.file_io import FileIO

T = TypeVar("T")
Fetched: TypeAlias = "tuple[ManifestFile, bytes | IcecombError | None]"
"""A manifest, and its bytes if they were read before, or the error of that attempt."""
_Read: TypeAlias = ManifestColumns | bytes | IcecombError
Batch: TypeAlias = Sequence[Fetched]
"""Manifests that are decoded together."""

_AHEAD: Final = 64 << 20
"""Maximum number of compressed bytes of manifests that are read ahead."""


def manifests_at_once(io: FileIO, manifests: Sequence[ManifestFile]) -> int:
    """Return the number of manifests to read concurrently: more than one on remote storage.

    The larger they are, the fewer, as they are held in memory.
    """
    if not manifests:
        return 1
    at_once = io.at_once(manifests[0].manifest_path)
    largest = nlargest(at_once, (manifest.manifest_length for manifest in manifests))
    return max(1, sum(held <= _AHEAD for held in accumulate(largest)))


def read_each(
    io: FileIO, manifests: Iterable[ManifestFile], read: Callable[[ManifestFile], T]
) -> Iterator[T]:
    """Yield the result of `read`, which runs in threads, for each manifest, in order."""
    chosen = list(manifests)
    if not chosen:
        return iter(())
    at_most = manifests_at_once(io, chosen)
    return io.each(chosen[0].manifest_path, read, chosen, at_most)


def decoding_threads(manifests: Sequence[ManifestFile], at_most: int) -> int:
    """Return the useful number of threads to decode manifests of `fetch_batches`.

    Threads that decode small manifests hinder each other, so several pay off only if most bytes are
    in large ones.
    """
    if len(manifests) <= 1:
        return 1
    lengths = [manifest.manifest_length for manifest in manifests]
    in_large = sum(length for length in lengths if length > BATCH_BYTES)
    return at_most if in_large > sum(lengths) // 2 else 1


def fetch_batches(
    io: FileIO,
    manifests: Iterable[ManifestFile],
    columns: Callable[[ManifestFile], Iterable[str] | None],
    *,
    cache: ManifestCache | EllipsisType | None = ...,
) -> Iterator[Batch]:
    """Yield manifests with their bytes, in order, in batches for `read_batch`.

    `manifests_at_once` manifests are fetched concurrently, ahead of their decoding. Bytes that are
    cached or not fetched are None.
    """
    chosen = list(manifests)
    if not chosen:
        return iter(())
    kept = _cache(io, cache)
    ahead = manifests_at_once(io, chosen) > 1

    def fetch(manifest: ManifestFile) -> Fetched:
        if kept is not None and kept.find(manifest, _statistics(columns(manifest))) is not None:
            return manifest, None
        try:
            return manifest, io.read(manifest.manifest_path)
        except IcecombError as error:  # raised later, in order
            return manifest, error

    fetched = read_each(io, chosen, fetch) if ahead else ((one, None) for one in chosen)
    files: Iterator[Batch] = batches(fetched, lambda one: one[0].manifest_length)
    return files


def read_batch(
    io: FileIO,
    batch: Batch,
    spec_by_id: Callable[[int], PartitionSpec | None],
    columns: Callable[[ManifestFile], Iterable[str] | None],
    *,
    cache: ManifestCache | EllipsisType | None = ...,
    unreadable: Callable[[ManifestFile, IcecombError], None] | None = None,
) -> Iterator[ManifestColumns]:
    """Decode a batch of `fetch_batches`: see `read_manifest_columns` and `decode_together`.

    Args:
        columns: Function that returns the statistics to read of a manifest; None = all.
        unreadable: Function called with a manifest that cannot be read, and the error; the
            manifest is skipped unless it raises.
    """
    kept = _cache(io, cache)
    wanted = [_statistics(columns(manifest)) for manifest, _ in batch]
    read = [_read(io, *one, wanted[place], kept) for place, one in enumerate(batch)]
    read = _decoded_together(batch, read, wanted, kept)
    for (manifest, _), statistics, found in zip(batch, wanted, read, strict=True):
        try:
            if isinstance(found, IcecombError):
                raise found
            spec = spec_by_id(manifest.partition_spec_id)
            if isinstance(found, ManifestColumns):
                check_local_names(io, manifest.manifest_path, found.column("file_path"))
                alone = found.named_by(manifest, spec)
            else:
                alone = read_manifest_columns(
                    io, manifest, statistics, spec=spec, cache=kept, data=found
                )
        except IcecombError as error:  # noqa: PERF203 - the others are read nevertheless
            if unreadable is None:
                raise
            unreadable(manifest, error)
        else:
            yield alone


def _read(
    io: FileIO,
    manifest: ManifestFile,
    data: bytes | IcecombError | None,
    statistics: frozenset[str],
    cache: ManifestCache | None,
) -> _Read:
    """Return the cached columns of a manifest, or its bytes, or the error of reading them."""
    if data is None and cache is not None:
        found = cache.find(manifest, statistics)
        if found is not None:
            return found
    try:
        return io.read(manifest.manifest_path) if data is None else data
    except IcecombError as error:
        return error


def _decoded_together(
    batch: Batch,
    read: Sequence[_Read],
    wanted: Sequence[frozenset[str]],
    cache: ManifestCache | None,
) -> list[_Read]:
    """Replace bytes by columns where they decode together with others."""
    alike: dict[tuple[int, frozenset[str]], list[tuple[int, bytes, ManifestFile]]] = {}
    for place, ((manifest, _), data) in enumerate(zip(batch, read, strict=True)):
        if isinstance(data, bytes) and len(data) >= manifest.manifest_length:
            key = (manifest.partition_spec_id, wanted[place])
            alike.setdefault(key, []).append((place, data, manifest))
    out = list(read)
    for (_, statistics), files in alike.items():
        if len(files) == 1:
            continue
        pairs = [(data, manifest) for _, data, manifest in files]
        for at, columns in decode_together(pairs, statistics).items():
            if seems_another(columns, len(files[at][1])):
                continue
            out[files[at][0]] = columns
            if cache is not None:
                cache.keep(columns)
    return out


def read_each_columns(
    io: FileIO,
    manifests: Iterable[ManifestFile],
    spec_by_id: Callable[[int], PartitionSpec | None],
    columns: Iterable[str] | Callable[[ManifestFile], Iterable[str] | None] | None = (),
    *,
    cache: ManifestCache | EllipsisType | None = ...,
    unreadable: Callable[[ManifestFile, IcecombError], None] | None = None,
    threads: int = 1,
) -> Iterator[ManifestColumns]:
    """Yield decoded manifests in order; see `fetch_batches` and `read_batch`.

    Args:
        columns: Statistics to read in addition to the columns that are always present, or a
            function that returns them for a manifest; None = all.
        threads: Maximum number of decoding threads; see `decoding_threads`.
    """
    chosen = list(manifests)
    wanted = columns if callable(columns) else _always(columns)
    workers = decoding_threads(chosen, threads)

    def decode(batch: Batch) -> Iterable[ManifestColumns]:
        decoded = read_batch(io, batch, spec_by_id, wanted, cache=cache, unreadable=unreadable)
        return decoded if workers == 1 else list(decoded)

    fetched = fetch_batches(io, chosen, wanted, cache=cache)
    return chain.from_iterable(in_order(decode, fetched, workers))


def read_manifest_columns(
    io: FileIO,
    manifest: ManifestFile,
    columns: Iterable[str] | None = None,
    *,
    spec: PartitionSpec | None = None,
    cache: ManifestCache | EllipsisType | None = ...,
    data: bytes | None = None,
) -> ManifestColumns:
    """Decode a manifest.

    Args:
        manifest: The manifest as its manifest list describes it, with values that entries
            inherit.
        columns: Statistics to read in addition to the columns that are always present; None =
            all.
        spec: Partition spec of the manifest, to reorder the partition tuples of writers that do
            not use its order.
        cache: Cache of decoded manifests: by default the one for the properties of `io`; None =
            no cache.
        data: Bytes of the file, if it was read before.
    """
    wanted = _statistics(columns)
    cache = _cache(io, cache)
    found = cache.find(manifest, wanted) if cache is not None else None
    if found is None:
        data = io.read(manifest.manifest_path) if data is None else data
        if len(data) >= manifest.manifest_length:
            with suppress(CorruptFileError):
                found = decode_manifest(data, manifest, wanted)
        if found is None or seems_another(found, len(data)):
            # a proxy or a cache may have responded with another file or a page of
            # its own; the second result is final
            data = io.read(manifest.manifest_path)
            _check_whole(data, manifest)
            found = decode_manifest(data, manifest, wanted)
        if cache is not None:
            cache.keep(found)
    check_local_names(io, manifest.manifest_path, found.column("file_path"))
    return found.named_by(manifest, spec)


def _check_whole(data: bytes, manifest: ManifestFile) -> None:
    if len(data) < manifest.manifest_length:
        raise CorruptFileError(
            f"{manifest.manifest_path} is truncated: {len(data)} bytes, "
            f"its manifest list says {manifest.manifest_length}",
            hint="Read an older snapshot, or restore the file from a backup.",
            path=manifest.manifest_path,
        )


def read_manifest(
    io: FileIO,
    manifest: ManifestFile,
    *,
    discard_deleted: bool = False,
    spec: PartitionSpec | None = None,
) -> list[ManifestEntry]:
    """Read all entries of a manifest, or only the live ones, with all statistics."""
    columns = read_manifest_columns(io, manifest, spec=spec, cache=None)
    rows = columns.live.to_numpy(zero_copy_only=False).nonzero()[0] if discard_deleted else None
    return columns.entries(rows)


def _statistics(columns: Iterable[str] | None) -> frozenset[str]:
    return frozenset(STATISTICS if columns is None else columns) & set(STATISTICS)


def _always(columns: Iterable[str] | None) -> Callable[[ManifestFile], Iterable[str] | None]:
    wanted = _statistics(columns)
    return lambda _: wanted


def _cache(io: FileIO, cache: ManifestCache | EllipsisType | None) -> ManifestCache | None:
    return manifest_cache(io.properties) if isinstance(cache, EllipsisType) else cache


BATCH_BYTES: Final = 256 << 10
"""Maximum compressed size of a batch; a larger file is a batch of its own."""
_MOST_FILES: Final = 64
"""Maximum number of files in a batch; more gain nothing."""


def batches(files: Iterable[T], length: Callable[[T], int]) -> Iterator[list[T]]:
    """Yield files in order, in batches that grow from one file on, for a fast first result."""
    batch: list[T] = []
    size, held = 1, 0
    for file in files:
        added = length(file)
        if batch and held + added > BATCH_BYTES:
            yield batch
            batch, held = [], 0
        batch.append(file)
        held += added
        if len(batch) >= size:
            yield batch
            batch, held = [], 0
            size = min(2 * size, _MOST_FILES)
    if batch:
        yield batch
