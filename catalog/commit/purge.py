"""Deletion of a dropped table's files: all that its last metadata file reaches."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from icecomb.format.errors import FileIOError, IcecombError, ValidationError
from icecomb.format.operation.expiry.location_keys import Spelling
from icecomb.format.operation.expiry.reachable_files import ReachableFiles
from icecomb.format.property.table_property import FORMER_FOLDERS, GC_ENABLED
from icecomb.format.property.way_back import deletion_remedy
from icecomb.format.spec.metadata_file import VERSION_HINT, read_metadata, version_of
from icecomb.format.spec.own_folders import OwnFolders, folder_counts, outside_text
from icecomb.format.storage.storage_property import OWN_PREFIXES

if TYPE_CHECKING:
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.storage.file_io import FileIO

Unneeded: TypeAlias = Callable[[list[str]], list[str]]
"""A function that selects the files that may be deleted."""
_BATCH: Final = 1000
_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PurgedTable:
    """What a purge did, or would do.

    Attributes:
        left_outside: Folders outside of the table's own, each with the number of files there
            that the table had, but that are left.
    """

    left_outside: Mapping[str, int] = field(default_factory=dict)


def check_purge_allowed(name: str, metadata: TableMetadata) -> None:
    """Refuse to delete files of a table that shares them: ``gc.enabled`` is false."""
    if not GC_ENABLED.of(metadata.properties):
        raise ValidationError(
            f"{name} cannot be purged: gc.enabled is false, its files may belong to other tables",
            hint=f"Drop it without purging. {deletion_remedy(metadata.properties, name)}",
            table=name,
        )


def check_no_folder_table(io: FileIO, name: str, location: str, metadata: TableMetadata) -> None:
    """Refuse to purge a metastore's table that was registered from a file-system table.

    ValidationError is raised if the folder still is that other table, whose rows would be deleted.
    """
    for known in (location, *(entry.metadata_file for entry in reversed(metadata.metadata_log))):
        if version_of(known) is None:
            continue
        folder = known.rpartition("/")[0]
        if io.exists(known) or io.exists(f"{folder}/{VERSION_HINT}"):
            raise ValidationError(
                f"{name} cannot be purged: its files are also those of a file-system table: "
                f"{known}",
                hint="Drop it without purging; if nobody opens that folder as a table, "
                f"delete {VERSION_HINT} and the metadata files that are named v<number> first.",
                table=name,
                path=known,
            )
        return


def unneeded_by(io: FileIO, others: Iterable[tuple[TableMetadata, str]]) -> Unneeded:
    """Return a function that selects the files that other tables do not need.

    Their metadata is read now; what is unreadable raises an error.
    """
    reachable = ReachableFiles(io, Spelling(io.properties))
    for metadata, location in others:
        reachable.add_table(metadata, location)
    return reachable.unneeded


def purge(
    io: FileIO,
    metadata_location: str,
    folders: Sequence[str],
    unneeded: Unneeded,
    *,
    more: Sequence[str] = (),
    dry_run: bool = False,
) -> PurgedTable:
    """Delete data, delete and metadata files reachable from a metadata file, that file last.

    Unreadable files are skipped: the rest is deleted nevertheless. Folders stay.
    """
    try:
        metadata = read_metadata(io, metadata_location)
    except IcecombError:
        return PurgedTable()
    own = OwnFolders(folders, metadata, io.properties, more)
    purged = purge_files(io, metadata, own, unneeded, dry_run=dry_run)
    if not dry_run:
        io.delete(unneeded([metadata_location]))
    return purged


def purge_files(
    io: FileIO,
    metadata: TableMetadata,
    own: OwnFolders,
    unneeded: Unneeded,
    *,
    dry_run: bool = False,
) -> PurgedTable:
    """Delete the files of `reachable_files` that are in the table's folders, batch by batch.

    A path in metadata may be anybody's: a warning in the log says which files stay, too.
    FileIOError means that some could not be deleted; the others are deleted.
    """
    failure: FileIOError | None = None
    left: dict[str, None] = {}
    for batch in reachable_files(io, metadata):
        chosen = unneeded(batch)
        outside = own.outside(chosen)
        left |= dict.fromkeys(sorted(outside))  # a file may be in several manifests
        if dry_run:
            continue
        try:
            io.delete([one for one in chosen if one not in outside])
        except FileIOError as error:
            failure = failure or error
    if left:
        _LOG.warning(
            "%s: %s stay when the table is purged; if such a folder is the table's alone, give it "
            "to purge_table (delete_outside), or name it in %s, and in the catalog's %s, before",
            metadata.location,
            outside_text(left),
            FORMER_FOLDERS.key,
            OWN_PREFIXES.key,
        )
    if failure is not None:
        raise failure
    return PurgedTable(folder_counts(left))


def reachable_files(io: FileIO, metadata: TableMetadata) -> Iterator[list[str]]:
    """Yield data and delete files, then manifests, lists, statistics and older metadata.

    Unreadable manifests are skipped, and the metadata's own file is left out.
    """
    from icecomb.format.manifests.manifest_union import distinct_manifests
    from icecomb.format.manifests.reader import read_each_columns

    def pass_over(*_: object) -> None:
        pass

    manifests = distinct_manifests(io, metadata.snapshots, pass_over)
    for columns in read_each_columns(
        io, manifests.values(), lambda _: None, cache=None, unreadable=pass_over
    ):
        # a Puffin file holds many deletion vectors
        yield from _batches(columns.column("file_path").unique().to_pylist())
    lists = [s.manifest_list for s in metadata.snapshots if s.manifest_list is not None]
    yield from _batches(list(manifests))
    yield from _batches(lists)
    statistics = (*metadata.statistics, *metadata.partition_statistics)
    named = [str(file["statistics-path"]) for file in statistics if "statistics-path" in file]
    yield from _batches(named)
    yield from _batches([entry.metadata_file for entry in metadata.metadata_log])


def _batches(locations: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(locations), _BATCH):
        yield locations[start : start + _BATCH]
