"""The pointer of a table in a Hive metastore."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Final

from icecomb.catalog.commit.commit import check_commit_allowed, check_metadata_folder
from icecomb.catalog.commit.pointer import MetadataVersion
from icecomb.catalog.hive.entry_pointer import MADE_BY_OTHERS, EntryPointer
from icecomb.catalog.hive.parameters import (
    check_not_encrypted,
    naming,
    new_table,
    pointed,
    with_folders_of,
)
from icecomb.catalog.hive.thrift.entity import HiveTable
from icecomb.catalog.hive.thrift.settings import current_user
from icecomb.format.errors import IcecombError, NoSuchFileError, NoSuchIcebergTableError
from icecomb.format.property.way_back import check_way_back_kept
from icecomb.format.shell_command import shell_command

if TYPE_CHECKING:
    from icecomb.format.spec.metadata import TableMetadata

_REMEDIES: Final = {
    "a Hive table": (("migrate", "apply"), "converts a Hive table"),
    "an Iceberg view": (("views", "show"), "shows it; load_view loads it"),
}


class HivePointer(EntryPointer[MetadataVersion]):
    """The pointer of a table; see `commit.pointer.MetadataPointer` and `EntryPointer`.

    Attributes:
        ends_migration: Whether its commits may give up the way back of a migrated table.
    """

    ends_migration = False
    keeps_folders = False

    def check_writable(self, metadata: TableMetadata) -> None:
        check_commit_allowed(self.name, metadata)

    def check_deletable(self, metadata: TableMetadata) -> None:
        """Implement `MetadataPointer.check_deletable`: what other tables need is known by file."""

    def load(self) -> MetadataVersion:
        """Load the version that the entry points at: one call to the metastore, one file."""
        from icecomb.format.spec.metadata_file import read_metadata

        since = time.monotonic()
        entry = self._client.table(self._database, self._table)
        location = pointed_at(entry)
        self._named = naming(entry)
        try:
            metadata = read_metadata(self._io, location, entry.parameters.get("uuid"))
            version = MetadataVersion(location, metadata)
        except NoSuchFileError as error:
            raise NoSuchFileError(
                f"{self.name}: its metadata file is lost: {error.message}",
                hint=f"{shell_command('doctor', self.name)} names the newest one that is left.",
                path=location,
                table=self.name,
            ) from None
        self.remember(version, entry, since)
        return version

    def stage(self, base: MetadataVersion | None, metadata: TableMetadata) -> MetadataVersion:
        """Implement `MetadataPointer.stage`: write a file of a unique name.

        ValidationError is raised if files of a migrated table might be deleted before its migration
        is finalized.
        """
        from icecomb.format.spec.metadata_file import new_metadata_location, write_metadata

        if base is not None:
            if not self.ends_migration:
                check_way_back_kept(self.name, base.metadata.properties, metadata.properties)
            check_metadata_folder(self, self._io, base.metadata, metadata)
        location = new_metadata_location(metadata, base.location if base else None)
        write_metadata(self._io, metadata, location, base.metadata if base else None)
        return MetadataVersion(location, metadata)

    def new_entry(self, new: MetadataVersion) -> HiveTable:
        made = new_table(
            self._database,
            self._table,
            new.metadata,
            new.location,
            self.properties,
            owner=current_user(self.properties),
        )
        self._named = naming(made)
        return made

    def altered(
        self, entry: HiveTable, expected: MetadataVersion, new: MetadataVersion
    ) -> HiveTable:
        check_not_encrypted(entry)
        altered = pointed(entry, expected.metadata, new.metadata, new.location, self.properties)
        if self.keeps_folders:
            altered = with_folders_of(altered, entry)
        self._named = naming(altered)
        return altered

    def history_reader(
        self, expected: MetadataVersion | None, new: MetadataVersion
    ) -> Callable[[HiveTable], Collection[str] | None]:
        """Implement `EntryPointer.history_reader` by the metadata log of the current file."""
        from icecomb.format.spec.metadata_file import read_metadata

        def history(entry: HiveTable) -> Collection[str] | None:
            try:
                pointed, own = entry.metadata_location or "", entry.parameters.get("uuid")
                metadata = read_metadata(self._io, pointed, own)
            except (IcecombError, OSError):
                return None
            known = frozenset(one.metadata_file for one in metadata.metadata_log)
            # A log may be cut to its last entry, so the new snapshot is proof as well.
            before = expected.metadata if expected else None
            happened = _has_new_snapshot(metadata, before, new.metadata)
            if happened:
                return known | {new.location}
            if _never_had(metadata, before, new.metadata):
                return known | {expected.location if expected else MADE_BY_OTHERS}
            return known

        return history


def pointed_at(entry: HiveTable) -> str:
    """Return the metadata file that an entry points at."""
    if not entry.is_iceberg or entry.metadata_location is None:
        without = " without a metadata_location" if entry.is_iceberg else ""
        raise NoSuchIcebergTableError(
            f"{entry.full_name} is not an Iceberg table: it is {entry.kind}{without}",
            hint=_remedy(entry),
            table=entry.full_name,
        )
    return entry.metadata_location


def _never_had(current: TableMetadata, before: TableMetadata | None, new: TableMetadata) -> bool:
    """Return whether ``current`` cannot descend from ``new``, even by a short log.

    A later snapshot has a higher sequence number, and each number is given once.
    """
    if before is None:
        return current.table_uuid != new.table_uuid
    number = before.last_sequence_number + 1
    if current.table_uuid != new.table_uuid or new.last_sequence_number < number:
        return False
    return current.last_sequence_number < number or any(
        snapshot.sequence_number == number and not new.has_snapshot(snapshot.snapshot_id)
        for snapshot in current.snapshots
    )


def _has_new_snapshot(
    current: TableMetadata, before: TableMetadata | None, new: TableMetadata
) -> bool:
    """Return whether ``current`` has the snapshot that ``new`` added to ``before``."""
    if before is None:
        return False
    newest = [snapshot.snapshot_id for snapshot in new.snapshots[-1:]]
    return any(current.has_snapshot(i) and not before.has_snapshot(i) for i in newest)


def _remedy(entry: HiveTable) -> str | None:
    if entry.kind == "a Hive view":
        return "Only an engine that knows its SQL can read it."
    if entry.kind not in _REMEDIES:
        return None
    words, purpose = _REMEDIES[entry.kind]
    return f"`{shell_command(*words, entry.full_name)}` {purpose}."
