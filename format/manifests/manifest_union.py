"""The distinct manifests of many snapshots, whose lists name the same ones repeatedly."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias

from icecomb.format.avro.container import AvroContainer, plain_form
from icecomb.format.avro.records import read_tables
from icecomb.format.errors import IcecombError
from icecomb.format.manifests.manifest_list import (
    manifest_of,
    parse_manifest_list,
    read_each_list,
    read_manifest_list,
    read_manifests,
)
from icecomb.format.manifests.reader import batches
from icecomb.format.manifests.schema import MANIFEST_FILE_NAMES
from icecomb.format.storage.location import check_local_names

if TYPE_CHECKING:
    from icecomb.format.manifests.manifest import ManifestFile
    from icecomb.format.spec.snapshot import Snapshot
    from icecomb.format.storage.file_io import FileIO

Manifests: TypeAlias = "tuple[ManifestFile, ...]"
_Fetched: TypeAlias = "tuple[Snapshot, bytes | IcecombError | None]"


def distinct_manifests(
    io: FileIO,
    snapshots: Iterable[Snapshot],
    unreadable: Callable[[Snapshot, IcecombError], None] | None = None,
) -> dict[str, ManifestFile]:
    """Return the manifests of several snapshots by location; see `each_new_manifests`."""
    return {
        manifest.manifest_path: manifest
        for _, manifests in each_new_manifests(io, snapshots, unreadable=unreadable)
        for manifest in manifests
    }


def each_new_manifests(
    io: FileIO,
    snapshots: Iterable[Snapshot],
    known: Iterable[str] = (),
    *,
    unreadable: Callable[[Snapshot, IcecombError], None] | None = None,
) -> Iterator[tuple[Snapshot, Manifests]]:
    """Yield snapshots in order, each with its manifests not yielded with an earlier one.

    `unreadable` is called with a snapshot whose list cannot be read, and the error; the snapshot is
    skipped unless it raises.
    """
    told = set(known)

    def fetch(snapshot: Snapshot) -> _Fetched:
        try:
            location = snapshot.manifest_list
            return snapshot, io.read(location) if location else None
        except IcecombError as error:  # raised later, in order
            return snapshot, error

    def length(fetched: _Fetched) -> int:
        return len(fetched[1]) if isinstance(fetched[1], bytes) else 0

    for batch in batches(read_each_list(io, snapshots, fetch), length):
        ready = _decoded_together(batch, told)
        for place, (snapshot, fetched) in enumerate(batch):
            manifests = ready.get(place)
            try:
                if manifests is None:
                    manifests = _on_its_own(io, snapshot, fetched, told)
                    told.update(manifest.manifest_path for manifest in manifests)
                else:
                    location = str(snapshot.manifest_list)
                    check_local_names(io, location, [one.manifest_path for one in manifests])
            except IcecombError as error:
                if unreadable is None:
                    raise
                unreadable(snapshot, error)
                continue
            yield snapshot, manifests


def _on_its_own(
    io: FileIO, snapshot: Snapshot, fetched: bytes | IcecombError | None, told: set[str]
) -> Manifests:
    if isinstance(fetched, IcecombError):
        raise fetched
    if fetched is None or not snapshot.manifest_list:
        return read_manifests(io, snapshot, told)
    manifests = read_manifest_list(io, snapshot, told, fetched)
    return tuple({manifest.manifest_path: manifest for manifest in manifests}.values())


def _decoded_together(batch: Sequence[_Fetched], told: set[str]) -> dict[int, Manifests]:
    """Return the new manifests of the lists that decode together, by index in the batch."""
    alike: dict[bytes, list[tuple[int, AvroContainer]]] = {}
    for place, (snapshot, data) in enumerate(batch if len(batch) > 1 else ()):
        if isinstance(data, bytes) and snapshot.manifest_list:
            with suppress(IcecombError):  # reported later, in order
                container = parse_manifest_list(data, snapshot)
                alike.setdefault(container.metadata["avro.schema"], []).append((place, container))
    found: dict[int, Manifests] = {}
    for group in alike.values():
        if len(group) > 1:
            with suppress(IcecombError):
                places = [place for place, _ in group]
                lists = _decoded([container for _, container in group], told)
                found.update(zip(places, lists, strict=True))
    return found


def _decoded(containers: Sequence[AvroContainer], told: set[str]) -> list[Manifests]:
    from icecomb.format.arrow.array_build import integers

    plain = plain_form(containers[0], MANIFEST_FILE_NAMES)
    table, starts = read_tables(containers, plain, "manifest_path")
    paths = table.column("manifest_path").to_pylist()
    new: dict[str, tuple[int, int]] = {}
    for source, (start, container) in enumerate(zip(starts, containers, strict=True)):
        for row in range(start, start + container.record_count):
            if paths[row] not in told:
                new.setdefault(paths[row], (row, source))
    lists: list[list[ManifestFile]] = [[] for _ in containers]
    records = table.take(integers([row for row, _ in new.values()])).to_pylist()
    for (_, source), record in zip(new.values(), records, strict=True):
        lists[source].append(manifest_of(record, containers[source].location))
    told.update(new)
    return [tuple(manifests) for manifests in lists]
