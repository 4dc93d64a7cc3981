"""Applying to `main` the changes of a snapshot that is not part of it, such as a staged one."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING

import pyarrow as pa

from icecomb.format.argument import MAX_LONG, checked_int
from icecomb.format.errors import ValidationError
from icecomb.format.manifests.manifest import ManifestContent, ManifestEntryStatus
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.manifests.reader import read_each_columns
from icecomb.format.operation.file_addition import FileTwins
from icecomb.format.operation.merging import MergingProducer
from icecomb.format.operation.overwrite import has_other_specs, partition_rows
from icecomb.format.operation.publication import (
    batch_keys,
    check_not_picked,
    may_be_hidden,
    noted_publications,
    wap_id_of,
)
from icecomb.format.operation.snapshot_producer import (
    ONTO_PARENT,
    PUBLISHED_WAP_ID,
    check_moved,
    parent_manifests,
)
from icecomb.format.operation.staged_rows import check_staged_rows, own_entries
from icecomb.format.spec.change.requirement import AssertRefSnapshotId, AssertTableUUID
from icecomb.format.spec.change.update import Changes, SetSnapshotRefUpdate
from icecomb.format.spec.column_history import SOURCE_SNAPSHOT, schema_of
from icecomb.format.spec.metadata import existing_snapshot
from icecomb.format.spec.snapshot import (
    MAIN_BRANCH,
    Operation,
    SnapshotRef,
    ancestors_of,
    is_ancestor,
)
from icecomb.format.storage.location import linked_texts

if TYPE_CHECKING:
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.snapshot import Snapshot
    from icecomb.format.storage.file_io import FileIO


class CherryPick(MergingProducer):
    """A cherry-pick, which repeats a snapshot's changes on `main`.

    A snapshot built on the head of `main` becomes its head. Otherwise appended files are appended,
    and replaced partitions are replaced unless they were changed meanwhile; other changes cannot be
    picked, nor rows that were added because they were missing.
    """

    def __init__(self, io: FileIO, snapshot_id: int) -> None:
        super().__init__(io)
        self.picked_id = checked_int("snapshot_id", snapshot_id, -MAX_LONG - 1, MAX_LONG)
        self._picked: Snapshot | None = None
        self._own_properties: dict[str, str] = {}

    @property
    def operation(self) -> str:
        """The operation of the picked snapshot."""
        return (self._picked.operation if self._picked else None) or Operation.APPEND

    def apply(self, base: TableMetadata) -> Changes:
        picked = self._prepared(base)
        if _is_next(base, picked):
            return _noted(base, picked, _fast_forward(base, picked))
        return _noted(base, picked, super().apply(base))

    def check(self, base: TableMetadata) -> None:
        """Refuse what `apply` refuses, without writing anything."""
        if not _is_next(base, self._prepared(base)):
            self.validate(base, self._parent(base))

    def _prepared(self, base: TableMetadata) -> Snapshot:
        """Return the snapshot to pick after collecting its changes, or refuse it."""
        picked = self._find(base)
        check_not_picked(base, picked)
        check_moved(
            base,
            picked,
            f"Cannot cherry-pick snapshot {self.picked_id}, which is of an older table",
            "Read it by its id, and write its rows to the table again.",
        )
        if not _is_next(base, picked):
            if self._picked is None:
                self._take(base, picked)
            self._check_not_there(base, picked)
            self.snapshot_properties = {**self._own_properties, **batch_keys(base, picked)}
        self._check_rows(base, picked)
        return picked

    def _check_rows(self, base: TableMetadata, picked: Snapshot) -> None:
        """Refuse rows that the table's columns do not take any more."""
        check_staged_rows(self.io, base, [picked])

    def _find(self, base: TableMetadata) -> Snapshot:
        return existing_snapshot(base, self.picked_id)

    def validate(self, base: TableMetadata, parent: Snapshot | None) -> None:
        super().validate(base, parent)
        if self.operation == Operation.OVERWRITE:
            # not a set, which would take 0.0 and -0.0 for one partition
            files = self.added_data_files
            partitions = [(file.spec_id, file.partition) for file in files]
            history = self.since_start(base, parent)
            manifests = parent_manifests(self.io, base, parent)
            if has_other_specs(manifests, [file.spec_id for file in files]):
                schema = self._schema or base.schema()
                history.no_new_data(self.rows(base, partition_rows(base, schema, files)))
            else:
                history.no_new_data(partitions=partitions)
            history.files_exist(self.removed_data_files)

    def _take(self, base: TableMetadata, picked: Snapshot) -> None:
        """Collect what the snapshot added and removed."""
        self.name_columns_by(schema_of(base, picked) or base.schema())
        replaced = picked.summary.get("replace-partitions") == "true"
        if picked.operation == Operation.OVERWRITE and replaced:
            parent = picked.parent_snapshot_id
            if parent is not None and not is_ancestor(base, parent, base.current_snapshot_id):
                raise ValidationError(
                    f"Cannot cherry-pick snapshot {self.picked_id}: it replaces partitions, and "
                    "is not based on an ancestor of the current snapshot",
                    hint="Write the change again on the current snapshot.",
                    snapshot_id=self.picked_id,
                )
            self._require_removed()
        elif picked.summary.get(ONTO_PARENT) == "true":
            raise ValidationError(
                f"Cannot cherry-pick snapshot {self.picked_id}: its rows depend on the rows that "
                "the table had when it was made, and it was not built on the current snapshot",
                hint="Make the change again on the current state of the table.",
            )
        elif picked.operation != Operation.APPEND:
            raise ValidationError(
                f"Cannot cherry-pick snapshot {self.picked_id}: it is not an append, does not "
                "replace partitions, and was not built on the current snapshot",
                hint="Make the change again on the current state of the table.",
            )
        self.validate_from_snapshot(picked.parent_snapshot_id)
        self._collect(base, picked)
        if wap_id := wap_id_of(picked):
            self.snapshot_properties[PUBLISHED_WAP_ID] = wap_id
        self.snapshot_properties[SOURCE_SNAPSHOT] = str(self.picked_id)
        self._own_properties = dict(self.snapshot_properties)
        self._picked = picked

    def _collect(self, base: TableMetadata, picked: Snapshot) -> None:
        for entry in own_entries(self.io.to_copy(), base, picked):
            if entry.status is ManifestEntryStatus.ADDED:
                self._add(entry.data_file, ManifestContent.DATA)
            elif entry.status is ManifestEntryStatus.DELETED:
                self._remove(entry.data_file)

    def _check_not_there(self, base: TableMetadata, picked: Snapshot) -> None:
        """Refuse to add files that `main` already has: published long ago, or added again."""
        head = base.current_snapshot()
        names = [file.file_path for file in self.added[ManifestContent.DATA].values()]
        if head is None or not names:
            return
        properties = self.io.properties
        added = set(linked_texts(names, properties))
        manifests = [m for m in read_manifests(self.io, head) if m.content is ManifestContent.DATA]
        if not may_be_hidden(base, picked):
            # older files were checked when the snapshot was made
            line = takewhile(
                lambda found: found.snapshot_id != picked.parent_snapshot_id,
                ancestors_of(base, head.snapshot_id),
            )
            since = {None, *(found.snapshot_id for found in line)}
            manifests = [m for m in manifests if m.added_snapshot_id in since]
        files = self.added[ManifestContent.DATA].values()
        twins = FileTwins(self.io, {file.file_path: file for file in files})
        for columns in read_each_columns(self.io, manifests, base.spec_by_id):
            locations = columns.column("file_path").filter(columns.live)
            normal = linked_texts(locations, properties)
            twins.check(columns, pa.array(normal, pa.string()))
            if there := added.intersection(normal):
                raise ValidationError(
                    f"Cannot cherry-pick snapshot {self.picked_id}: {len(there)} of the "
                    f"{len(added)} files that it added are in the table already, such as "
                    f"{min(there)}",
                    hint="It was published before, or another change added them. Nothing to do; "
                    "add the missing files again, if any are missing.",
                    snapshot_id=self.picked_id,
                )


def _is_next(base: TableMetadata, picked: Snapshot) -> bool:
    """Return whether `main` can simply move to a snapshot, because it was built on its head."""
    return picked.parent_snapshot_id == base.current_snapshot_id and base.has_snapshot(
        picked.snapshot_id
    )


def _noted(base: TableMetadata, picked: Snapshot, changes: Changes) -> Changes:
    """Return the changes together with a note of what they publish."""
    return Changes(changes.requirements, (*changes.updates, noted_publications(base, picked)))


def _fast_forward(base: TableMetadata, picked: Snapshot) -> Changes:
    ref = base.refs.get(MAIN_BRANCH) or SnapshotRef(picked.snapshot_id)
    moved = replace(ref, snapshot_id=picked.snapshot_id)
    return Changes(
        (
            AssertTableUUID(base.table_uuid),
            AssertRefSnapshotId(MAIN_BRANCH, base.current_snapshot_id),
        ),
        (SetSnapshotRefUpdate.of(MAIN_BRANCH, moved),),
    )
