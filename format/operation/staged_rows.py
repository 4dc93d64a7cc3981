"""The files that a snapshot added, and whether the columns of the table still take their rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icecomb.format.errors import ValidationError
from icecomb.format.manifests.manifest import (
    ManifestContent,
    ManifestEntryStatus,
    ManifestFile,
)
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.manifests.reader import read_each, read_manifest
from icecomb.format.operation.snapshot_producer import WrittenWith
from icecomb.format.spec.column_history import schema_of
from icecomb.format.spec.snapshot import NO_PARENT, Operation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from icecomb.format.manifests.manifest import DataFile, ManifestEntry
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.snapshot import Snapshot
    from icecomb.format.storage.file_io import FileIO


def own_entries(io: FileIO, base: TableMetadata, snapshot: Snapshot) -> Iterator[ManifestEntry]:
    """Yield the entries of data files that a snapshot added or removed."""
    # a list of format version 1 may not say who added a manifest
    owners = {None, snapshot.snapshot_id}
    for entry in _entries(io, base, snapshot, lambda one: one.added_snapshot_id in owners):
        if entry.snapshot_id == snapshot.snapshot_id:
            yield entry


def _entries(
    io: FileIO, base: TableMetadata, snapshot: Snapshot, wanted: Callable[[ManifestFile], bool]
) -> Iterator[ManifestEntry]:
    """Yield the entries of a snapshot's data manifests that are wanted."""
    manifests = [
        manifest
        for manifest in read_manifests(io, snapshot)
        if manifest.content is ManifestContent.DATA and wanted(manifest)
    ]

    def read(manifest: ManifestFile) -> list[ManifestEntry]:
        spec = base.spec_by_id(manifest.partition_spec_id)
        return list(read_manifest(io, manifest, spec=spec))

    for entries in read_each(io, manifests, read):
        yield from entries


def check_staged_rows(
    io: FileIO,
    base: TableMetadata,
    snapshots: Iterable[Snapshot],
    *,
    with_expired: bool = False,
) -> None:
    """Refuse snapshots for `main` whose rows may lack values of columns that became required.

    Args:
        with_expired: Whether `main` gets the rows of their expired ancestors, too.
    """
    for snapshot in snapshots:
        written = schema_of(base, snapshot)
        parent = snapshot.parent_snapshot_id
        is_cut = parent is not None and parent != NO_PARENT and not base.has_snapshot(parent)
        whole = with_expired and is_cut
        # the rows of a rewrite were in the table before
        if written is None or (snapshot.operation == Operation.REPLACE and not whole):
            continue
        rule = WrittenWith(written, {})
        if rule.lacks_required(base):
            added = (
                _new_to_main(io, base, snapshot)
                if whole
                else [
                    entry.data_file
                    for entry in own_entries(io, base, snapshot)
                    if entry.status is ManifestEntryStatus.ADDED
                ]
            )
            if lacking := rule.lacking(base, added):
                raise ValidationError(
                    f"Cannot bring the rows of snapshot {snapshot.snapshot_id} to main: {lacking}",
                    hint="Write the rows again with values there, or make the column optional.",
                    snapshot_id=snapshot.snapshot_id,
                )


def _new_to_main(io: FileIO, base: TableMetadata, snapshot: Snapshot) -> list[DataFile]:
    """Return the data files of a snapshot that `main` does not have."""
    main = base.current_snapshot()
    known = set[str]()
    if main is not None:
        known.update(entry.data_file.file_path for entry in _live(io, base, main))
    found = (entry.data_file for entry in _live(io, base, snapshot))
    return [file for file in found if file.file_path not in known]


def _live(io: FileIO, base: TableMetadata, snapshot: Snapshot) -> Iterator[ManifestEntry]:
    entries = _entries(io, base, snapshot, ManifestFile.has_live_files)
    return (entry for entry in entries if entry.status is not ManifestEntryStatus.DELETED)
