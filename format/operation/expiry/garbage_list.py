"""Lists of files that an expiration is about to delete, so that a crash leaves none behind.

A list, `metadata/icecomb-gc-<uuid>.parquet`, is written before the commit and deleted with its
files. Its files are only suspects: the expiration may never have been committed, and other writers
may have needed a file since. So every reader of a list checks it against the current metadata. A
list names its table, because several tables may keep their metadata in one folder, and the table's
location: in a folder that was copied it names the files of the original.
"""

from __future__ import annotations

import io as bytes_io
import re
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa

from icecomb.format.errors import CorruptFileError, FileIOError, IcecombError, NoSuchFileError
from icecomb.format.operation.expiry.location_keys import Spelling
from icecomb.format.operation.expiry.reachability import UnreachableFiles
from icecomb.format.operation.expiry.reachable_files import ReachableFiles
from icecomb.format.spec.metadata_file import metadata_folder
from icecomb.format.storage.file_system import create_own

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.own_folders import OwnFolders
    from icecomb.format.storage.file_io import FileIO

OtherTables: TypeAlias = "Callable[[], Iterable[tuple[TableMetadata, str]]]"
"""A function that loads other tables that may need a table's files, with their metadata files."""
ABANDONED_MS: Final = 600_000
"""The age at which a list's run is taken to have ended; if it has not, a second does no harm."""
_NAME: Final = re.compile(r"icecomb-gc-[0-9a-f-]{36}\.parquet")
_KINDS: Final = (
    "data_files",
    "delete_files",
    "equality_delete_files",
    "manifests",
    "manifest_lists",
    "statistics_files",
)
_TABLE: Final = b"table-uuid"
_LOCATION: Final = b"table-location"
_SCHEMA: Final = pa.schema([("location", pa.string()), ("kind", pa.string())])
_BATCH: Final = 1000


@dataclass(frozen=True, slots=True)
class Deleted:
    """The files that are gone, those that could not be deleted, and why the first could not."""

    files: UnreachableFiles = UnreachableFiles()  # noqa: RUF009 - a constant
    failed: tuple[str, ...] = ()
    reason: str | None = None

    def joined(self, other: Deleted) -> Deleted:
        """Return the combined outcome of both deletions."""
        members: dict[str, Any] = {
            field.name: getattr(self.files, field.name) + getattr(other.files, field.name)
            for field in fields(UnreachableFiles)
            if field.name != "equality_delete_files"
        }
        equality = self.files.equality_delete_files | other.files.equality_delete_files
        return Deleted(
            UnreachableFiles(**members, equality_delete_files=equality),
            (*self.failed, *other.failed),
            self.reason or other.reason,
        )


def write_list(io: FileIO, metadata: TableMetadata, files: UnreachableFiles) -> str:
    """Write a list durably, and return its location."""
    import pyarrow.parquet as pq

    kinds = [kind for kind, group in _by_kind(files) for _ in group]
    locations = [location for _, group in _by_kind(files) for location in group]
    table = pa.table([locations, kinds], schema=_SCHEMA).replace_schema_metadata(
        {_TABLE: str(metadata.table_uuid).encode(), _LOCATION: metadata.location.encode()}
    )
    buffer = bytes_io.BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    location = f"{metadata_folder(metadata)}/icecomb-gc-{uuid.uuid4()}.parquet"
    create_own(io, location, buffer.getvalue())
    return location


def delete_list(io: FileIO, location: str) -> None:
    """Delete a list; if that fails it is found again, but none of its files exist any more."""
    with suppress(IcecombError, OSError):
        io.delete([location])


def delete_garbage(io: FileIO, files: UnreachableFiles) -> Deleted:
    """Delete files in batches, each file before the files that name it."""
    failed: list[str] = []
    reason: str | None = None
    everything = files.files
    for start in range(0, len(everything), _BATCH):
        batch = everything[start : start + _BATCH]
        try:
            io.delete(batch)
        except FileIOError as error:
            named = error.context.get("failed")
            failed += named if isinstance(named, tuple) else batch
            reason = reason or error.message
    return Deleted(without(files, frozenset(failed)), tuple(failed), reason)


def still_unreachable(
    io: FileIO,
    files: UnreachableFiles,
    metadata: TableMetadata | None,
    known: Iterable[str] = (),
    others: OtherTables | None = None,
) -> UnreachableFiles:
    """Return the files without those that metadata reaches, under whatever scheme or authority.

    Args:
        metadata: The table metadata; None if the table is already known not to need them.
        known: Manifests that need none of the files: they are not read.
        others: A function that loads other tables which may need them.
    """
    everything = files.files
    if not everything:
        return files
    reachable = ReachableFiles(io, Spelling(io.properties))
    reachable.skip(known)
    if metadata is not None:
        reachable.add_table(metadata, None)
    for other, location in others() if others is not None else ():
        reachable.add_table(other, location)
    return without(files, frozenset(everything).difference(reachable.unneeded(everything)))


def collect_left(
    io: FileIO, metadata: TableMetadata, own: OwnFolders, others: OtherTables | None = None
) -> Deleted:
    """Delete the files on lists of runs that ended, unless this or another table needs them."""
    done = Deleted()
    lists = [*_abandoned(io, metadata)]
    elsewhere = own.outside(lists) if lists else ()
    for location in (one for one in lists if one not in elsewhere):
        try:
            files = _read_list(io, location, metadata)
        except NoSuchFileError:
            continue  # another run was first
        except CorruptFileError:
            delete_list(io, location)
            continue
        if files is None:
            continue
        files = without(files, own.outside(files.files))
        found = delete_garbage(io, _present(io, still_unreachable(io, files, metadata, (), others)))
        if not found.failed:
            delete_list(io, location)
        done = done.joined(found)
    return done


def without(files: UnreachableFiles, gone: frozenset[str]) -> UnreachableFiles:
    """Return the files without those in `gone`."""
    if not gone:
        return files
    members: dict[str, Any] = {
        name: tuple(location for location in getattr(files, name) if location not in gone)
        for name in ("data_files", "delete_files", "manifests", "manifest_lists")
    }
    return replace(
        files,
        **members,
        statistics_files=tuple(one for one in files.statistics_files if one not in gone),
        equality_delete_files=files.equality_delete_files - gone,
    )


def _present(io: FileIO, files: UnreachableFiles) -> UnreachableFiles:
    """Return the files that still exist, which the earlier run did not delete."""
    everything = files.files
    there = io.each(everything[0], io.exists, everything) if everything else ()
    gone = frozenset(name for name, is_there in zip(everything, there, strict=True) if not is_there)
    return without(files, gone)


def _by_kind(files: UnreachableFiles) -> list[tuple[str, Sequence[str]]]:
    equality = files.equality_delete_files
    others = [location for location in files.delete_files if location not in equality]
    groups = (
        files.data_files,
        others,
        sorted(equality),
        files.manifests,
        files.manifest_lists,
        files.statistics_files,
    )
    return list(zip(_KINDS, groups, strict=True))


def _read_list(io: FileIO, location: str, metadata: TableMetadata) -> UnreachableFiles | None:
    """Return the files of a list; None if it belongs to another table, or to one elsewhere."""
    from icecomb.format.rows.parquet.own_table import OwnTable

    found: dict[str, list[str]] = {kind: [] for kind in _KINDS}
    data = io.read(location)
    try:
        table = OwnTable(data, _SCHEMA, nulls=False)
        facts = table.facts
        if facts.get(_TABLE) != str(metadata.table_uuid).encode():
            return None
        if not Spelling(io.properties).are_same(
            facts.get(_LOCATION, b"").decode(), metadata.location
        ):
            return None
        for batch in table.batches(_BATCH):
            for name, kind in zip(*(one.to_pylist() for one in batch.columns), strict=True):
                found[kind].append(name)
    except (ValueError, KeyError) as error:
        raise CorruptFileError(
            f"{location} is not a list of files to delete: {error}",
            hint="Delete it; remove_orphan_files finds what it named.",
            path=location,
        ) from error
    return UnreachableFiles(
        tuple(found["data_files"]),
        (*found["delete_files"], *found["equality_delete_files"]),
        tuple(found["manifests"]),
        tuple(found["manifest_lists"]),
        tuple(found["statistics_files"]),
        equality_delete_files=frozenset(found["equality_delete_files"]),
    )


def _abandoned(io: FileIO, metadata: TableMetadata) -> Iterator[str]:
    limit = time.time() * 1000 - ABANDONED_MS
    folders = {metadata_folder(metadata), f"{metadata.location.rstrip('/')}/metadata"}
    for folder in sorted(folders):
        for file in io.entries(folder).files:
            name = file.location.rpartition("/")[2]
            if _NAME.fullmatch(name) and file.mtime_ms < limit:
                yield file.location
