"""Search for files in a table's folder that no metadata refers to, and their removal.

Doubtful files stay. Metadata is read before the folder is listed, and checked again before
each batch of files is removed. Files with the same uuid in their names count as old as the
youngest of them: a job that has run for days is still writing some.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from icecomb.catalog.commit.version_line import Relation, VersionLine, table_folder
from icecomb.catalog.maintenance.engine import Engine
from icecomb.catalog.maintenance.folder_listing import (
    LOCAL_LISTING,
    FolderListing,
    HiddenNames,
    file_batch,
    list_by_session,
)
from icecomb.catalog.maintenance.quarantine import FOLDER, Quarantine, delete_files
from icecomb.catalog.report.progress import SILENT, each
from icecomb.format.argument import any_text, checked_instant, checked_int
from icecomb.format.errors import (
    CorruptFileError,
    NoSuchFileError,
    ValidationError,
)
from icecomb.format.operation.expiry.location_keys import Spelling
from icecomb.format.operation.expiry.reachable_files import ReachableFiles
from icecomb.format.property.table_property import GC_ENABLED
from icecomb.format.property.way_back import deletion_remedy
from icecomb.format.spec.metadata_file import (
    metadata_folder,
    metadata_version,
    read_metadata,
    read_metadata_document,
    version_of,
)
from icecomb.format.spec.own_folders import OwnFolders, folder_counts, outside_text
from icecomb.format.storage.location import linked_texts

if TYPE_CHECKING:
    from icecomb.catalog.maintenance.folder_listing import FolderEngine
    from icecomb.catalog.table.table import Table
    from icecomb.format.operation.expiry.location_keys import Mask
    from icecomb.format.storage.file_io import FileIO


DAY_MS: Final = 86_400_000
DEFAULT_AGE_MS: Final = 3 * DAY_MS
MODES: Final = ("ERROR", "IGNORE", "DELETE")
_BATCH: Final = 1000
_LOG: Final = logging.getLogger(__name__)
_UUID: Final = r"(?P<uuid>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})[^/]*$"
_NEVER: Final = (
    rf"/(?:_icecomb_migration|{FOLDER}|_icecomb_waiting)/"
    r"|/icecomb-gc-[^/]*\.parquet$|/version-hint\.text$"
)


@dataclass(frozen=True, slots=True)
class OrphanFiles:
    """Files that nothing refers to.

    Attributes:
        orphan_file_location: The files' locations, also if deleted.
        deleted_files_count: Number of files deleted, or set aside.
        failed_files: Files that could not be deleted or set aside.
        other_tables: Skipped folders and metadata files of other tables, each with a description
            of the table.
        quarantine: The folder that files were moved to; None if they were not.
        left_outside: Folders outside of the searched one, each with the number of files there that
            were listed for the search; what becomes of them is not for it to say.
    """

    orphan_file_location: tuple[str, ...]
    deleted_files_count: int = 0
    failed_files: tuple[str, ...] = ()
    other_tables: Mapping[str, str] | None = None
    quarantine: str | None = None
    left_outside: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrphanSearch:
    """The arguments of a search; see `Maintenance.remove_orphan_files`."""

    older_than_ms: int
    location: str | None = None
    dry_run: bool = True
    max_concurrent_deletes: int | None = None
    files: Iterable[tuple[str, int | None]] | None = None
    equal_schemes: Mapping[str, str] | None = None
    equal_authorities: Mapping[str, str] | None = None
    prefix_mismatch_mode: str = "ERROR"
    quarantine: bool = False
    engine: Engine = Engine.AUTO
    session: FolderEngine | None = None


def age_limit(older_than: datetime | int | None, *, any_age: bool | None) -> int:
    """Return the time, epoch milliseconds, that orphans must precede; default three days ago.

    Args:
        any_age: Whether it may be less than a day ago; None where that cannot be asked for.
    """
    now_ms = int(time.time() * 1000)
    if older_than is None:
        return now_ms - DEFAULT_AGE_MS
    limit = checked_instant("older_than", older_than, 0)
    if limit > now_ms - DAY_MS and not any_age:
        raise ValidationError(
            "Cannot remove orphan files that are younger than 24 hours: a writer that is under way "
            "may be about to commit them",
            hint="Choose an earlier time."
            if any_age is None
            else "Choose an earlier time; any_age=True (--any-age) allows it if nobody writes.",
        )
    return limit


def named_files(
    files: Iterable[str | tuple[str, datetime | int | None]],
) -> Iterator[tuple[str, int | None]]:
    """Yield paths and times of files that the caller listed."""
    for each_file in files:
        location, time_of = (each_file, None) if isinstance(each_file, str) else each_file
        yield (
            any_text("path of a file", location),
            None if time_of is None else checked_instant("time of a file", time_of, 0),
        )


def remove_orphan_files(table: Table, search: OrphanSearch) -> OrphanFiles:
    """Run `Maintenance.remove_orphan_files`."""
    table.refresh()
    _check(table, search)
    root = (search.location or table.location()).rstrip("/")
    found = _Orphans(table, root, search)
    locations = found.find()
    left_outside = folder_counts(found.outside)
    if found.outside:
        _LOG.warning(
            "%s: %s are left; give the folder to remove_orphan_files (location) to search it",
            ".".join(table.name()),
            outside_text(found.outside, "the searched folder"),
        )
    if search.dry_run or not locations:
        return OrphanFiles(
            tuple(locations), other_tables=found.other_tables, left_outside=left_outside
        )
    quarantine = None
    if search.quarantine:
        quarantine = Quarantine(table.io, table._own_folders()[0], root, time.time())  # noqa: SLF001 - the table knows its pointer
    gone: list[str] = []
    failed: list[str] = []
    for start in range(0, len(locations), _BATCH):
        batch = found.still_orphans(locations[start : start + _BATCH])
        if quarantine is None:
            left = delete_files(table.io, batch, search.max_concurrent_deletes)
        else:
            left = quarantine.take(batch, search.max_concurrent_deletes)
        failed += left
        gone += batch
    return OrphanFiles(
        tuple(gone),
        len(gone) - len(failed),
        tuple(failed),
        found.other_tables,
        None if quarantine is None else quarantine.folder,
        left_outside,
    )


class _Orphans:
    """The orphans of one table below one folder."""

    def __init__(self, table: Table, root: str, search: OrphanSearch) -> None:
        self._table = table
        self._root = root
        self._search = search
        self._spelling = Spelling(
            table.io.properties, search.equal_schemes, search.equal_authorities
        )
        self._reachable = ReachableFiles(table.io, self._spelling, root=root)
        self._seen: set[str] = set()
        self._others: list[str] = []
        self.other_tables: dict[str, str] = {}
        self.outside: list[str] = []

    def find(self) -> list[str]:
        """Search for the orphans."""
        self._read_metadata()
        listing = FolderListing(HiddenNames.of(self._table.specs().values()))
        if self._search.files is None:
            self._walk(listing)
        else:
            listing.name(self._search.files)
        self._check_newest(listing)
        neighbors = find_neighbors(
            self._table, self._root, listing, self._reachable, self._spelling
        )
        self.other_tables |= neighbors.folders
        self._others = self._spelling.paths(pa.array(list(neighbors.folders), pa.string()))
        self.other_tables |= dict.fromkeys(
            neighbors.metadata_files, "the metadata of another table"
        )
        self._reachable.add(list(neighbors.metadata_files))
        if self._search.files is None:
            return self._old([self._unreached(batch) for batch in listing.batches()])
        inside = [self._inside(batch) for batch in listing.batches()]
        return self._old([self._with_times(self._unreached(batch)) for batch in inside])

    def _walk(self, listing: FolderListing) -> None:
        """List the folder; executors of a session list what exceeds this machine's limit."""
        search, session, limit = self._search, self._search.session, None
        if search.engine is Engine.SPARK:
            limit = 0
        elif search.engine is Engine.AUTO and session is not None:
            # executors on other machines may lack a local folder
            is_local = self._table.io.served_by(self._root).is_local
            limit = None if is_local else LOCAL_LISTING
        rest = listing.walk(self._table.io, self._root, limit)
        if rest and session is not None:
            list_by_session(
                self._table, self._root, rest, listing, session=session, spelling=self._spelling
            )

    def still_orphans(self, batch: list[str]) -> list[str]:
        """Return the orphans that the table's current metadata does not reach either."""
        self._table.refresh()
        _check(self._table, self._search)
        self._read_metadata()
        rows = file_batch(batch, [0] * len(batch))
        left: list[str] = self._unreached(rows).column("location").to_pylist()
        return left

    def _read_metadata(self) -> None:
        location = self._table.metadata_location
        if location not in self._seen:
            self._reachable.add_table(self._table.metadata, location)
            self._seen.add(location)

    def _check_newest(self, listing: FolderListing) -> None:
        """Refuse to begin if the folder has a newer version than the one that was read."""
        at = version_of(self._table.metadata_location)
        folder = self._table.metadata_location.rpartition("/")[0]
        if at is None:
            return
        found = [
            (version, file)
            for file in listing.metadata_files
            if file.rpartition("/")[0] == folder and (version := version_of(file)) is not None
        ]
        newest = max(found, default=(at, ""))
        if newest[0] <= at:
            return
        self._table.refresh()
        self._read_metadata()
        now = version_of(self._table.metadata_location)
        if now is None or now < newest[0]:
            raise ValidationError(
                f"Table {'.'.join(self._table.name())} was read at version {at}, but its folder "
                f"has {newest[1]}: it is unknown which files that one needs",
                hint="A version between them is missing: check the metadata folder; nothing was "
                "deleted.",
                path=newest[1],
            )

    def _unreached(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the files of a listing that nothing refers to, of any age."""
        locations = batch.column("location")
        keys = self._spelling.keys(locations)
        needed, doubtful = self._reachable.sort(keys)
        mode = self._search.prefix_mismatch_mode
        if mode == "ERROR" and doubtful.any():
            names, rows = keys.prefixes
            found = sorted({names[row] for row in rows[doubtful].tolist()})
            example = locations.filter(pa.array(doubtful))[0].as_py()
            raise ValidationError(
                "It is unknown whether some files are orphans: metadata names files of the same "
                f"path under another scheme or authority than {', '.join(found)}, as {example}",
                hint="Declare equal ones by equal_schemes and equal_authorities; "
                "prefix_mismatch_mode IGNORE keeps such files, DELETE deletes them.",
                path=example,
            )
        protected = self._protected(locations)
        elsewhere = self._reachable.elsewhere(keys) & ~protected
        if mode == "ERROR" and elsewhere.any():
            example = locations.filter(pa.array(elsewhere))[0].as_py()
            raise ValidationError(
                "It is unknown whether some files are orphans: metadata names files outside of "
                f"{self._root} that are called the same, as {example}",
                hint="If that is another path of the same folder (a mount point, a link, another "
                "mount table), open the table by it; prefix_mismatch_mode IGNORE keeps such files, "
                "DELETE deletes them.",
                path=example,
            )
        doubtful = doubtful | elsewhere
        kept = needed | doubtful if mode == "IGNORE" else needed
        kept = kept | protected
        return batch.filter(pa.array(~kept))

    def _protected(self, locations: pa.Array) -> Mask:
        """Return which files are never orphans, or in folders of other tables."""
        found: Mask = pc.match_substring_regex(locations, _NEVER).to_numpy(zero_copy_only=False)
        if not self._others:
            return found
        paths = pa.array(self._spelling.paths(locations), pa.string())
        for folder in self._others:
            inside = pc.starts_with(paths, pattern=f"{folder}/")
            found = found | inside.to_numpy(zero_copy_only=False)
        return found

    def _old(self, batches: list[pa.RecordBatch]) -> list[str]:
        """Return the files that are old enough, like all files written together with them."""
        limit = self._search.older_than_ms
        young: list[pa.Array] = []
        old: list[tuple[pa.Array, pa.Array]] = []
        for batch in batches:
            times = batch.column("mtime_ms")
            names = batch.column("location")
            uuids = pc.struct_field(pc.extract_regex(names, _UUID), "uuid")
            is_old = pc.less(times, limit)
            young.append(pc.unique(uuids.filter(pc.invert(is_old)).drop_null()))
            old.append((names.filter(is_old), uuids.filter(is_old)))
        under_way = pa.concat_arrays(young) if young else pa.array([], pa.string())
        found: list[str] = []
        for names, uuids in old:
            busy = pc.and_(pc.is_valid(uuids), pc.is_in(uuids, value_set=under_way))
            found += names.filter(pc.invert(busy)).to_pylist()
        return found

    def _inside(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the named files in the folder, as in Iceberg; the others are noted."""
        (root,) = self._spelling.paths(pa.array([self._root]))
        locations = batch.column("location")
        paths = self._spelling.paths(locations)
        inside = pa.array([path.startswith(f"{root}/") for path in paths], pa.bool_())
        self.outside += locations.filter(pc.invert(inside)).to_pylist()
        return batch.filter(inside)

    def _with_times(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the named files, all with a time."""
        known = pc.is_valid(batch.column("mtime_ms"))
        missing = batch.filter(pc.invert(known)).column("location").to_pylist()
        found = [(at, when) for at, when in _times(self._table.io, missing) if when is not None]
        asked = file_batch([at for at, _ in found], [when for _, when in found])
        table = pa.Table.from_batches([batch.filter(known), asked])
        return table.combine_chunks().to_batches()[0] if table.num_rows else asked


def _times(io: FileIO, locations: list[str]) -> Iterator[tuple[str, int | None]]:
    """Yield the times of files' last changes; None for missing files."""

    def find(location: str) -> tuple[str, int | None]:
        try:
            found = (s.mtime_ms for s in io.list(location) if s.location == location)
            return location, next(found, None)
        except NoSuchFileError:
            return location, None

    yield from each(SILENT, "examining", "files", locations, find)


def _check_location(table: Table, name: str) -> None:
    """Refuse a location that anybody may have written into the metadata: it proves nothing.

    It has to be a folder of the table by the catalog's word, with the current metadata file in its
    place there: in a folder further up are other tables.
    """
    pointer, location = table.metadata_location, table.location()
    vouched = table._own_folders()  # noqa: SLF001 - the table knows its pointer
    own = OwnFolders(vouched, table.metadata, table.io.properties).folders
    given = (pointer.rpartition("/")[0], location)
    linked = linked_texts(given, table.io.properties)
    beside, folder = (f"{one.rstrip('/')}/" for one in linked)
    if beside not in own.values() and not beside.startswith(f"{folder}metadata/"):
        problem = f"and its metadata file is not there: {pointer}"
    elif folder not in own.values():
        problem = f"and by its catalog these: {', '.join(own) or 'none without links of others'}"
    else:
        return
    raise ValidationError(
        f"{name} has the location {location}, {problem}; whether the folder is the table's own "
        "cannot be told",
        hint="Name the folder, if it is: `--location`, or the argument location.",
        table=name,
        path=location,
    )


def _check(table: Table, search: OrphanSearch) -> None:
    """Refuse tables that must not be cleaned up, and unknown arguments."""
    name = ".".join(table.name())
    table._check_deletable(table.metadata)  # noqa: SLF001 - the table knows its pointer
    if not GC_ENABLED.of(table.properties):
        raise ValidationError(
            f"Cannot remove orphan files of {name}: its files may belong to other tables, too "
            f"({GC_ENABLED.key} is false)",
            hint=deletion_remedy(table.properties, name),
            table=name,
        )
    if search.location is None:
        _check_location(table, name)
    if search.prefix_mismatch_mode not in MODES:
        raise ValidationError(
            f"There is no prefix_mismatch_mode {search.prefix_mismatch_mode!r}",
            hint=f"It is one of {', '.join(MODES)}.",
        )
    if search.engine is Engine.SPARK and search.session is None:
        raise ValidationError(
            "Spark can list files only where a session calls",
            hint="CALL lake.system.remove_orphan_files(table => 'db.t', engine => 'spark')",
        )
    if search.max_concurrent_deletes is not None:
        checked_int("max_concurrent_deletes", search.max_concurrent_deletes, 1)


_METADATA: Final = "metadata"


@dataclass(frozen=True, slots=True)
class NeighborTables:
    """Other tables in a folder.

    Attributes:
        folders: Folders whose contents belong to other tables, with a description of these.
        metadata_files: Metadata files of other tables in folders of this one.
    """

    folders: dict[str, str]
    metadata_files: tuple[str, ...]


def find_neighbors(
    table: Table, root: str, listing: FolderListing, reachable: ReachableFiles, spelling: Spelling
) -> NeighborTables:
    """Find the other tables in a folder, and mark the files that their metadata reaches.

    If metadata of a table that the catalog has in this folder is unreadable, it raises: it is
    unknown which files are its own.
    """
    own = spelling.identities([table.location().rstrip("/")])
    folders = dict(listing.others)
    for folder, what in listing.others.items():
        _check_not_own(table, own, spelling, folder, what)
    known = table.metadata.table_uuid
    for entry in table.catalog.entries_below(root, uuid=None if known is None else str(known)):
        if entry.identifier == table.name():
            continue
        name = ".".join(entry.identifier)
        if entry.metadata_location is None:
            _check_not_own(table, own, spelling, entry.location, f"table {name}")
        else:
            metadata = read_metadata(table.io, entry.metadata_location)
            reachable.add_table(metadata, entry.metadata_location)
        if spelling.identities([entry.location.rstrip("/")]) != own:
            folders[entry.location.rstrip("/")] = f"table {name}"
    foreign = _foreign_metadata(table, listing.metadata_files, reachable, spelling)
    shared = []
    places = (metadata_folder(table.metadata), table.metadata_location.rpartition("/")[0])
    of_metadata = set(spelling.identities(places))
    for location, uuid in foreign.items():
        inner = table_folder(location)
        (beside,) = spelling.identities([location.rpartition("/")[0]])
        if beside in of_metadata or spelling.identities([inner]) == own:
            shared.append(location)
        else:
            folders[inner] = f"a table with the uuid {uuid}"
    return NeighborTables(folders, tuple(shared))


def _foreign_metadata(
    table: Table, files: Mapping[str, int], reachable: ReachableFiles, spelling: Spelling
) -> dict[str, str]:
    """Return other tables' metadata files with uuids; mark the files that they reach."""
    own = spelling.identities([table.location().rstrip("/")])
    own_uuid = str(table.metadata.table_uuid)
    line = VersionLine(table.metadata, table.metadata_location, spelling)
    found: dict[str, str] = {}
    followed: set[int] = set()

    def read(location: str) -> dict[str, Any] | None:
        return _facts(table.io, location)

    unknown = _unreached(table, files, reachable, spelling)
    for location, facts in zip(
        unknown, each(SILENT, "examining", "files", unknown, read), strict=True
    ):
        if facts is None:
            continue
        uuid, folder = facts.get("table-uuid"), facts.get("location")
        if uuid is None and isinstance(folder, str):
            # metadata of format version 1 may have no uuid: its location identifies the table
            uuid = own_uuid if spelling.identities([folder.rstrip("/")]) == own else folder
        if uuid == own_uuid and line.relation(location, facts) is Relation.UNNEEDED:
            continue
        found[location] = str(uuid)
        if uuid != own_uuid:
            # the last commit may have failed, and its base or another one that follows this be the
            # table; two commits on a version prove that somebody went on from it
            log = [str(entry.get("metadata-file")) for entry in facts.get("metadata-log") or ()]
            followed.update(spelling.identities(log[:-1]))
    for location, key in zip(found, spelling.identities(list(found)), strict=True):
        if key not in followed:
            with suppress(NoSuchFileError, CorruptFileError):
                reachable.add_table(read_metadata(table.io, location), location, damaged=True)
    return found


def _unreached(
    table: Table, files: Mapping[str, int], reachable: ReachableFiles, spelling: Spelling
) -> list[str]:
    """Return the unreached metadata files: in own folders all, in others the highest versions."""
    if not files:
        return []
    locations = pa.array(list(files), pa.string())
    needed, _ = reachable.sort(spelling.keys(locations))
    folders = {f"{table.location().rstrip('/')}/{_METADATA}"}
    by_folder: dict[str, list[str]] = {}
    for file, is_needed in zip(files, needed.tolist(), strict=True):
        folder = file.rpartition("/")[0]
        if is_needed:
            folders.add(folder)
        else:
            by_folder.setdefault(folder, []).append(file)
    own = set(spelling.identities(sorted(folders)))
    found: list[str] = []
    for folder, inside in by_folder.items():
        is_own = not own.isdisjoint(spelling.identities([folder]))
        found += inside if is_own else _highest(inside, files)
    return found


def _highest(inside: list[str], files: Mapping[str, int]) -> list[str]:
    """Return the files of the highest version, by each way to name them, or else the youngest.

    Times do not tell: copies and restored backups have those of their making.
    """
    found: list[str] = []
    for number_of in (lambda file: version_of(file) or -1, metadata_version):
        numbers = {file: number_of(file) for file in inside}
        highest = max(numbers.values())
        if highest >= 0:
            found += [file for file in inside if numbers[file] == highest]
    return found or [max(inside, key=lambda file: (files[file], file))]


def _facts(io: FileIO, location: str) -> dict[str, Any] | None:
    """Return what a metadata file says; None if it is not one, or gone."""
    with suppress(NoSuchFileError):
        return read_metadata_document(io, location)
    return None


def _check_not_own(table: Table, own: Any, spelling: Spelling, folder: str, what: str) -> None:
    if spelling.identities([folder.rstrip("/")]) == own:
        name = ".".join(table.name())
        raise ValidationError(
            f"Orphan files of {name} are unknown: its folder is also that of {what}: {folder}",
            hint="Its files are unknown here: give one of the two tables a folder of its own.",
            table=name,
            path=folder,
        )
