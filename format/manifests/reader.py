"""Reading manifests: the bytes of a file, or what was decoded of it before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from types import EllipsisType
from typing import TYPE_CHECKING, Final, TypeVar

from icecomb.format.errors import CorruptFileError
from icecomb.format.manifests.cache import ManifestCache, manifest_cache
from icecomb.format.manifests.columns import ManifestColumns
from icecomb.format.manifests.decoder import decode_manifest
from icecomb.format.manifests.manifest import ManifestEntry, ManifestFile
from icecomb.format.manifests.schema import STATISTICS

if TYPE_CHECKING:
    from icecomb.format.spec.partition import PartitionSpec
    from icecomb.format.storage.file_io import FileIO


T = TypeVar("T")

_AHEAD: Final = 64 << 20
"""Bytes of manifests that are read ahead, compressed as they are."""
_LARGE: Final = 256 << 10
"""Bytes of a manifest from which on decoding leaves other threads something to do."""


def manifests_at_once(io: FileIO, manifests: Sequence[ManifestFile]) -> int:
    """How many manifests are read at a time: more than one where that takes a network's time.

    Args:
        io: Where they are.
        manifests: Large ones are fewer: they are held in memory.
    """
    if not manifests:
        return 1
    largest = max(manifest.manifest_length for manifest in manifests)
    return max(1, min(io.at_once(manifests[0].manifest_path), _AHEAD // max(largest, 1)))


def read_each(
    io: FileIO, manifests: Iterable[ManifestFile], read: Callable[[ManifestFile], T]
) -> Iterator[T]:
    """What is read of each manifest, in their order; see `manifests_at_once`.

    Args:
        io: Where they are.
        manifests: What to read.
        read: Reads one; it runs in other threads.
    """
    chosen = list(manifests)
    if not chosen:
        return iter(())
    at_most = manifests_at_once(io, chosen)
    return io.each(chosen[0].manifest_path, read, chosen, at_most)


def decoding_threads(io: FileIO, manifests: Sequence[ManifestFile], at_most: int) -> int:
    """How many threads are worth it to decode manifests of `fetch_each`.

    Those that decode small manifests hinder each other; but where reading waits for a network, and
    nobody fetches ahead, they read as well.

    Args:
        io: Where they are.
        manifests: What is decoded.
        at_most: As many as there may be.
    """
    if len(manifests) <= 1:
        return 1
    is_local = io.served_by(manifests[0].manifest_path).is_local
    waits = not is_local and manifests_at_once(io, manifests) == 1
    return at_most if waits or any(one.manifest_length > _LARGE for one in manifests) else 1


def fetch_each(
    io: FileIO,
    manifests: Iterable[ManifestFile],
    columns: Callable[[ManifestFile], Iterable[str] | None],
    *,
    cache: ManifestCache | EllipsisType | None = ...,
) -> Iterator[tuple[ManifestFile, bytes | None]]:
    """Manifests with their bytes, in their order, for `read_manifest_columns`.

    What waits for a network takes no processor: as many are fetched at a time as
    `manifests_at_once` says, ahead of who decodes them. Where that is one, none is.

    Args:
        io: Where they are.
        manifests: What to fetch; None stands in for bytes that are cached or not fetched.
        columns: Which statistics will be read of one; None is all.
        cache: As for `read_manifest_columns`.
    """
    chosen = list(manifests)
    if manifests_at_once(io, chosen) == 1:
        return ((manifest, None) for manifest in chosen)
    kept = _cache(io, cache)

    def fetch(manifest: ManifestFile) -> tuple[ManifestFile, bytes | None]:
        if kept is not None and kept.find(manifest, _statistics(columns(manifest))) is not None:
            return manifest, None
        return manifest, io.read(manifest.manifest_path)

    return read_each(io, chosen, fetch)


def read_each_columns(
    io: FileIO,
    manifests: Iterable[ManifestFile],
    spec_by_id: Callable[[int], PartitionSpec],
    columns: Iterable[str] | None = (),
    *,
    cache: ManifestCache | EllipsisType | None = ...,
) -> Iterator[ManifestColumns]:
    """Manifests decoded, in their order; see `fetch_each` and `read_manifest_columns`.

    Args:
        io: Where they are.
        manifests: What to decode.
        spec_by_id: The table's partition specs.
        columns: Which statistics to read besides the columns that are always there; None is all.
        cache: As for `read_manifest_columns`.
    """
    wanted = _statistics(columns)
    for manifest, data in fetch_each(io, manifests, lambda _: wanted, cache=cache):
        spec = spec_by_id(manifest.partition_spec_id)
        yield read_manifest_columns(io, manifest, wanted, spec=spec, cache=cache, data=data)


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
        io: Reads the file.
        manifest: From a manifest list: what entries inherit stands there.
        columns: Which statistics to read besides the columns that are always there; None is all.
        spec: The manifest's partition spec, to put the partition tuples in its order where a
            writer did not; they are as a rule.
        cache: Where decoded manifests are looked up and kept: by default what the properties of
            `io` ask for; None decodes in any case.
        data: The file, where it was read before.

    Raises:
        CorruptFileError: The file is not the manifest it should be; the message names it.
        FileMissingError: There is no such file.
    """
    wanted = _statistics(columns)
    cache = _cache(io, cache)
    found = cache.find(manifest, wanted) if cache is not None else None
    if found is None:
        data = io.read(manifest.manifest_path) if data is None else data
        if len(data) < manifest.manifest_length:
            raise CorruptFileError(
                f"{manifest.manifest_path} is truncated: {len(data)} bytes, "
                f"its manifest list says {manifest.manifest_length}",
                hint="Read an older snapshot, or restore the file from a backup.",
                path=manifest.manifest_path,
            )
        found = decode_manifest(data, manifest, wanted, spec=spec)
        if cache is not None:
            cache.keep(found)
    return found


def read_manifest(
    io: FileIO,
    manifest: ManifestFile,
    *,
    discard_deleted: bool = False,
    spec: PartitionSpec | None = None,
) -> list[ManifestEntry]:
    """All entries of a manifest, with all statistics.

    Args:
        io: Reads the file.
        manifest: From a manifest list.
        discard_deleted: Leave out the files that were deleted.
        spec: The manifest's partition spec.
    """
    columns = read_manifest_columns(io, manifest, spec=spec, cache=None)
    rows = columns.live.to_numpy(zero_copy_only=False).nonzero()[0] if discard_deleted else None
    return columns.entries(rows)


def _statistics(columns: Iterable[str] | None) -> frozenset[str]:
    return frozenset(STATISTICS if columns is None else columns) & set(STATISTICS)


def _cache(io: FileIO, cache: ManifestCache | EllipsisType | None) -> ManifestCache | None:
    return manifest_cache(io.properties) if isinstance(cache, EllipsisType) else cache
