"""Changes of a table as data: updates are folded over metadata and give new metadata.

A commit is a tuple of requirements that must hold and a tuple of updates; so it can be repeated on
newer metadata, sent elsewhere, or inspected. What an update does is in
`icecomb.format.spec.metadata_builder`.
"""

from __future__ import annotations

import uuid as uuids
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from icecomb.format.spec.metadata_builder import LAST_ADDED, MetadataBuilder
from icecomb.format.spec.snapshot import SnapshotRef, ref_type

if TYPE_CHECKING:
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.partition import PartitionSpec
    from icecomb.format.spec.requirement import TableRequirement
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
    """One change of a table."""

    def apply(self, builder: MetadataBuilder) -> None:
        """Make the change.

        Raises:
            ValidationError: The change does not fit the table.
        """
        ...


@dataclass(frozen=True, slots=True)
class Changes:
    """What a commit checks and what it does.

    Attributes:
        requirements: Must hold on the table's current metadata.
        updates: Are applied to it in order.
    """

    requirements: tuple[TableRequirement, ...] = ()
    updates: tuple[TableUpdate, ...] = ()

    def __add__(self, other: Changes) -> Changes:
        """Both, this one first."""
        return Changes(self.requirements + other.requirements, self.updates + other.updates)


def update_table_metadata(
    base: TableMetadata,
    updates: Iterable[TableUpdate],
    *,
    base_location: str | None = None,
    now_ms: int | None = None,
) -> TableMetadata:
    """Fold updates over metadata, and keep its logs.

    Args:
        base: The metadata the updates are applied to; it stays as it is.
        updates: Applied in order, all or none.
        base_location: The metadata file of the base; it is added to the metadata log, which is
            trimmed to `write.metadata.previous-versions-max` entries.
        now_ms: The time of the change in milliseconds since the epoch; the clock's by default.

    Returns:
        The new metadata, or `base` itself when no update changed anything.

    Raises:
        ValidationError: An update does not fit the table.
    """
    builder = MetadataBuilder(base, now_ms)
    for update in updates:
        update.apply(builder)
    return builder.build(base_location)


@dataclass(frozen=True, slots=True)
class AssignUUIDUpdate:
    """Give the table its identity."""

    uuid: uuids.UUID

    def apply(self, builder: MetadataBuilder) -> None:
        """See `TableUpdate.apply`."""
        builder.assign_uuid(self.uuid)


@dataclass(frozen=True, slots=True)
class UpgradeFormatVersionUpdate:
    """Raise the format version; sequence numbers of what exists are 0."""

    format_version: int

    def apply(self, builder: MetadataBuilder) -> None:
        """See `TableUpdate.apply`."""
        builder.upgrade_format_version(self.format_version)


@dataclass(frozen=True, slots=True)
class AddSchemaUpdate:
    """Add a schema under the next id; one with the same fields is used again.

    Attributes:
        schema: The schema.
        last_column_id: An id that no later column gets, nor any below it: files have it already.
    """

    schema: Schema
    last_column_id: int = 0

    def apply(self, builder: MetadataBuilder) -> None:
        """See `TableUpdate.apply`."""
        builder.add_schema(self.schema, self.last_column_id)


@dataclass(frozen=True, slots=True)
class SetCurrentSchemaUpdate:
    """Make a schema the current one; -1 is the one added last."""

    schema_id: int = LAST_ADDED

    def apply(self, builder: MetadataBuilder) -> None:
        """See `TableUpdate.apply`."""
        builder.set_current_schema(self.schema_id)


@dataclass(frozen=True, slots=True)
class RemoveSchemasUpdate:
    """Forget schemas that nothing needs any more."""

    schema_ids: tuple[int, ...]

    def apply(self, builder: MetadataBuilder) -> None:
        """See `TableUpdate.apply`."""
        builder.remove_schemas(frozenset(self.schema_ids))


@dataclass(frozen=True, slots=True)
class AddPartitionSpecUpdate:
    """Add a partition spec under the next id; one with the same fields is used again."""

    spec: PartitionSpec

    def apply(self, builder: MetadataBuilder) -> None:
        """See `TableUpdate.apply`."""
        builder.add_partition_spec(self.spec)


@dataclass(frozen=True, slots=True)
class SetDefaultSpecUpdate:
    """Make a partition spec the writers' one; -1 is the one added last."""

    spec_id: int = LAST_ADDED

    def apply(self, builder: MetadataBuilder) -> None:
        """See `TableUpdate.apply`."""
        builder.set_default_spec(self.spec_id)


@dataclass(frozen=True, slots=True)
class RemovePartitionSpecsUpdate:
    """Forget partition specs that no file is written with any more."""

    spec_ids: tuple[int, ...]

    def apply(self, builder: MetadataBuilder) -> None:
        """See `TableUpdate.apply`."""
        builder.remove_partition_specs(frozenset(self.spec_ids))


@dataclass(frozen=True, slots=True)
class AddSortOrderUpdate:
    """Add a sort order under the next id; one with the same fields is used again."""

    sort_order: SortOrder

    def apply(self, builder: MetadataBuilder) -> None:
        """See `TableUpdate.apply`."""
        builder.add_sort_order(self.sort_order)


@dataclass(frozen=True, slots=True)
class SetDefaultSortOrderUpdate:
    """Make a sort order the writers' one; -1 is the one added last."""

    sort_order_id: int = LAST_ADDED

    def apply(self, builder: MetadataBuilder) -> None:
        """See `TableUpdate.apply`."""
        builder.set_default_sort_order(self.sort_order_id)


@dataclass(frozen=True, slots=True)
class AddSnapshotUpdate:
    """Add a snapshot; it becomes visible when a branch or tag is set to it."""

    snapshot: Snapshot

    def apply(self, builder: MetadataBuilder) -> None:
        """See `TableUpdate.apply`."""
        builder.add_snapshot(self.snapshot)


@dataclass(frozen=True, slots=True)
class SetSnapshotRefUpdate:
    """Point a branch or a tag to a snapshot."""

    ref_name: str
    type: str
    snapshot_id: int
    max_ref_age_ms: int | None = None
    max_snapshot_age_ms: int | None = None
    min_snapshots_to_keep: int | None = None

    @classmethod
    def of(cls, name: str, ref: SnapshotRef) -> SetSnapshotRefUpdate:
        """The update that makes a branch or a tag what is given."""
        return cls(
            name,
            ref.snapshot_ref_type.value,
            ref.snapshot_id,
            ref.max_ref_age_ms,
            ref.max_snapshot_age_ms,
            ref.min_snapshots_to_keep,
        )

    def apply(self, builder: MetadataBuilder) -> None:
        """See `TableUpdate.apply`."""
        ref = SnapshotRef(
            self.snapshot_id,
            ref_type(self.type),
            self.min_snapshots_to_keep,
            self.max_snapshot_age_ms,
            self.max_ref_age_ms,
        )
        builder.set_ref(self.ref_name, ref)


@dataclass(frozen=True, slots=True)
class RemoveSnapshotRefUpdate:
    """Remove a branch or a tag; without `main` the table is empty."""

    ref_name: str

    def apply(self, builder: MetadataBuilder) -> None:
        """See `TableUpdate.apply`."""
        builder.remove_ref(self.ref_name)


@dataclass(frozen=True, slots=True)
class RemoveSnapshotsUpdate:
    """Forget snapshots; the snapshot log keeps no entry from before a gap.

    Branches and tags that point to one of them go, too; without `main` the table is empty.
    """

    snapshot_ids: tuple[int, ...]

    def apply(self, builder: MetadataBuilder) -> None:
        """See `TableUpdate.apply`."""
        builder.remove_snapshots(frozenset(self.snapshot_ids))


@dataclass(frozen=True, slots=True)
class SetLocationUpdate:
    """Move the base location for new files; existing ones stay where they are."""

    location: str

    def apply(self, builder: MetadataBuilder) -> None:
        """See `TableUpdate.apply`."""
        builder.set_location(self.location)


@dataclass(frozen=True, slots=True)
class SetPropertiesUpdate:
    """Set properties; reserved ones describe the table and cannot be set."""

    updates: Mapping[str, str]

    def apply(self, builder: MetadataBuilder) -> None:
        """See `TableUpdate.apply`."""
        builder.set_properties(self.updates)


@dataclass(frozen=True, slots=True)
class RemovePropertiesUpdate:
    """Remove properties; one that is not there is passed over."""

    removals: tuple[str, ...]

    def apply(self, builder: MetadataBuilder) -> None:
        """See `TableUpdate.apply`."""
        builder.remove_properties(frozenset(self.removals))


@dataclass(frozen=True, slots=True)
class SetStatisticsUpdate:
    """Set the statistics file of a snapshot, a JSON object with its `snapshot-id`."""

    statistics: Mapping[str, Any]

    def apply(self, builder: MetadataBuilder) -> None:
        """See `TableUpdate.apply`."""
        builder.set_statistics("statistics", self.statistics)


@dataclass(frozen=True, slots=True)
class RemoveStatisticsUpdate:
    """Forget the statistics file of a snapshot."""

    snapshot_id: int

    def apply(self, builder: MetadataBuilder) -> None:
        """See `TableUpdate.apply`."""
        builder.remove_statistics("statistics", frozenset((self.snapshot_id,)))


@dataclass(frozen=True, slots=True)
class SetPartitionStatisticsUpdate:
    """Set the partition statistics file of a snapshot, a JSON object with its `snapshot-id`."""

    partition_statistics: Mapping[str, Any]

    def apply(self, builder: MetadataBuilder) -> None:
        """See `TableUpdate.apply`."""
        builder.set_statistics("partition_statistics", self.partition_statistics)


@dataclass(frozen=True, slots=True)
class RemovePartitionStatisticsUpdate:
    """Forget the partition statistics file of a snapshot."""

    snapshot_id: int

    def apply(self, builder: MetadataBuilder) -> None:
        """See `TableUpdate.apply`."""
        builder.remove_statistics("partition_statistics", frozenset((self.snapshot_id,)))
