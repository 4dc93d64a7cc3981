"""Reapplying the changes of a snapshot that the table's metadata no longer has."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from icecomb.format.errors import (
    AlreadyPublishedError,
    NoSuchFileError,
    ValidationError,
)
from icecomb.format.manifests.manifest import ManifestContent
from icecomb.format.operation.cherry_pick import CherryPick
from icecomb.format.operation.conflict import History
from icecomb.format.operation.snapshot_producer import WrittenWith
from icecomb.format.property.table_property import NAME_MAPPING
from icecomb.format.spec.column_history import SOURCE_SNAPSHOT, schema_of
from icecomb.format.spec.metadata import existing_snapshot
from icecomb.format.spec.snapshot import NO_PARENT, ancestors_of

if TYPE_CHECKING:
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.schema import Schema
    from icecomb.format.spec.snapshot import Snapshot
    from icecomb.format.storage.file_io import FileIO


class Reapplication(CherryPick):
    """A cherry-pick of a snapshot from lost metadata, which no later commit was based on.

    All commits to `main` since the common ancestor `before` are searched, so that no change is made
    twice: the pick is refused if some of them have expired.
    """

    def __init__(
        self, io: FileIO, snapshot_id: int, lost: TableMetadata, before: TableMetadata
    ) -> None:
        super().__init__(io, snapshot_id)
        self._lost = lost
        self._before = before
        self._are_there = False

    def _find(self, base: TableMetadata) -> Snapshot:  # noqa: ARG002 - the table does not have it
        return existing_snapshot(self._lost, self.picked_id, "The lost metadata has")

    def _check_rows(self, base: TableMetadata, picked: Snapshot) -> None:
        written = self._written_schema(picked)
        used = {file.spec_id for file in self.added[ManifestContent.DATA].values()}
        written_with = WrittenWith(
            written, {number: self._lost.spec_by_id(number) for number in used}
        )
        written_with.check(base)
        written_with.check_nulls(base, self.added_data_files)
        self._check_names(base)
        self._check_files()

    def _take(self, base: TableMetadata, picked: Snapshot) -> None:
        # a column added since by another writer may have the id of a lost one
        if self._written_schema(picked) not in (*self._before.schemas, *base.schemas):
            raise ValidationError(
                f"Cannot bring back snapshot {self.picked_id}: the commit that changed the columns "
                "of its files is lost, too",
                hint="Change the columns again, and write its rows to the table again.",
                snapshot_id=self.picked_id,
            )
        self._check_descent(picked)
        super()._take(base, picked)
        # the table does not have the snapshot, which names the one it was picked from
        if source := picked.summary.get(SOURCE_SNAPSHOT):
            self._own_properties[SOURCE_SNAPSHOT] = source
        # a sort order added since by another writer may have the id of a lost one
        known = {one.order_id for one in self._lost.sort_orders if one in self._before.sort_orders}
        files = self.added[ManifestContent.DATA]
        for identity, file in files.items():
            if file.sort_order_id not in known:
                files[identity] = replace(file, sort_order_id=None)

    def _check_names(self, base: TableMetadata) -> None:
        """Refuse files that may lack field ids if they would be read by other names, or by none."""
        names = self._lost.name_mapping()
        if names not in {None, self._before.name_mapping(), base.name_mapping()}:
            raise ValidationError(
                f"Cannot bring back snapshot {self.picked_id}: the change of {NAME_MAPPING.key} is "
                "lost, too, by which its files without field ids are read",
                hint="Add its files by Table.add_files; or set the property as it was there, check "
                "that the table's other files are read correctly, and try again.",
                snapshot_id=self.picked_id,
            )

    def _check_descent(self, picked: Snapshot) -> None:
        """Refuse a snapshot not descended from the common one, as it may have replaced rows."""
        start = self._before.current_snapshot_id
        parents = {one.parent_snapshot_id for one in ancestors_of(self._lost, picked.snapshot_id)}
        if start in parents or (start is None and NO_PARENT in parents):
            return
        raise ValidationError(
            f"Cannot bring back snapshot {self.picked_id}: it was not made on snapshot {start}, "
            "the last that the table and the lost metadata have in common, or its descendants: "
            "the table was replaced or rolled back before it, or snapshots have expired since",
            hint="Look at its rows (icecomb register), and make the change again; where snapshots "
            "have expired, name the metadata files of the lost commits, the oldest first.",
            snapshot_id=self.picked_id,
        )

    def _check_not_there(self, base: TableMetadata, picked: Snapshot) -> None:
        history = History(self.io, base, base.current_snapshot(), self._before.current_snapshot_id)
        paths = self._paths()
        # including those that were removed since: their rows were in the table
        there = history.added(paths)
        if paths and len(there) == len(paths):
            raise AlreadyPublishedError(
                f"The {len(paths)} files that snapshot {self.picked_id} added were added by other "
                "commits since, for example by a retry of its writer",
                hint="Its changes were made: nothing to do.",
                snapshot_id=self.picked_id,
            )
        if there:
            raise ValidationError(
                f"Cannot bring back snapshot {self.picked_id}: {len(there)} of the {len(paths)} "
                f"files that it added were added by other commits since, such as {min(there)}",
                hint="Add the files whose rows are missing by hand (Table.add_files).",
                snapshot_id=self.picked_id,
            )
        super()._check_not_there(base, picked)

    def _written_schema(self, picked: Snapshot) -> Schema:
        return schema_of(self._lost, picked) or self._lost.schema()

    def _check_files(self) -> None:
        paths = self._paths()
        if self._are_there or not paths:
            return
        found = self.io.each(paths[0], self.io.exists, paths)
        gone = [path for path, exists in zip(paths, found, strict=True) if not exists]
        if gone:
            raise NoSuchFileError(
                f"Cannot bring back snapshot {self.picked_id}: {len(gone)} of the {len(paths)} "
                f"files that it added do not exist any more, such as {gone[0]}",
                hint="Their rows are lost with them; write them to the table again.",
                path=gone[0],
                snapshot_id=self.picked_id,
            )
        self._are_there = True

    def _paths(self) -> list[str]:
        return [file.file_path for file in self.added[ManifestContent.DATA].values()]
