"""The pointer of a view in a Hive metastore, and its entry as Iceberg Java writes it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from icecomb.catalog.commit.commit import check_metadata_folder
from icecomb.catalog.commit.commit_status import CommitState, CommitStatus, is_old
from icecomb.catalog.commit.pointer import Described, ViewMetadataVersion
from icecomb.catalog.hive.entry_pointer import MADE_BY_OTHERS, EntryPointer
from icecomb.catalog.hive.parameters import (
    METADATA_LOCATION,
    OWNER,
    PREVIOUS_METADATA_LOCATION,
    TABLE_TYPE,
    carried,
    description_of,
    naming,
    own_folders,
    storage_of,
    vouching,
)
from icecomb.catalog.hive.thrift.entity import HiveTable
from icecomb.catalog.hive.thrift.settings import current_user
from icecomb.format.errors import (
    IcecombError,
    NoSuchFileError,
    NoSuchIcebergTableError,
    NoSuchIcebergViewError,
    NoSuchTableError,
    NoSuchViewError,
    ValidationError,
)
from icecomb.format.operation.expiry.location_keys import Spelling
from icecomb.format.spec.metadata_file import metadata_version
from icecomb.format.spec.own_folders import OwnFolders, folder_counts
from icecomb.format.spec.view import read_view_metadata

if TYPE_CHECKING:
    from icecomb.format.spec.view import ViewMetadata
    from icecomb.format.storage.file_io import FileIO


ICEBERG_VIEW: Final = "ICEBERG-VIEW"
_HIVE: Final = "hive"
_NO_RETENTION: Final = 2**31 - 1


class HiveViewPointer(EntryPointer[ViewMetadataVersion]):
    """The pointer of a view; see `icecomb.catalog.commit.pointer.Pointer` and `EntryPointer`."""

    def load(self) -> ViewMetadataVersion:
        """Implement `Pointer.load` by one call to the metastore and reading one file."""
        from icecomb.format.spec.view import read_view_metadata

        with view_named(self.name):
            entry = self._client.table(self._database, self._table)
        location = view_pointed_at(entry)
        self._named = naming(entry)
        return ViewMetadataVersion(location, read_view_metadata(self._io, location))

    def stage(
        self, base: ViewMetadataVersion | None, metadata: ViewMetadata
    ) -> ViewMetadataVersion:
        """Implement `Pointer.stage`: write a file of a unique name."""
        from icecomb.format.spec.metadata_file import metadata_version
        from icecomb.format.spec.view import new_view_location, write_view_metadata

        if base is not None:
            check_metadata_folder(self, self._io, base.metadata, metadata)
        version = metadata_version(base.location) if base else -1
        location = new_view_location(metadata, version + 1)
        write_view_metadata(self._io, metadata, location)
        return ViewMetadataVersion(location, metadata)

    def new_entry(self, new: ViewMetadataVersion) -> HiveTable:
        now = int(time.time())
        blank = HiveTable(
            database=self._database,
            name=self._table,
            owner=new.metadata.properties.get(OWNER, current_user(self.properties)),
            create_time=now,
            last_access_time=now,
            retention=_NO_RETENTION,
            table_type="VIRTUAL_VIEW",
        )
        made = _pointed(blank, None, new, self.properties)
        self._named = naming(made)
        return made

    def altered(
        self, entry: HiveTable, expected: ViewMetadataVersion, new: ViewMetadataVersion
    ) -> HiveTable:
        altered = _pointed(entry, expected.metadata, new, self.properties)
        self._named = naming(altered)
        return altered

    def history_reader(
        self, expected: ViewMetadataVersion | None, new: ViewMetadataVersion
    ) -> Callable[[HiveTable], Collection[str] | None]:
        """Implement `EntryPointer.history_reader`: only a view's entry names the file before it."""
        from icecomb.format.spec.view import read_view_metadata

        before = expected.metadata.versions if expected else ()
        added = [version for version in new.metadata.versions if version not in before]

        def history(entry: HiveTable) -> Collection[str] | None:
            known = {entry.parameters.get(PREVIOUS_METADATA_LOCATION, "")}
            others = set() if expected else {MADE_BY_OTHERS}
            if not entry.is_iceberg_view:
                return others
            try:
                current = read_view_metadata(self._io, entry.metadata_location or "")
            except (IcecombError, OSError):
                return None
            if current.view_uuid != new.metadata.view_uuid:
                return known | others
            if added and all(version in current.versions for version in added):
                known.add(new.location)
            ours_or_before = {new.location, expected.location if expected else ""}
            # Two or more later changes: whether they build on the new file is not visible any more.
            return known if known & ours_or_before else None

        return history

    def _chooses_mode(self, metadata: Described | None) -> Mapping[str, str]:  # noqa: ARG002
        # As in Iceberg Java, a view's properties do not choose it.
        return {}


def view_pointed_at(entry: HiveTable) -> str:
    """Return the metadata file that a view's entry points at."""
    if not entry.is_iceberg_view or entry.metadata_location is None:
        without = " without a metadata_location" if entry.is_iceberg_view else ""
        raise NoSuchIcebergViewError(
            f"{entry.full_name} is not an Iceberg view: it is {entry.kind}{without}",
            hint="Load it as a table, with load_table."
            if entry.is_iceberg
            else "Only Iceberg views can be read; `icecomb views list` lists them.",
            view=entry.full_name,
        )
    return entry.metadata_location


@contextmanager
def view_named(name: str) -> Iterator[None]:
    """Raise `NoSuchViewError` instead of `NoSuchTableError`."""
    try:
        yield
    except NoSuchIcebergTableError:
        raise
    except NoSuchTableError as error:
        raise NoSuchViewError(f"There is no view {name}", hint=error.hint, view=name) from None


def _pointed(
    entry: HiveTable,
    base: ViewMetadata | None,
    new: ViewMetadataVersion,
    settings: Mapping[str, str],
) -> HiveTable:
    """Return ``entry`` pointing at ``new``; parameters that are not Iceberg's are unchanged."""
    metadata = new.metadata
    parameters = dict(entry.parameters)
    for key in (base.properties.keys() if base else set()) - metadata.properties.keys():
        parameters.pop(key, None)
    parameters |= carried(metadata.properties, base.properties if base else {})
    parameters |= {"uuid": metadata.view_uuid, TABLE_TYPE: ICEBERG_VIEW}
    if previous := entry.metadata_location:
        parameters[PREVIOUS_METADATA_LOCATION] = previous
    parameters[METADATA_LOCATION] = new.location
    parameters.pop("storage_handler", None)
    parameters.pop("current-schema", None)
    schema = json.dumps(metadata.schema().to_json(), separators=(",", ":"), ensure_ascii=False)
    parameters |= description_of("current-schema", schema, settings)
    text = metadata.current_version.sql_for(_HIVE)
    altered = replace(
        entry,
        parameters=parameters,
        storage=storage_of(entry.storage, metadata.schema(), metadata.location),
        view_original_text=text,
        view_expanded_text=text,
    )
    return altered if base is None else vouching(altered, entry, base, metadata, settings)


def view_commit_status(
    io: FileIO, entry: HiveTable, location: str, *, checked: bool
) -> CommitStatus:
    """Return the status of the change that wrote ``location``.

    Args:
        checked: Whether the metastore checks which pointer it replaces.
    """
    current = view_pointed_at(entry)
    now = read_view_metadata(io, current)
    previous = entry.parameters.get(PREVIOUS_METADATA_LOCATION)
    # other spellings, as a listing shows them, are the same file
    file, pointer, before = Spelling(io.properties).identities([location, current, previous or ""])
    if file == pointer:
        return CommitStatus(CommitState.COMMITTED, "the view points at it", current)
    if file == before:
        return CommitStatus(CommitState.SUPERSEDED, "one later change went on from it", current)
    try:
        new = read_view_metadata(io, location)
    except NoSuchFileError:
        return CommitStatus(CommitState.UNKNOWN, "the file is gone, and views keep no log", current)
    if new.view_uuid != now.view_uuid:
        raise ValidationError(
            f"{location} is a file of another view: its uuid is {new.view_uuid}, that of "
            f"{entry.full_name} is {now.view_uuid}",
            hint="The view was dropped and re-created since, or the file's name is wrong.",
        )
    newest = max(new.versions, key=lambda version: version.version_id)
    has_newest = newest in now.versions
    # A change of properties adds no version, so only the storage knows when it was written.
    old = is_old(_stored_ms(io, location) if has_newest else newest.timestamp_ms)

    def not_made(reason: str) -> CommitStatus:
        own = OwnFolders(own_folders(entry), now, io.properties)
        leftovers, outside = own.metadata_files([location]), own.outside([location])
        left = folder_counts(outside)
        return CommitStatus(CommitState.NOT_COMMITTED, reason, current, tuple(leftovers), left)

    if _is_overtaken(location, current, previous) or (
        not has_newest and any(one.version_id == newest.version_id for one in now.versions)
    ):
        if checked or old:
            return not_made("the view has had another change in its place")
    elif metadata_version(location) <= metadata_version(current):
        return CommitStatus(
            CommitState.UNKNOWN,
            "others have gone on more than once, and views keep no log: compare "
            + ("the properties" if has_newest else "the versions"),
            current,
        )
    elif old:
        return not_made("it is an hour old")
    return CommitStatus(
        CommitState.PENDING,
        "not so far; a request that is still under way could commit it",
        current,
    )


def _is_overtaken(location: str, current: str, previous: str | None) -> bool:
    """Return whether another change replaced the one that wrote ``location``.

    A writer numbers its file after the file it is based on, and a pointer moves only from that
    one: the view has had exactly one file of each number.
    """
    number = metadata_version(location)
    return number >= 0 and number in {
        metadata_version(one) for one in (current, previous) if one is not None
    }


def _stored_ms(io: FileIO, location: str) -> int:
    """Return the time when a file was stored, in milliseconds; now if it is unknown."""
    folder = location.rpartition("/")[0]
    with suppress(IcecombError, OSError):
        for status in io.list(folder):
            if status.location == location:
                return status.mtime_ms
    return int(time.time() * 1000)
