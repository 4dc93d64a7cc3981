"""Changes of a table as data: each is applied to metadata and gives new metadata.

A commit is a tuple of requirements that must hold and a tuple of updates that are folded over the
current metadata; so it can be repeated on newer metadata, sent elsewhere, or inspected.
"""

from __future__ import annotations

import time
import uuid as uuids
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Protocol

from icecomb.format.errors import CommitFailedError, ValidationError
from icecomb.format.metadata import (
    RESERVED_PROPERTIES,
    SUPPORTED_FORMAT_VERSIONS,
    TableMetadata,
)
from icecomb.format.snapshot import (
    MAIN_BRANCH,
    MetadataLogEntry,
    SnapshotLogEntry,
    SnapshotRef,
    SnapshotRefType,
)

if TYPE_CHECKING:
    from icecomb.format.partition import PartitionSpec
    from icecomb.format.requirement import TableRequirement
    from icecomb.format.schema import Schema
    from icecomb.format.snapshot import Snapshot
    from icecomb.format.sort import SortOrder

LAST_ADDED: Final = -1
_PREVIOUS_VERSIONS_KEY: Final = "write.metadata.previous-versions-max"
_PREVIOUS_VERSIONS_DEFAULT: Final = 100


class TableUpdate(Protocol):
    """One change of a table."""

    def apply(self, metadata: TableMetadata) -> TableMetadata:
        """The metadata with this change.

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


def update_table_metadata(
    base: TableMetadata,
    updates: Iterable[TableUpdate],
    *,
    base_location: str | None = None,
    now_ms: int | None = None,
) -> TableMetadata:
    """Fold updates over metadata, and keep its logs.

    Args:
        base: The metadata the updates are applied to.
        updates: Applied in order, all or none.
        base_location: The metadata file of the base; it is added to the metadata log, which is
            trimmed to `write.metadata.previous-versions-max` entries.
        now_ms: The time of the change in milliseconds since the epoch; the clock's by default.

    Raises:
        ValidationError: An update does not fit the table.
    """
    changed = base
    for update in updates:
        changed = update.apply(changed)
    if changed is base:
        return base
    now = max(int(time.time() * 1000) if now_ms is None else now_ms, base.last_updated_ms)
    current = changed.current_snapshot()
    if current is not None and changed.current_snapshot_id != base.current_snapshot_id:
        fresh = base.snapshot_by_id(current.snapshot_id) is None
        now = max(now, current.timestamp_ms) if fresh else now
        entry = SnapshotLogEntry(current.snapshot_id, current.timestamp_ms if fresh else now)
        changed = replace(changed, snapshot_log=(*changed.snapshot_log, entry))
    log = changed.metadata_log
    if base_location is not None:
        log = (*log, MetadataLogEntry(base_location, base.last_updated_ms))
        log = log[-previous_versions(changed.properties) :]
    return replace(changed, last_updated_ms=now, metadata_log=log)


def previous_versions(properties: Mapping[str, str]) -> int:
    """How many earlier metadata files the metadata log keeps, at least 1.

    Raises:
        ValidationError: The table's property is not a number.
    """
    text = properties.get(_PREVIOUS_VERSIONS_KEY, _PREVIOUS_VERSIONS_DEFAULT)
    try:
        return max(1, int(text))
    except ValueError as error:
        raise ValidationError(
            f"property {_PREVIOUS_VERSIONS_KEY} is {text!r}, not a number"
        ) from error


@dataclass(frozen=True, slots=True)
class AssignUUIDUpdate:
    """Give the table its identity."""

    uuid: uuids.UUID

    def apply(self, metadata: TableMetadata) -> TableMetadata:
        """See `TableUpdate.apply`."""
        return replace(metadata, table_uuid=self.uuid)


@dataclass(frozen=True, slots=True)
class UpgradeFormatVersionUpdate:
    """Raise the format version; sequence numbers of what exists are 0."""

    format_version: int

    def apply(self, metadata: TableMetadata) -> TableMetadata:
        """See `TableUpdate.apply`."""
        if self.format_version not in SUPPORTED_FORMAT_VERSIONS:
            raise ValidationError(f"cannot write format version {self.format_version}")
        if self.format_version < metadata.format_version:
            raise ValidationError(
                f"cannot go back from format version {metadata.format_version} "
                f"to {self.format_version}"
            )
        if self.format_version == metadata.format_version:
            return metadata
        return replace(
            metadata,
            format_version=self.format_version,
            table_uuid=metadata.table_uuid or uuids.uuid4(),
        )


@dataclass(frozen=True, slots=True)
class AddSchemaUpdate:
    """Add a schema; one that exists already is used again."""

    schema: Schema

    def apply(self, metadata: TableMetadata) -> TableMetadata:
        """See `TableUpdate.apply`."""
        schemas = tuple(s for s in metadata.schemas if s.schema_id != self.schema.schema_id)
        highest = max(metadata.last_column_id, self.schema.highest_field_id)
        return replace(metadata, schemas=(*schemas, self.schema), last_column_id=highest)


@dataclass(frozen=True, slots=True)
class SetCurrentSchemaUpdate:
    """Make a schema the current one; -1 is the one added last."""

    schema_id: int

    def apply(self, metadata: TableMetadata) -> TableMetadata:
        """See `TableUpdate.apply`."""
        chosen = metadata.schemas[-1].schema_id if self.schema_id == LAST_ADDED else self.schema_id
        metadata.schema_by_id(chosen)
        return replace(metadata, current_schema_id=chosen)


@dataclass(frozen=True, slots=True)
class AddPartitionSpecUpdate:
    """Add a partition spec."""

    spec: PartitionSpec

    def apply(self, metadata: TableMetadata) -> TableMetadata:
        """See `TableUpdate.apply`."""
        if self.spec.spec_id in metadata.specs():
            raise ValidationError(
                f"the table has a partition spec of id {self.spec.spec_id} already"
            )
        highest = max((f.field_id for f in self.spec.fields), default=metadata.last_partition_id)
        return replace(
            metadata,
            partition_specs=(*metadata.partition_specs, self.spec),
            last_partition_id=max(metadata.last_partition_id, highest),
        )


@dataclass(frozen=True, slots=True)
class SetDefaultSpecUpdate:
    """Make a partition spec the writers' one; -1 is the one added last."""

    spec_id: int

    def apply(self, metadata: TableMetadata) -> TableMetadata:
        """See `TableUpdate.apply`."""
        last = metadata.partition_specs[-1].spec_id
        chosen = last if self.spec_id == LAST_ADDED else self.spec_id
        if chosen not in metadata.specs():
            raise ValidationError(f"the table has no partition spec of id {chosen}")
        return replace(metadata, default_spec_id=chosen)


@dataclass(frozen=True, slots=True)
class AddSortOrderUpdate:
    """Add a sort order."""

    sort_order: SortOrder

    def apply(self, metadata: TableMetadata) -> TableMetadata:
        """See `TableUpdate.apply`."""
        if any(o.order_id == self.sort_order.order_id for o in metadata.sort_orders):
            return metadata
        return replace(metadata, sort_orders=(*metadata.sort_orders, self.sort_order))


@dataclass(frozen=True, slots=True)
class SetDefaultSortOrderUpdate:
    """Make a sort order the writers' one; -1 is the one added last."""

    sort_order_id: int

    def apply(self, metadata: TableMetadata) -> TableMetadata:
        """See `TableUpdate.apply`."""
        last = metadata.sort_orders[-1].order_id
        chosen = last if self.sort_order_id == LAST_ADDED else self.sort_order_id
        metadata.sort_order_by_id(chosen)
        return replace(metadata, default_sort_order_id=chosen)


@dataclass(frozen=True, slots=True)
class AddSnapshotUpdate:
    """Add a snapshot; it becomes visible when a branch or tag is set to it."""

    snapshot: Snapshot

    def apply(self, metadata: TableMetadata) -> TableMetadata:
        """See `TableUpdate.apply`."""
        snapshot, newest = self.snapshot, metadata.last_sequence_number
        if metadata.snapshot_by_id(snapshot.snapshot_id) is not None:
            raise ValidationError(f"the table has a snapshot {snapshot.snapshot_id} already")
        rootless = snapshot.parent_snapshot_id is None
        if metadata.format_version > 1 and snapshot.sequence_number <= newest and not rootless:
            raise CommitFailedError(
                f"sequence number {snapshot.sequence_number} of a snapshot is not above {newest}"
            )
        return replace(
            metadata,
            snapshots=(*metadata.snapshots, snapshot),
            last_sequence_number=max(newest, snapshot.sequence_number),
        )


@dataclass(frozen=True, slots=True)
class SetSnapshotRefUpdate:
    """Point a branch or a tag to a snapshot."""

    ref_name: str
    type: str
    snapshot_id: int
    max_ref_age_ms: int | None = None
    max_snapshot_age_ms: int | None = None
    min_snapshots_to_keep: int | None = None

    def apply(self, metadata: TableMetadata) -> TableMetadata:
        """See `TableUpdate.apply`."""
        if metadata.snapshot_by_id(self.snapshot_id) is None:
            raise ValidationError(
                f"cannot set {self.ref_name!r} to snapshot {self.snapshot_id}: it does not exist"
            )
        ref = SnapshotRef(
            self.snapshot_id,
            SnapshotRefType(self.type),
            self.min_snapshots_to_keep,
            self.max_snapshot_age_ms,
            self.max_ref_age_ms,
        )
        is_main = self.ref_name == MAIN_BRANCH
        return replace(
            metadata,
            refs=MappingProxyType({**metadata.refs, self.ref_name: ref}),
            current_snapshot_id=self.snapshot_id if is_main else metadata.current_snapshot_id,
        )


@dataclass(frozen=True, slots=True)
class RemoveSnapshotRefUpdate:
    """Remove a branch or a tag; without `main` the table is empty."""

    ref_name: str

    def apply(self, metadata: TableMetadata) -> TableMetadata:
        """See `TableUpdate.apply`."""
        refs = {name: ref for name, ref in metadata.refs.items() if name != self.ref_name}
        current = None if self.ref_name == MAIN_BRANCH else metadata.current_snapshot_id
        return replace(metadata, refs=MappingProxyType(refs), current_snapshot_id=current)


@dataclass(frozen=True, slots=True)
class RemoveSnapshotsUpdate:
    """Forget snapshots; the snapshot log keeps no entry from before a gap."""

    snapshot_ids: tuple[int, ...]

    def apply(self, metadata: TableMetadata) -> TableMetadata:
        """See `TableUpdate.apply`."""
        gone = frozenset(self.snapshot_ids)
        for name, ref in metadata.refs.items():
            if ref.snapshot_id in gone:
                raise ValidationError(
                    f"cannot remove snapshot {ref.snapshot_id}: {name!r} needs it"
                )
        log: list[SnapshotLogEntry] = []
        for entry in metadata.snapshot_log:
            if entry.snapshot_id in gone:
                log.clear()
            else:
                log.append(entry)
        return replace(
            metadata,
            snapshots=tuple(s for s in metadata.snapshots if s.snapshot_id not in gone),
            snapshot_log=tuple(log),
            statistics=tuple(f for f in metadata.statistics if f.get("snapshot-id") not in gone),
            partition_statistics=tuple(
                f for f in metadata.partition_statistics if f.get("snapshot-id") not in gone
            ),
        )


@dataclass(frozen=True, slots=True)
class SetLocationUpdate:
    """Move the base location for new files; existing ones stay where they are."""

    location: str

    def apply(self, metadata: TableMetadata) -> TableMetadata:
        """See `TableUpdate.apply`."""
        return replace(metadata, location=self.location)


@dataclass(frozen=True, slots=True)
class SetPropertiesUpdate:
    """Set properties; reserved ones describe the table and cannot be set."""

    updates: Mapping[str, str]

    def apply(self, metadata: TableMetadata) -> TableMetadata:
        """See `TableUpdate.apply`."""
        reserved = RESERVED_PROPERTIES & self.updates.keys()
        if reserved:
            raise ValidationError(f"cannot set reserved properties: {', '.join(sorted(reserved))}")
        merged = {**metadata.properties, **self.updates}
        return replace(metadata, properties=MappingProxyType(merged))


@dataclass(frozen=True, slots=True)
class RemovePropertiesUpdate:
    """Remove properties; one that is not there is passed over."""

    removals: tuple[str, ...]

    def apply(self, metadata: TableMetadata) -> TableMetadata:
        """See `TableUpdate.apply`."""
        kept = {k: v for k, v in metadata.properties.items() if k not in self.removals}
        return replace(metadata, properties=MappingProxyType(kept))
