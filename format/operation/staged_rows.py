"""The files that a snapshot added, and whether the columns of the table still take their rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icecomb.format.errors import ValidationError
from icecomb.format.manifests.manifest import ManifestContent, ManifestEntryStatus
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.manifests.reader import read_each, read_manifest
from icecomb.format.operation.snapshot_producer import WrittenWith
from icecomb.format.spec.column_history import schema_of
from icecomb.format.spec.snapshot import Operation

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from icecomb.format.manifests.manifest import ManifestEntry, ManifestFile
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.snapshot import Snapshot
    from icecomb.format.storage.file_io import FileIO


def own_entries(io: FileIO, base: TableMetadata, snapshot: Snapshot) -> Iterator[ManifestEntry]:
    """Yield the entries of data files that a snapshot added or removed."""
    # a list of format version 1 may not say who added a manifest
    owners = {None, snapshot.snapshot_id}
    own = [
        manifest
        for manifest in read_manifests(io, snapshot)
        if manifest.added_snapshot_id in owners and manifest.content is ManifestContent.DATA
    ]

    def read(manifest: ManifestFile) -> list[ManifestEntry]:
        spec = base.spec_by_id(manifest.partition_spec_id)
        return list(read_manifest(io, manifest, spec=spec))

    for entries in read_each(io, own, read):
        for entry in entries:
            if entry.snapshot_id == snapshot.snapshot_id:
                yield entry


def check_staged_rows(io: FileIO, base: TableMetadata, snapshots: Iterable[Snapshot]) -> None:
    """Refuse snapshots for `main` whose rows may lack values of columns that became required."""
    for snapshot in snapshots:
        written = schema_of(base, snapshot)
        # the rows of a rewrite were in the table before
        if written is None or snapshot.operation == Operation.REPLACE:
            continue
        rule = WrittenWith(written, {})
        if rule.lacks_required(base):
            added = [
                entry.data_file
                for entry in own_entries(io, base, snapshot)
                if entry.status is ManifestEntryStatus.ADDED
            ]
            if lacking := rule.lacking(base, added):
                raise ValidationError(
                    f"Cannot bring the rows of snapshot {snapshot.snapshot_id} to main: {lacking}",
                    hint="Write the rows again with values there, or make the column optional.",
                    snapshot_id=snapshot.snapshot_id,
                )
