"""Changes of a table as data: updates that are applied to metadata to give new metadata.

A commit is a tuple of requirements that must hold and a tuple of updates, so it can be repeated on
newer metadata, sent elsewhere, or inspected. `icecomb.format.spec.change.metadata_builder`
implements the updates.
"""

from __future__ import annotations

import uuid as uuids
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from icecomb.format.spec.change.metadata_builder import LAST_ADDED, MetadataBuilder
from icecomb.format.spec.snapshot import SnapshotRef, ref_type

if TYPE_CHECKING:
    from icecomb.format.spec.change.requirement import TableRequirement
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.partition import PartitionSpec
    from icecomb.format.spec.schema import Schema
    from icecomb.format.spec.snapshot import Snapshot
    from icecomb.format.spec.sort import SortOrder

__all__ = [
    "LAST_ADDED",
    "AddPartitionSpecUpdate",
    "AddSchemaUpdate",
    "AddSnapshotUpdate",
    "AddSortOrderUpdate",
    "AssignUUIDUpdate",
    "Changes",
    "RemovePartitionSpecsUpdate",
    "RemovePartitionStatisticsUpdate",
    "RemovePropertiesUpdate",
    "RemoveSchemasUpdate",
    "RemoveSnapshotRefUpdate",
    "RemoveSnapshotsUpdate",
    "RemoveStatisticsUpdate",
    "SetCurrentSchemaUpdate",
    "SetDefaultSortOrderUpdate",
    "SetDefaultSpecUpdate",
    "SetLocationUpdate",
    "SetPartitionStatisticsUpdate",
    "SetPropertiesUpdate",
    "SetSnapshotRefUpdate",
    "SetStatisticsUpdate",
    "TableUpdate",
    "UpgradeFormatVersionUpdate",
    "update_table_metadata",
]


class TableUpdate(Protocol):
    """A change of a table."""

    __slots__ = ()

    def apply(self, builder: MetadataBuilder) -> None:
        """Make the change."""
        ...


@dataclass(frozen=True, slots=True)
class Changes:
    """The requirements and updates of a commit.

    Attributes:
        requirements: Conditions on the table's current metadata.
        updates: Updates to apply to it, in order.
    """

    requirements: tuple[TableRequirement, ...] = ()
    updates: tuple[TableUpdate, ...] = ()

    def __add__(self, other: Changes) -> Changes:
        """Return the changes of both, this one's first."""
        return Changes(self.requirements + other.requirements, self.updates + other.updates)


def update_table_metadata(
    base: TableMetadata,
    updates: Iterable[TableUpdate],
    *,
    base_location: str | None = None,
    now_ms: int | None = None,
) -> TableMetadata:
    """Apply updates to metadata, and maintain its logs.

    Args:
        base: The metadata to apply the updates to; it is not changed.
        updates: The updates to apply in order, all or none.
        base_location: The metadata file of the base; it is added to the metadata log, which is
            trimmed to `write.metadata.previous-versions-max` entries.
        now_ms: The time of the change in milliseconds since the epoch; by default the clock's.

    Returns:
        The new metadata, or `base` itself when no update changed anything.

    Raises:
        ValidationError: If an update does not fit the table.
    """
    builder = MetadataBuilder(base, now_ms)
    for update in updates:
        update.apply(builder)
    return builder.build(base_location)


@dataclass(frozen=True, slots=True)
class AssignUUIDUpdate(TableUpdate):
    """The update that sets the table's UUID."""

    uuid: uuids.UUID

    def apply(self, builder: MetadataBuilder) -> None:
        builder.assign_uuid(self.uuid)


@dataclass(frozen=True, slots=True)
class UpgradeFormatVersionUpdate(TableUpdate):
    """The update that raises the format version; existing snapshots have sequence number 0."""

    format_version: int

    def apply(self, builder: MetadataBuilder) -> None:
        builder.upgrade_format_version(self.format_version)


@dataclass(frozen=True, slots=True)
class AddSchemaUpdate(TableUpdate):
    """The update that adds a schema under the next id, or reuses one with the same fields.

    Attributes:
        schema: The schema.
        last_column_id: An id that later columns must exceed, as files have it already.
    """

    schema: Schema
    last_column_id: int = 0

    def apply(self, builder: MetadataBuilder) -> None:
        builder.add_schema(self.schema, self.last_column_id)


@dataclass(frozen=True, slots=True)
class SetCurrentSchemaUpdate(TableUpdate):
    """The update that makes a schema the current one; -1 means the one added last."""

    schema_id: int = LAST_ADDED

    def apply(self, builder: MetadataBuilder) -> None:
        builder.set_current_schema(self.schema_id)


@dataclass(frozen=True, slots=True)
class RemoveSchemasUpdate(TableUpdate):
    """The update that removes schemas that nothing needs anymore."""

    schema_ids: tuple[int, ...]

    def apply(self, builder: MetadataBuilder) -> None:
        builder.remove_schemas(frozenset(self.schema_ids))


@dataclass(frozen=True, slots=True)
class AddPartitionSpecUpdate(TableUpdate):
    """The update that adds a partition spec under the next id, or reuses one of the same fields."""

    spec: PartitionSpec

    def apply(self, builder: MetadataBuilder) -> None:
        builder.add_partition_spec(self.spec)


@dataclass(frozen=True, slots=True)
class SetDefaultSpecUpdate(TableUpdate):
    """The update that makes a partition spec the default; -1 means the one added last."""

    spec_id: int = LAST_ADDED

    def apply(self, builder: MetadataBuilder) -> None:
        builder.set_default_spec(self.spec_id)


@dataclass(frozen=True, slots=True)
class RemovePartitionSpecsUpdate(TableUpdate):
    """The update that removes partition specs that no file uses anymore."""

    spec_ids: tuple[int, ...]

    def apply(self, builder: MetadataBuilder) -> None:
        builder.remove_partition_specs(frozenset(self.spec_ids))


@dataclass(frozen=True, slots=True)
class AddSortOrderUpdate(TableUpdate):
    """The update that adds a sort order under the next id, or reuses one of the same fields."""

    sort_order: SortOrder

    def apply(self, builder: MetadataBuilder) -> None:
        builder.add_sort_order(self.sort_order)


@dataclass(frozen=True, slots=True)
class SetDefaultSortOrderUpdate(TableUpdate):
    """The update that makes a sort order the default; -1 means the one added last."""

    sort_order_id: int = LAST_ADDED

    def apply(self, builder: MetadataBuilder) -> None:
        builder.set_default_sort_order(self.sort_order_id)


@dataclass(frozen=True, slots=True)
class AddSnapshotUpdate(TableUpdate):
    """The update that adds a snapshot, which is visible once a branch or tag points to it."""

    snapshot: Snapshot

    def apply(self, builder: MetadataBuilder) -> None:
        builder.add_snapshot(self.snapshot)


@dataclass(frozen=True, slots=True)
class SetSnapshotRefUpdate(TableUpdate):
    """The update that points a branch or tag to a snapshot."""

    ref_name: str
    type: str
    snapshot_id: int
    max_ref_age_ms: int | None = None
    max_snapshot_age_ms: int | None = None
    min_snapshots_to_keep: int | None = None

    @classmethod
    def of(cls, name: str, ref: SnapshotRef) -> SetSnapshotRefUpdate:
        """Return the update that sets a branch or tag to ``ref``."""
        return cls(
            name,
            ref.snapshot_ref_type.value,
            ref.snapshot_id,
            ref.max_ref_age_ms,
            ref.max_snapshot_age_ms,
            ref.min_snapshots_to_keep,
        )

    def apply(self, builder: MetadataBuilder) -> None:
        ref = SnapshotRef(
            self.snapshot_id,
            ref_type(self.type),
            self.min_snapshots_to_keep,
            self.max_snapshot_age_ms,
            self.max_ref_age_ms,
        )
        builder.set_ref(self.ref_name, ref)


@dataclass(frozen=True, slots=True)
class RemoveSnapshotRefUpdate(TableUpdate):
    """The update that removes a branch or tag; without `main` the table is empty."""

    ref_name: str

    def apply(self, builder: MetadataBuilder) -> None:
        builder.remove_ref(self.ref_name)


@dataclass(frozen=True, slots=True)
class RemoveSnapshotsUpdate(TableUpdate):
    """The update that removes snapshots, and the snapshot log's entries before a gap.

    Branches and tags that point to one of them are removed; without `main` the table is empty.
    """

    snapshot_ids: tuple[int, ...]

    def apply(self, builder: MetadataBuilder) -> None:
        builder.remove_snapshots(frozenset(self.snapshot_ids))


@dataclass(frozen=True, slots=True)
class SetLocationUpdate(TableUpdate):
    """The update that moves the base location for new files; existing files are not moved."""

    location: str

    def apply(self, builder: MetadataBuilder) -> None:
        builder.set_location(self.location)


@dataclass(frozen=True, slots=True)
class SetPropertiesUpdate(TableUpdate):
    """The update that sets properties; reserved ones describe the table and cannot be set."""

    updates: Mapping[str, str]

    def apply(self, builder: MetadataBuilder) -> None:
        builder.set_properties(self.updates)


@dataclass(frozen=True, slots=True)
class RemovePropertiesUpdate(TableUpdate):
    """The update that removes properties; missing ones are ignored."""

    removals: tuple[str, ...]

    def apply(self, builder: MetadataBuilder) -> None:
        builder.remove_properties(frozenset(self.removals))


@dataclass(frozen=True, slots=True)
class SetStatisticsUpdate(TableUpdate):
    """The update that sets a snapshot's statistics file, a JSON object with its `snapshot-id`."""

    statistics: Mapping[str, Any]

    def apply(self, builder: MetadataBuilder) -> None:
        builder.set_statistics("statistics", self.statistics)


@dataclass(frozen=True, slots=True)
class RemoveStatisticsUpdate(TableUpdate):
    """The update that removes the statistics file of a snapshot."""

    snapshot_id: int

    def apply(self, builder: MetadataBuilder) -> None:
        builder.remove_statistics("statistics", frozenset((self.snapshot_id,)))


@dataclass(frozen=True, slots=True)
class SetPartitionStatisticsUpdate(TableUpdate):
    """The update that sets a snapshot's partition statistics file.

    The file is a JSON object with its `snapshot-id`.
    """

    partition_statistics: Mapping[str, Any]

    def apply(self, builder: MetadataBuilder) -> None:
        builder.set_statistics("partition_statistics", self.partition_statistics)


@dataclass(frozen=True, slots=True)
class RemovePartitionStatisticsUpdate(TableUpdate):
    """The update that removes the partition statistics file of a snapshot."""

    snapshot_id: int

    def apply(self, builder: MetadataBuilder) -> None:
        builder.remove_statistics("partition_statistics", frozenset((self.snapshot_id,)))
