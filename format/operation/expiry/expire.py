"""Expiring old snapshots, and deleting the files that only they need.

What an expiration is about to delete is on a list, so that a crash leaves no file behind. The list,
`metadata/icecomb-gc-<uuid>.parquet`, is written before the commit and deleted with its
files. Its files are only suspects: the expiration may never have been committed, and other writers
may have needed a file since. So every reader of a list checks it against the current metadata. A
list names its table, because several tables may keep their metadata in one folder, and the table's
location: in a folder that was copied it names the files of the original.
"""

from __future__ import annotations

import io as bytes_io
import logging
import re
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa

from icecomb.format.argument import MAX_LONG, checked_instant, checked_int, checked_members
from icecomb.format.errors import (
    CorruptFileError,
    FileIOError,
    IcecombError,
    NoSuchFileError,
    ValidationError,
    reason_of,
)
from icecomb.format.evolution.pending_update import Commit, PendingUpdate
from icecomb.format.manifests.manifest import ManifestContent
from icecomb.format.manifests.manifest_union import distinct_manifests
from icecomb.format.manifests.reader import read_each_columns
from icecomb.format.operation.expiry.location_keys import Spelling
from icecomb.format.operation.expiry.reachability import UnreachableFiles, unreachable_files
from icecomb.format.operation.expiry.reachable_files import ReachableFiles
from icecomb.format.operation.expiry.retention import Retention
from icecomb.format.operation.publication import noted_before_expiry
from icecomb.format.property.table_property import FORMER_FOLDERS, GC_ENABLED
from icecomb.format.property.way_back import deletion_remedy
from icecomb.format.spec.change.requirement import AssertRefSnapshotId, AssertTableUUID
from icecomb.format.spec.change.update import (
    Changes,
    RemovePartitionSpecsUpdate,
    RemoveSchemasUpdate,
    RemoveSnapshotRefUpdate,
    RemoveSnapshotsUpdate,
    update_table_metadata,
)
from icecomb.format.spec.metadata import existing_snapshot
from icecomb.format.spec.metadata_file import metadata_folder
from icecomb.format.spec.own_folders import OwnFolders, outside_text
from icecomb.format.storage.file_system import create_own
from icecomb.format.storage.storage_property import OWN_PREFIXES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from typing_extensions import Self

    from icecomb.format.manifests.manifest import ManifestFile
    from icecomb.format.spec.change.update import TableUpdate
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.storage.file_io import FileIO


_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Expiration:
    """The result of an expiration, or its plan.

    Attributes:
        snapshot_ids: The removed snapshots, in the order of the table.
        refs: Branches and tags that were too old.
        files: Files that nothing refers to any more; after the commit, the deleted files, including
            those left over from earlier runs that were interrupted.
        problem: The reason why unneeded files were not deleted, if any.
        failed: Files that could not be deleted; the next expiration tries again.
        outside: Files that nothing refers to any more, but that are left: they are outside of the
            table's folders.
    """

    snapshot_ids: tuple[int, ...] = ()
    refs: tuple[str, ...] = ()
    files: UnreachableFiles = UnreachableFiles()  # noqa: RUF009 - a constant
    problem: str | None = None
    failed: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()


class ExpireSnapshots(PendingUpdate):
    """An update that removes snapshots and, once committed, deletes the files only they need.

    By default, the table's `history.expire.*` properties decide which snapshots are too old; when
    only ids are given, just these snapshots are removed. The limits of branches and tags take
    precedence. The head of a branch and the snapshot of a tag are always kept.

    The files to delete are written to a list before the commit; see the module. Files that the
    table needs again by then are not deleted, nor are those outside of the table's folders: a path
    in metadata may be anybody's. A warning in the log says where these are.

    Args:
        base: The table metadata.
        io: File system to read manifests from and delete files in.
        commit: See `PendingUpdate`.
        folders: A function that returns the table's folders; see `OwnFolders`.
        dry_run: Whether to only find out what would be removed.
        newest: A function that loads the current table metadata before files are deleted; by
            default, the committed metadata is used.
        others: A function that loads other tables which may need files of this one.
        check_deletable: A function that refuses metadata whose files must not be deleted.
        check_list: A function that refuses metadata beside which no list may be written.

    Attributes:
        result: The result of the expiration, or its plan; None before the commit.
    """

    def __init__(
        self,
        base: TableMetadata,
        io: FileIO,
        commit: Commit | None = None,
        *,
        folders: Callable[[], Sequence[str]],
        dry_run: bool = False,
        newest: Callable[[], TableMetadata] | None = None,
        others: OtherTables | None = None,
        check_deletable: Callable[[TableMetadata], None] | None = None,
        check_list: Callable[[TableMetadata], None] | None = None,
    ) -> None:
        super().__init__(commit)
        self._check_list = check_list
        self._folders = folders
        self._newest = newest
        self._others = others
        self._check_deletable = check_deletable
        self._now_ms = int(time.time() * 1000)
        self._garbage: _Garbage | None = None
        self._base = base
        self._io = io
        self._dry_run = dry_run
        self._ids: dict[int, None] = {}
        self._older_than_ms: int | None = None
        self._retain_last: int | None = None
        self._files = True
        self._metadata = False
        self._more: tuple[str, ...] = ()
        self._applied_to: TableMetadata | None = None
        self.result: Expiration | None = None

    def by_id(self, snapshot_id: int) -> Self:
        """Remove this snapshot.

        Raises:
            NoSuchSnapshotError: If there is no such snapshot.
            ValidationError: If a branch or tag points to it.
        """
        snapshot_id = checked_int("snapshot_id", snapshot_id, -MAX_LONG - 1, MAX_LONG)
        existing_snapshot(self._base, snapshot_id)
        _check_no_head(self._base, (snapshot_id,), frozenset())
        self._ids[snapshot_id] = None
        return self

    def by_ids(self, snapshot_ids: Iterable[int]) -> Self:
        """Remove these snapshots; see `by_id`."""
        for snapshot_id in snapshot_ids:
            self.by_id(snapshot_id)
        return self

    def older_than(self, dt: datetime | int) -> Self:
        """Remove snapshots older than a time, instead of by the table's properties.

        Args:
            dt: A datetime with a zone, or milliseconds since the epoch.

        Raises:
            ValidationError: If `dt` is neither.
        """
        self._older_than_ms = checked_instant("older_than", dt)
        return self

    def retain_last(self, num_snapshots: int) -> Self:
        """Keep at least this many snapshots of each branch, however old they are.

        Raises:
            ValidationError: If the number is less than 1.
        """
        self._retain_last = checked_int("number of snapshots to retain", num_snapshots, 1)
        return self

    def clean_expired_files(self, clean: bool) -> Self:  # noqa: FBT001 - as in Iceberg Java
        """Choose whether files are deleted; they are by default."""
        self._files = clean
        return self

    def clean_expired_metadata(self, clean: bool) -> Self:  # noqa: FBT001 - as in Iceberg Java
        """Choose whether unused schemas and partition specs are removed, too; by default not."""
        self._metadata = clean
        return self

    def delete_outside(self, folders: Iterable[str]) -> Self:
        """Delete unneeded files below these folders, too, which are not the table's.

        Args:
            folders: Absolute locations of folders, whose files are the table's alone.

        Raises:
            ValidationError: If one is relative, the root of a storage, or holds the warehouse.
        """
        self._more = (*self._more, *checked_members("outside", folders, str))
        self._own(self._base).check_more(self._base.location)
        return self

    def plan(self) -> Expiration:
        """Return what would be removed if the expiration were committed now, changing nothing.

        Raises:
            ValidationError: If the table's files may not be deleted (`gc.enabled`).
        """
        after = update_table_metadata(self._base, self._changes(self._base).updates)
        ids, refs = _gone(self._base, after)
        found = self._unreachable(self._base, after)
        try:
            found.files = still_unreachable(self._io, found.files, None, (), self._others)
            if self._files:
                left = left_files(self._io, after, self._own(self._base), self._others)
                more = without(left.files, frozenset(found.files.files))
                found.files = Deleted(found.files).joined(Deleted(more)).files
                found.outside = _each_once(found.outside, left.outside)
        except (IcecombError, OSError) as error:
            found.files = UnreachableFiles()
            found.problem = f"It is unknown which files are needed: {reason_of(error)}"
        _warn_of(self._base, found.outside)
        return Expiration(ids, refs, found.files, found.problem, outside=found.outside)

    def commit(self) -> None:
        """Commit the expiration; a dry run only sets `result`."""
        if self._dry_run:
            self.result = self.plan()
        else:
            super().commit()

    def apply(self, base: TableMetadata) -> Changes:
        """Return the changes of the expiration, and write the list of files to delete."""
        changes = self._changes(base)
        self._applied_to = base
        after = update_table_metadata(base, changes.updates)
        ids, _ = _gone(base, after)
        # an earlier attempt found the same files, except those that others have needed since
        if self._garbage is None or self._garbage.snapshot_ids != ids:
            self._discard()
            self._garbage = self._unreachable(base, after)
            if self._garbage.files.files:
                if self._check_list is not None:
                    self._check_list(after)
                self._garbage.list_location = write_list(self._io, after, self._garbage.files)
        return changes

    def _changes(self, base: TableMetadata) -> Changes:
        if not GC_ENABLED.of(base.properties):
            raise ValidationError(
                "Cannot expire snapshots: files of this table may belong to others, too "
                f"({GC_ENABLED.key} is false)",
                hint=deletion_remedy(base.properties),
            )
        if self._files and self._check_deletable is not None:
            self._check_deletable(base)
        refs, snapshot_ids = self._due(base)
        updates: list[TableUpdate] = [RemoveSnapshotRefUpdate(name) for name in sorted(refs)]
        if snapshot_ids:
            updates.append(RemoveSnapshotsUpdate(snapshot_ids))
        after = update_table_metadata(base, updates)
        if snapshot_ids:
            updates += noted_before_expiry(base, after)
        if self._metadata:
            updates += self._unused(after)
        return Changes(
            (
                AssertTableUUID(base.table_uuid),
                *(AssertRefSnapshotId(n, base.refs[n].snapshot_id) for n in sorted(refs)),
            ),
            tuple(updates),
        )

    def clean_up(self, committed: TableMetadata | None) -> None:
        """Delete the files of the removed snapshots after the commit."""
        if committed is None or self._applied_to is None or self._garbage is None:
            self._discard()
            return
        ids, refs = _gone(self._applied_to, committed)
        self.result = Expiration(ids, refs, problem=self._garbage.problem)
        if self._files:
            self.result = self._cleaned(self.result, committed)

    def _cleaned(self, result: Expiration, committed: TableMetadata) -> Expiration:
        """Delete the listed files, then those that earlier runs left behind."""
        garbage = self._garbage or _Garbage(())
        try:
            newest = committed if self._newest is None else self._newest()
            if newest.table_uuid != committed.table_uuid:
                newest = committed  # it was dropped, and another one has its name
            files = still_unreachable(self._io, garbage.files, newest, garbage.known, self._others)
            done = delete_garbage(self._io, files)
        except (IcecombError, OSError) as error:
            problem = f"It is unknown which files are needed: {reason_of(error)}"
            return replace(result, problem=result.problem or problem)
        if not done.failed:
            self._discard()
        try:
            done = done.joined(collect_left(self._io, newest, self._own(newest), self._others))
        except (IcecombError, OSError) as error:
            problem = f"Files left behind by earlier runs could not be deleted: {reason_of(error)}"
            result = replace(result, problem=result.problem or problem)
        if done.failed:
            result = replace(result, problem=f"Not all files could be deleted: {done.reason}")
        outside = _each_once(garbage.outside, done.outside)
        _warn_of(committed, outside)
        return replace(result, files=done.files, failed=done.failed, outside=outside)

    def _discard(self) -> None:
        """Delete the list, whose files are irrelevant or already deleted."""
        if self._garbage is not None and self._garbage.list_location is not None:
            delete_list(self._io, self._garbage.list_location)
        self._garbage = None

    def _unreachable(self, before: TableMetadata, after: TableMetadata) -> _Garbage:
        found = _Garbage(_gone(before, after)[0])
        if self._files:
            try:
                files = unreachable_files(self._io, before, after, found.known)
                outside = self._own(before).outside(files.files)
                found.files, found.outside = without(files, outside), tuple(sorted(outside))
            except (IcecombError, OSError) as error:
                found.problem = f"It is unknown which files are needed: {reason_of(error)}"
        return found

    def _own(self, metadata: TableMetadata) -> OwnFolders:
        return OwnFolders(self._folders(), metadata, self._io.properties, self._more)

    def _due(self, base: TableMetadata) -> tuple[frozenset[str], tuple[int, ...]]:
        retention = Retention.of(base, self._now_ms, self._older_than_ms, self._retain_last)
        by_age = not self._ids or (self._older_than_ms, self._retain_last) != (None, None)
        refs = retention.expired_refs(base) if by_age else frozenset()
        due = retention.expired_snapshots(base, refs) if by_age else frozenset()
        _check_no_head(base, self._ids, refs)
        chosen = due | self._ids.keys()
        return refs, tuple(number for number in base.snapshot_ids() if number in chosen)

    def _unused(self, metadata: TableMetadata) -> list[TableUpdate]:
        """Return updates that remove schemas and specs which neither new nor kept files need.

        Partition values and equality deletes of columns that were dropped need their types.
        """
        schema_ids = {metadata.current_schema_id, *(s.schema_id for s in metadata.snapshots)}
        spec_ids = {metadata.default_spec_id}
        # the next one gets the number after the highest: if that were removed, its number would
        # be given twice, while other writers may still be using it
        schema_ids.add(max(schema.schema_id for schema in metadata.schemas))
        spec_ids.add(max(spec.spec_id for spec in metadata.partition_specs))
        manifests = distinct_manifests(self._io, metadata.snapshots).values()
        spec_ids.update(manifest.partition_spec_id for manifest in manifests)
        deletes = [one for one in manifests if one.content is ManifestContent.DELETES]
        for spec in metadata.partition_specs:
            if spec.spec_id in spec_ids:
                schema_ids.add(metadata.schema_of(spec).schema_id)
        for field_id in self._compared(metadata, deletes):
            schema_ids.add(metadata.schema_with(field_id).schema_id)
        schemas = [s.schema_id for s in metadata.schemas if s.schema_id not in schema_ids]
        specs = [s.spec_id for s in metadata.partition_specs if s.spec_id not in spec_ids]
        updates: list[TableUpdate] = []
        if specs:
            updates.append(RemovePartitionSpecsUpdate(tuple(specs)))
        if schemas:
            updates.append(RemoveSchemasUpdate(tuple(schemas)))
        return updates

    def _compared(self, metadata: TableMetadata, deletes: Iterable[ManifestFile]) -> set[int]:
        """Return the ids of the columns that the equality deletes of these manifests compare."""
        found: set[int] = set()
        for columns in read_each_columns(self._io, deletes, metadata.spec_by_id):
            for ids in columns.column("equality_ids").to_pylist():
                found.update(ids or ())
        return found


@dataclass(slots=True)
class _Garbage:
    """The unneeded files of one attempt.

    Attributes:
        known: Manifests that name none of these files.
        problem: The reason why the files are unknown, if they are.
        outside: Such files outside of the table's folders, which stay.
    """

    snapshot_ids: tuple[int, ...]
    files: UnreachableFiles = UnreachableFiles()  # noqa: RUF009 - a constant
    known: set[str] = field(default_factory=set)
    problem: str | None = None
    list_location: str | None = None
    outside: tuple[str, ...] = ()


def _gone(before: TableMetadata, after: TableMetadata) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Return the snapshots, and the branches and tags, that `after` no longer has."""
    ids = tuple(number for number in before.snapshot_ids() if not after.has_snapshot(number))
    return ids, tuple(sorted(before.refs.keys() - after.refs.keys()))


def _each_once(some: Iterable[str], others: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*some, *others]))


def _warn_of(metadata: TableMetadata, outside: tuple[str, ...]) -> None:
    if outside:
        _LOG.warning(
            "%s: %s, which nothing refers to any more, are not deleted; if such a folder is the "
            "table's alone, give it to expire_snapshots (outside), or name it in %s, and in the "
            "catalog's %s, before snapshots expire, or give it to remove_orphan_files later",
            metadata.location,
            outside_text(outside),
            FORMER_FOLDERS.key,
            OWN_PREFIXES.key,
        )


def _check_no_head(
    base: TableMetadata, snapshot_ids: Iterable[int], expired_refs: frozenset[str]
) -> None:
    heads = {ref.snapshot_id: n for n, ref in base.refs.items() if n not in expired_refs}
    for snapshot_id in snapshot_ids:
        if (name := heads.get(snapshot_id)) is not None:
            raise ValidationError(
                f"Cannot expire snapshot {snapshot_id}: {name!r} points to it",
                hint="Move or remove that branch or tag first.",
            )


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
    """The files that are gone, those that could not be deleted, and why the first could not.

    Attributes:
        outside: Files outside of the table's folders, which stay.
    """

    files: UnreachableFiles = UnreachableFiles()  # noqa: RUF009 - a constant
    failed: tuple[str, ...] = ()
    reason: str | None = None
    outside: tuple[str, ...] = ()

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
            _each_once(self.outside, other.outside),
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
    for location, files, outside in _left(io, metadata, own, others):
        found = delete_garbage(io, files)
        if not found.failed:
            delete_list(io, location)
        done = done.joined(replace(found, outside=outside))
    return done


def left_files(
    io: FileIO, metadata: TableMetadata, own: OwnFolders, others: OtherTables | None = None
) -> Deleted:
    """Return what `collect_left` would delete, each file once."""
    found = Deleted()
    for _, files, outside in _left(io, metadata, own, others):
        more = without(files, frozenset(found.files.files))
        found = found.joined(Deleted(more, outside=outside))
    return found


def _left(
    io: FileIO, metadata: TableMetadata, own: OwnFolders, others: OtherTables | None
) -> Iterator[tuple[str, UnreachableFiles, tuple[str, ...]]]:
    """Yield the lists of runs that ended, each with its files that are there and not needed.

    Those outside of the table's folders stand apart, and are not looked for.
    """
    lists = [*_abandoned(io, metadata)]
    elsewhere = own.outside(lists) if lists else ()
    for location in (one for one in lists if one not in elsewhere):
        try:
            files = _read_list(io, location, metadata)
        except NoSuchFileError:
            continue  # another run was first
        except CorruptFileError as error:
            _LOG.warning("%s; it stays, and nothing in it is deleted", error.message)
            continue
        if files is not None:
            files = still_unreachable(io, files, metadata, (), others)
            outside = own.outside(files.files)
            yield location, _present(io, without(files, outside)), tuple(sorted(outside))


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
            f"{location} is not a list of icecomb's of files to delete: {error}",
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
