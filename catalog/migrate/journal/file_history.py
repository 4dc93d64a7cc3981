"""The files that a migrated table had at its migration, and those written since."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain, islice
from typing import TYPE_CHECKING, Final

from icecomb.catalog.migrate.journal.journal import Journal, Step, kept_files
from icecomb.catalog.migrate.source.partition_folders import DigestSet, digest
from icecomb.format.errors import CorruptFileError, MigrationError, NoSuchFileError
from icecomb.format.shell_command import shell_command

if TYPE_CHECKING:
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.snapshot import Snapshot
    from icecomb.format.storage.file_io import FileIO

MIGRATED_FROM: Final = "icecomb.migrated-from"
"""Snapshot summary property of a migration's first snapshot: the Hive table."""
TAKEN_IN: Final = "icecomb.migrated-late"
"""Snapshot summary property: the migration that took in files of Hive's writers by it."""
_SHOWN: Final = 3
_PAGE: Final = 10_000


class FileHistory:
    """The files of a migrated table, by age.

    Snapshots may have been expired since, even the migration's own: not every engine respects
    ``gc.enabled``. The files of an expired snapshot are found through older metadata files.
    """

    def __init__(self, io: FileIO, table: str, journal: Journal, metadata: TableMetadata) -> None:
        self._io = io
        self._table = table
        self._journal = journal
        self._metadata = metadata
        prepared = journal.step(Step.PREPARED) or {}
        self._first: int | None = prepared.get("snapshot-id")
        self._first_location: str | None = prepared.get("metadata-location")
        self._migrated = self._migrated_snapshot()
        try:
            # Whoever may write metadata may leave files out of it, but not out of a journal.
            stated = (one.location for page in kept_files(journal) for one in page)
            self._kept = self._digests(chain(self.old(), stated))
        except (NoSuchFileError, CorruptFileError) as error:
            raise self._unknown(error.message) from error

    def old(self) -> Iterator[str]:
        """Yield the data files of the migration."""
        if self._migrated is not None:
            yield from _files(self._io, self._migrated, set())
        yield from self._journal.added()

    def since(self, folders: Iterable[str], *, deep: bool) -> list[str]:
        """Return the files written since the migration that Hive's readers would see.

        Args:
            deep: Whether they read subfolders, too.
        """
        roots = [folder.rstrip("/") for folder in folders]
        visible = self._digests(roots)
        (root, *_) = self._plain(roots[:1]) if deep else ("",)

        def new(names: Iterable[str]) -> Iterator[tuple[str, str]]:
            for page, plain in self._pages(names):
                old = self._kept.among(list(map(digest, plain)))
                for name, one, is_old in zip(page, plain, old, strict=True):
                    seen = one.startswith(f"{root}/") if deep else _folder(one) in visible
                    if seen and not is_old:
                        yield name, one

        snapshots, complete = self._snapshots()
        found: dict[str, str] = {}
        read: set[str] = set()

        def take(snapshot: Snapshot) -> bool:
            try:
                found.update(new(_files(self._io, snapshot, read)))
            except (NoSuchFileError, CorruptFileError):
                return False
            return True

        taken = [take(snapshot) for snapshot in snapshots]
        complete = complete and all(taken)
        if not complete:
            known = set(found.values())
            strangers = dict(new(self._listed(roots)))
            self._check(sorted(name for name, plain in strangers.items() if plain not in known))
        return sorted(found)

    def _digests(self, locations: Iterable[str]) -> DigestSet:
        plain = (one for _, some in self._pages(locations) for one in some)
        return DigestSet(b"".join(map(digest, plain)))

    def _pages(self, locations: Iterable[str]) -> Iterator[tuple[list[str], list[str]]]:
        """Yield pages of locations, each with their normalized spellings."""
        left = iter(locations)
        while page := list(islice(left, _PAGE)):
            yield page, self._plain(page)

    def _migrated_snapshot(self) -> Snapshot | None:
        if self._first is None:
            return None
        try:
            snapshot = self._metadata.snapshot_by_id(self._first) or self._of_first_file()
        except (NoSuchFileError, CorruptFileError) as error:
            raise self._unknown(error.message) from error
        if snapshot is None:
            raise self._unknown(f"{self._first_location} does not have it")
        return snapshot

    def _of_first_file(self) -> Snapshot | None:
        from icecomb.format.spec.metadata_file import read_metadata

        if self._first is None or self._first_location is None:
            return None
        return read_metadata(self._io, self._first_location).snapshot_by_id(self._first)

    def _snapshots(self) -> tuple[list[Snapshot], bool]:
        """Return the known snapshots since the migration, and whether these are all."""
        from icecomb.format.spec.metadata_file import read_named_metadata

        found = {one.snapshot_id: one for one in self._metadata.snapshots}
        if not self._has_all(found.values()):
            log = [entry.metadata_file for entry in self._metadata.metadata_log]
            for location in dict.fromkeys([*log, self._first_location]):
                with suppress(NoSuchFileError, CorruptFileError):
                    if location is not None:
                        older = read_named_metadata(self._io, location, self._journal.location)
                        for one in older.snapshots:
                            found.setdefault(one.snapshot_id, one)
        complete = self._has_all(found.values())
        return [one for one in found.values() if one.snapshot_id != self._first], complete

    def _has_all(self, snapshots: Iterable[Snapshot]) -> bool:
        """Return whether there is a snapshot for every assigned sequence number."""
        if self._metadata.format_version == 1:
            return False
        numbers = {one.sequence_number for one in snapshots}
        return numbers.issuperset(range(1, self._metadata.last_sequence_number + 1))

    def _listed(self, folders: Iterable[str]) -> Iterator[str]:
        """Yield the files in folders that Hive's readers read and revert does not set aside."""
        writing = self._journal.step(Step.WRITING) or {}
        aside = f"{writing.get('folder', '')}/"
        for folder in folders:
            for status in self._io.list(folder):
                below = status.location[len(folder) + 1 :].split("/")
                hidden = any(part.startswith(("_", ".")) for part in below)
                if status.size and not hidden and not status.location.startswith(aside):
                    yield status.location

    def _check(self, strangers: list[str]) -> None:
        if not strangers:
            return
        shown = ", ".join(strangers[:_SHOWN]) + (", ..." if len(strangers) > _SHOWN else "")
        raise MigrationError(
            f"{self._table} cannot be reverted: {len(strangers)} files are where Hive reads them, "
            "and as snapshots were expired, it is unknown whether they were written since the "
            f"migration: {shown}",
            hint="Move them away, revert, and move those back that Hive wrote.",
            table=self._table,
        )

    def _plain(self, locations: list[str]) -> list[str]:
        """Normalize locations: an old file may have been added again under another spelling."""
        from icecomb.format.storage.location import plain_texts

        return plain_texts(locations, self._io.properties, any_cluster=True)

    def _unknown(self, reason: str) -> MigrationError:
        return MigrationError(
            f"{self._table} cannot be reverted: it is unknown which files are the Hive table's: "
            f"the migration's snapshot {self._first} was expired, and {reason}",
            hint="Restore that file from a backup, or copy the rows into a new Hive table; "
            f"`{shell_command('migrate', 'finalize', self._table)}` gives up the way back, and "
            "keeps this table.",
            table=self._table,
        )


def _files(io: FileIO, snapshot: Snapshot, read: set[str]) -> Iterator[str]:
    """Yield all files of a snapshot's manifests, also deleted ones; skip manifests in `read`."""
    from icecomb.format.manifests.manifest_list import read_manifests

    for manifest in read_manifests(io, snapshot):
        if manifest.manifest_path not in read:
            for entry in manifest.fetch_manifest_entry(io, discard_deleted=False):
                yield entry.data_file.file_path
            read.add(manifest.manifest_path)


def _folder(location: str) -> str:
    return location.rpartition("/")[0]
