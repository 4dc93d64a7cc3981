"""Deleting the files of a dropped table: everything reachable from its last metadata file."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from icecomb.format.errors import IcecombError, ValidationError
from icecomb.format.spec.table_property import GC_ENABLED

if TYPE_CHECKING:
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.storage.file_io import FileIO

_BATCH: Final = 1000


def check_purge_allowed(name: str, metadata: TableMetadata) -> None:
    """Refuse to delete files of a table that shares them.

    Raises:
        ValidationError: its property ``gc.enabled`` is false.
    """
    if not GC_ENABLED.of(metadata.properties):
        raise ValidationError(
            f"{name} cannot be purged: gc.enabled is false, its files may belong to other tables",
            hint="drop it without purging, or set gc.enabled=true if you are sure",
            table=name,
        )


def purge(io: FileIO, metadata_location: str) -> None:
    """Delete data, delete and metadata files reachable from a metadata file, that file last.

    What cannot be read any more is passed over: the rest is deleted all the same. Folders stay.

    Args:
        io: Where the files are.
        metadata_location: The metadata file of the table when it was dropped.
    """
    from icecomb.format.manifests.manifest_list import read_manifests
    from icecomb.format.manifests.reader import read_manifest
    from icecomb.format.spec.metadata_file import read_metadata

    try:
        metadata = read_metadata(io, metadata_location)
    except IcecombError:
        return
    manifests: dict[str, None] = {}
    lists: list[str] = []
    for snapshot in metadata.snapshots:
        with suppress(IcecombError):
            for manifest in read_manifests(io, snapshot):
                if manifest.manifest_path in manifests:
                    continue
                manifests[manifest.manifest_path] = None
                with suppress(IcecombError):
                    _delete(io, [e.data_file.file_path for e in read_manifest(io, manifest)])
        if snapshot.manifest_list is not None:
            lists.append(snapshot.manifest_list)
    _delete(io, list(manifests))
    _delete(io, lists)
    statistics = (*metadata.statistics, *metadata.partition_statistics)
    _delete(io, [str(file["statistics-path"]) for file in statistics])
    _delete(io, [entry.metadata_file for entry in metadata.metadata_log])
    io.delete([metadata_location])


def _delete(io: FileIO, locations: list[str]) -> None:
    for start in range(0, len(locations), _BATCH):
        io.delete(locations[start : start + _BATCH])
