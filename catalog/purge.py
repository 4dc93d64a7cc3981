"""Deleting the files of a dropped table: everything reachable from its last metadata file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final, TypeAlias

from icecomb.catalog.version_name import VERSION_HINT, version_of
from icecomb.format.errors import FileIOError, IcecombError, ValidationError
from icecomb.format.operation.location_keys import Spelling
from icecomb.format.operation.reachable_files import ReachableFiles
from icecomb.format.spec.table_property import GC_ENABLED

if TYPE_CHECKING:
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.storage.file_io import FileIO

Unneeded: TypeAlias = Callable[[list[str]], list[str]]
"""Those of some files that may be deleted."""
_BATCH: Final = 1000


def check_purge_allowed(name: str, metadata: TableMetadata) -> None:
    """Refuse to delete files of a table that shares them.

    Raises:
        ValidationError: If its property ``gc.enabled`` is false.
    """
    if not GC_ENABLED.of(metadata.properties):
        raise ValidationError(
            f"{name} cannot be purged: gc.enabled is false, its files may belong to other tables",
            hint="drop it without purging, or set gc.enabled=true if you are sure",
            table=name,
        )


def check_no_folder_table(io: FileIO, name: str, location: str, metadata: TableMetadata) -> None:
    """Refuse to purge the table of a metastore that was registered from a file-system table.

    Args:
        io: Where the files are.
        name: The table's, for the error.
        location: Of its metadata file.
        metadata: What is in that.

    Raises:
        ValidationError: If the folder still is that other table: its rows would be deleted.
    """
    for known in (location, *(entry.metadata_file for entry in reversed(metadata.metadata_log))):
        if version_of(known) is None:
            continue
        folder = known.rpartition("/")[0]
        if io.exists(known) or io.exists(f"{folder}/{VERSION_HINT}"):
            raise ValidationError(
                f"{name} cannot be purged: its files are also those of a file-system table: "
                f"{known}",
                hint="drop it without purging; if nobody opens that folder as a table any more, "
                f"delete {VERSION_HINT} and the metadata files that are named v<number> first",
                table=name,
                path=known,
            )
        return


def unneeded_by(io: FileIO, others: Iterable[tuple[TableMetadata, str]]) -> Unneeded:
    """Tells which of some files others do not need.

    Args:
        io: Reads their metadata, now.
        others: Other tables, each with its metadata file.

    Raises:
        CorruptFileError, FileMissingError: What one of them needs cannot be told.
    """
    reachable = ReachableFiles(io, Spelling(io.properties))
    for metadata, location in others:
        reachable.add_table(metadata, location)
    return reachable.unneeded


def purge(io: FileIO, metadata_location: str, unneeded: Unneeded) -> None:
    """Delete data, delete and metadata files reachable from a metadata file, that file last.

    What cannot be read any more is passed over: the rest is deleted all the same. Folders stay.

    Args:
        io: Where the files are.
        metadata_location: The metadata file of the table when it was dropped.
        unneeded: Tells which of some files others do not need.
    """
    from icecomb.format.spec.metadata_file import read_metadata

    try:
        metadata = read_metadata(io, metadata_location)
    except IcecombError:
        return
    purge_files(io, metadata, unneeded)
    io.delete(unneeded([metadata_location]))


def purge_files(io: FileIO, metadata: TableMetadata, unneeded: Unneeded) -> None:
    """Delete what `reachable_files` names, as it comes.

    Args:
        io: Where the files are.
        metadata: Of the table when it was dropped.
        unneeded: Tells which of some files may go.

    Raises:
        FileIOError: If some could not be deleted; the others are gone.
    """
    failure: FileIOError | None = None
    for batch in reachable_files(io, metadata):
        try:
            io.delete(unneeded(batch))
        except FileIOError as error:  # noqa: PERF203 - the other files go all the same
            failure = failure or error
    if failure is not None:
        raise failure


def reachable_files(io: FileIO, metadata: TableMetadata) -> Iterator[list[str]]:
    """Data and delete files, then manifests, their lists, statistics and older metadata files.

    What cannot be read any more is passed over.

    Args:
        io: Where the files are.
        metadata: Of the table; the file that it is in is not named.
    """
    from icecomb.format.manifests.manifest_union import distinct_manifests
    from icecomb.format.manifests.reader import read_each_columns

    def pass_over(*_: object) -> None:
        pass

    manifests = distinct_manifests(io, metadata.snapshots, pass_over)
    for columns in read_each_columns(
        io, manifests.values(), lambda _: None, cache=None, unreadable=pass_over
    ):
        yield from _batches(columns.column("file_path").to_pylist())
    lists = [s.manifest_list for s in metadata.snapshots if s.manifest_list is not None]
    yield from _batches(list(manifests))
    yield from _batches(lists)
    statistics = (*metadata.statistics, *metadata.partition_statistics)
    yield from _batches([str(file["statistics-path"]) for file in statistics])
    yield from _batches([entry.metadata_file for entry in metadata.metadata_log])


def _batches(locations: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(locations), _BATCH):
        yield locations[start : start + _BATCH]
