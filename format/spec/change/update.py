"""Changes of a table as data: updates that are applied to metadata to give new metadata.

A commit is a tuple of requirements that must hold and a tuple of updates, so it can be repeated on
newer metadata, sent elsewhere, or inspected. `MetadataBuilder` implements the updates: ids,
defaults, references and logs.

The rules are those of the reference implementation, so that both create the same metadata for the
same updates. A builder collects only changed fields; history that no update touches is shared.
"""

from __future__ import annotations

import time
import uuid
import uuid as uuids
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from icecomb.format.argument import MAX_LONG, checked_int, checked_text, property_texts
from icecomb.format.errors import CommitFailedError, UnsupportedError, ValidationError
from icecomb.format.property.table_property import (
    METADATA_PREVIOUS_VERSIONS,
    check_not_reserved,
    check_properties,
)
from icecomb.format.spec.default_value import check_defaults
from icecomb.format.spec.metadata import (
    SUPPORTED_FORMAT_VERSIONS,
    TableMetadata,
)
from icecomb.format.spec.partition import INITIAL_PARTITION_SPEC_ID, PartitionSpec
from icecomb.format.spec.schema import Schema, check_depth, check_types
from icecomb.format.spec.snapshot import (
    MAIN_BRANCH,
    MetadataLogEntry,
    Snapshot,
    SnapshotLogEntry,
    SnapshotRef,
    ref_type,
)
from icecomb.format.spec.sort import INITIAL_SORT_ORDER_ID, UNSORTED_SORT_ORDER, SortOrder
from icecomb.format.spec.values.json_object import lazily

if TYPE_CHECKING:
    from icecomb.format.spec.change.requirement import TableRequirement
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.partition import PartitionSpec
    from icecomb.format.spec.schema import Schema
    from icecomb.format.spec.sort import SortOrder


LAST_ADDED: Final = -1

_T = TypeVar("_T")


def time_after(base: TableMetadata) -> int:
    """Return the time for a change made now, in milliseconds since the epoch.

    No two changes of a table have the same time, however fast they are and whatever the clock says:
    time travel distinguishes them.
    """
    if base.last_updated_ms == MAX_LONG:
        return MAX_LONG  # there is no later time
    return max(time.time_ns() // 1_000_000, base.last_updated_ms + 1)


class MetadataBuilder:
    """Table metadata being changed; `metadata` is its present state.

    The time of the changes is `now_ms`, in milliseconds since the epoch; by default the clock's.
    """

    def __init__(self, base: TableMetadata, now_ms: int | None = None) -> None:
        self._base = base
        # With a clock that is behind, an update must not look older than the one before.
        self._now_ms = time_after(base) if now_ms is None else max(now_ms, base.last_updated_ms)
        self.metadata = base
        self._last_schema_id: int | None = None
        self._last_spec_id: int | None = None
        self._last_order_id: int | None = None
        self._added: set[int] = set()
        self._removed: set[int] = set()

    def set(self, **fields: Any) -> None:
        """Replace fields of the metadata."""
        if any(getattr(self.metadata, name) != value for name, value in fields.items()):
            self.metadata = replace(self.metadata, **fields)

    def assign_uuid(self, table_uuid: uuid.UUID) -> None:
        """Set the identity of the table."""
        self.set(table_uuid=table_uuid)

    def set_location(self, location: str) -> None:
        """Move the base location for new files."""
        if not checked_text("location of a table", location):
            raise ValidationError(
                "A table needs a location",
                hint="Name a folder, such as hdfs://cluster/warehouse/db.db/t.",
            )
        self.set(location=location)

    def upgrade_format_version(self, version: int) -> None:
        """Raise the format version; a lower one than the table's raises ValidationError."""
        current = self.metadata.format_version
        version = checked_int("format version", version)
        if version not in SUPPORTED_FORMAT_VERSIONS:
            raise UnsupportedError(
                f"Cannot upgrade to format version {version} (v{version}), which is not supported",
                hint="Supported are 1, 2 and 3.",
            )
        if version < current:
            raise ValidationError(
                f"Cannot go back from format version {current} to {version}",
                hint="Create a new table of that version and copy the rows.",
            )
        if current < 3 <= version:
            kept = {k: v for k, v in self.metadata.extra.items() if k != "next-row-id"}
            self.set(next_row_id=0, extra=MappingProxyType(kept))
        self.set(format_version=version)

    def add_schema(self, schema: Schema, last_column_id: int = 0) -> None:
        """Add a schema under the next id, or reuse an equal one.

        Later columns must have ids above `last_column_id`.
        """
        schemas = self.metadata.schemas
        check_depth((f.field_type for f in schema.fields), self.metadata.schema())
        chosen = next(
            (
                s.schema_id
                for s in schemas
                if s.fields == schema.fields
                and set(s.identifier_field_ids) == set(schema.identifier_field_ids)
            ),
            None,
        )
        if chosen is None:
            check_types(schema, self.metadata.format_version)
            check_defaults(schema, self.metadata.format_version, self.metadata.schema())
            chosen = max((s.schema_id for s in schemas), default=LAST_ADDED) + 1
            self.set(schemas=(*schemas, replace(schema, schema_id=chosen)))
        self._last_schema_id = chosen
        last = max(self.metadata.last_column_id, schema.highest_field_id, last_column_id)
        self.set(last_column_id=last)

    def set_current_schema(self, schema_id: int) -> None:
        """Make a schema the current one; -1 means the one added last."""
        chosen = _chosen(schema_id, self._last_schema_id, "schema")
        self.metadata.schema_by_id(chosen)
        self.set(current_schema_id=chosen)

    def remove_schemas(self, schema_ids: Collection[int]) -> None:
        """Remove schemas; the current one raises ValidationError."""
        if self.metadata.current_schema_id in schema_ids:
            raise ValidationError(
                "Cannot remove the current schema",
                hint="Make another schema the current one first.",
            )
        kept = tuple(s for s in self.metadata.schemas if s.schema_id not in schema_ids)
        self.set(schemas=kept)

    def add_partition_spec(self, spec: PartitionSpec) -> None:
        """Add a partition spec under the next id, or reuse an equal one."""
        specs = self.metadata.partition_specs
        chosen = next((s.spec_id for s in specs if s.compatible_with(spec)), None)
        if chosen is None:
            spec.check(self.metadata.schema())
            if self.metadata.format_version == 1 and not spec.has_sequential_ids():
                raise ValidationError(
                    f"Partition field ids must be 1000, 1001, ... in format version 1: {spec}",
                    hint="Replace a dropped field by a void one instead of leaving it out.",
                )
            chosen = max((s.spec_id + 1 for s in specs), default=INITIAL_PARTITION_SPEC_ID)
            highest = max(self.metadata.last_partition_id, spec.last_assigned_field_id)
            self.set(
                partition_specs=(*specs, replace(spec, spec_id=chosen)), last_partition_id=highest
            )
        self._last_spec_id = chosen

    def set_default_spec(self, spec_id: int) -> None:
        """Make a partition spec the default for writers; -1 means the one added last."""
        chosen = _chosen(spec_id, self._last_spec_id, "partition spec")
        if chosen not in self.metadata.specs():
            raise ValidationError(
                f"The table has no partition spec of id {chosen}",
                hint="Choose one of the table's partition specs.",
            )
        self.set(default_spec_id=chosen)

    def remove_partition_specs(self, spec_ids: Collection[int]) -> None:
        """Remove partition specs; the default one raises ValidationError."""
        if self.metadata.default_spec_id in spec_ids:
            raise ValidationError(
                "Cannot remove the default partition spec",
                hint="Make another partition spec the default first.",
            )
        kept = tuple(s for s in self.metadata.partition_specs if s.spec_id not in spec_ids)
        self.set(partition_specs=kept)

    def add_sort_order(self, order: SortOrder) -> None:
        """Add a sort order under the next id, or reuse an equal one."""
        orders = self.metadata.sort_orders
        chosen = next((o.order_id for o in orders if o.fields == order.fields), None)
        if chosen is None:
            if order.is_unsorted:
                chosen = UNSORTED_SORT_ORDER.order_id
            else:
                highest = max((o.order_id for o in orders), default=0)
                chosen = max(INITIAL_SORT_ORDER_ID, highest + 1)
            added = replace(order, order_id=chosen)
            added.check(self.metadata.schema())
            self.set(sort_orders=(*orders, added))
        self._last_order_id = chosen

    def set_default_sort_order(self, order_id: int) -> None:
        """Make a sort order the default for writers; -1 means the one added last."""
        chosen = _chosen(order_id, self._last_order_id, "sort order")
        self.metadata.sort_order_by_id(chosen)
        self.set(default_sort_order_id=chosen)

    def add_snapshot(self, snapshot: Snapshot) -> None:
        """Add a snapshot; no branch or tag points to it yet.

        CommitFailedError is raised if its sequence number is not above all others, or its row ids
        are assigned already.
        """
        metadata = self.metadata
        newest = metadata.last_sequence_number
        # Not via the index of ids, which would be rebuilt for each version of the metadata.
        if snapshot.snapshot_id in self._added or self._base.has_snapshot(snapshot.snapshot_id):
            raise ValidationError(
                f"The table has a snapshot {snapshot.snapshot_id} already",
                hint="Give the new snapshot an id that the table does not have.",
            )
        rootless = snapshot.parent_snapshot_id is None
        if metadata.format_version > 1 and snapshot.sequence_number <= newest and not rootless:
            raise CommitFailedError(
                f"The sequence number {snapshot.sequence_number} of snapshot "
                f"{snapshot.snapshot_id} is not above the table's {newest}",
                hint="Load the table again and repeat the change.",
            )
        next_row_id = self._next_row_id(snapshot)
        self._added.add(snapshot.snapshot_id)
        self._now_ms = max(self._now_ms, snapshot.timestamp_ms)
        self.metadata = replace(
            metadata,
            snapshots=lazily(metadata.snapshots, Snapshot.from_json).with_last(snapshot),
            last_sequence_number=max(newest, snapshot.sequence_number)
            if metadata.format_version > 1
            else newest,
            next_row_id=next_row_id,
        )

    def _next_row_id(self, snapshot: Snapshot) -> int:
        """Return the table's next row id after a snapshot."""
        metadata, first = self.metadata, snapshot.first_row_id
        if metadata.format_version < 3:
            return metadata.next_row_id
        if first is None:
            raise ValidationError(
                f"Snapshot {snapshot.snapshot_id} has no first-row-id, which format version "
                f"{metadata.format_version} requires",
                hint="The table was upgraded meanwhile: load it again and repeat the change.",
            )
        if first < metadata.next_row_id:
            raise CommitFailedError(
                f"The first-row-id {first} of snapshot {snapshot.snapshot_id} is below the "
                f"table's next-row-id {metadata.next_row_id}",
                hint="Load the table again and repeat the change.",
            )
        return checked_int("next-row-id", first + (snapshot.added_rows or 0), 0, MAX_LONG)

    def set_ref(self, name: str, ref: SnapshotRef) -> None:
        """Point a branch or tag to a snapshot; the snapshot log records moves of `main`."""
        metadata = self.metadata
        known = metadata.refs.get(name)
        if known == ref:
            return
        if known is not None:
            ref = replace(ref, extra={**known.extra, **ref.extra})
        added = ref.snapshot_id in self._added
        exists = added or self._base.has_snapshot(ref.snapshot_id)
        if not exists or ref.snapshot_id in self._removed:
            raise ValidationError(
                f"Cannot set {name!r} to snapshot {ref.snapshot_id}: it does not exist",
                hint="Choose a snapshot that the table has; it may have expired.",
            )
        refs = MappingProxyType(_copied(metadata.refs) | {name: ref})
        if name != MAIN_BRANCH:
            self.metadata = replace(metadata, refs=refs)
            return
        if not ref.is_branch:
            raise ValidationError(
                "Main is a branch and cannot become a tag", hint="Give the tag another name."
            )
        log = lazily(metadata.snapshot_log, SnapshotLogEntry.from_json)
        moved = metadata.current_snapshot_id != ref.snapshot_id
        if moved:
            log = log.with_last(SnapshotLogEntry(ref.snapshot_id, self._log_time(ref, added=added)))
        self.metadata = replace(
            metadata, refs=refs, snapshot_log=log, current_snapshot_id=ref.snapshot_id
        )

    def remove_ref(self, name: str) -> None:
        """Remove a branch or tag; a missing one is ignored."""
        metadata = self.metadata
        if name not in metadata.refs:
            return
        refs = _copied(metadata.refs)
        del refs[name]
        current = None if name == MAIN_BRANCH else metadata.current_snapshot_id
        self.set(refs=MappingProxyType(refs), current_snapshot_id=current)

    def remove_snapshots(self, snapshot_ids: Collection[int]) -> None:
        """Remove snapshots, their statistics files, and the refs that point to them.

        Operations that must keep referenced snapshots, such as expiration, check that beforehand.
        """
        metadata = self.metadata
        snapshots = lazily(metadata.snapshots, Snapshot.from_json)
        kept = snapshots.where("snapshot-id", lambda i: i not in snapshot_ids)
        if len(kept) == len(snapshots):
            return
        self._removed.update(snapshot_ids)
        self.metadata = replace(metadata, snapshots=kept)
        self.remove_statistics("statistics", snapshot_ids)
        self.remove_statistics("partition_statistics", snapshot_ids)
        for name, ref in metadata.refs.items():
            if ref.snapshot_id in snapshot_ids:
                self.remove_ref(name)

    def set_properties(self, updates: Mapping[str, str]) -> None:
        """Set properties; reserved ones raise ValidationError."""
        given = property_texts("property", updates)
        check_properties(given)
        self.set(properties=MappingProxyType(_copied(self.metadata.properties) | given))

    def remove_properties(self, removals: Collection[str]) -> None:
        """Remove properties; missing ones are ignored, reserved ones raise ValidationError."""
        check_not_reserved(removals)
        kept = {k: v for k, v in self.metadata.properties.items() if k not in removals}
        self.set(properties=MappingProxyType(kept))

    def set_statistics(self, kind: str, statistics: Mapping[str, Any]) -> None:
        """Set the only statistics file of a snapshot, which the file must name."""
        snapshot_id = statistics.get("snapshot-id")
        if type(snapshot_id) is not int:
            raise ValidationError(
                f"A file of {kind} must name its snapshot-id",
                hint="Give a snapshot-id, a whole number.",
            )
        others = _without(getattr(self.metadata, kind), (snapshot_id,))
        self.set(**{kind: (*others, statistics)})

    def remove_statistics(self, kind: str, snapshot_ids: Collection[int]) -> None:
        """Remove the statistics files of snapshots."""
        self.set(**{kind: _without(getattr(self.metadata, kind), snapshot_ids)})

    def build(self, base_location: str | None = None) -> TableMetadata:
        """Return the changed metadata with its logs; the base itself if nothing changed.

        The metadata log records `base_location`, the metadata file of the base.
        """
        metadata = self.metadata
        if metadata is self._base:
            return self._base
        _check_default_spec(metadata)
        log = metadata.metadata_log
        if base_location is not None:
            entry = MetadataLogEntry(base_location, self._base.last_updated_ms)
            whole = lazily(log, MetadataLogEntry.from_json).with_last(entry)
            log = whole[-max(1, METADATA_PREVIOUS_VERSIONS.of(metadata.properties)) :]
        return replace(
            metadata,
            table_uuid=metadata.table_uuid or uuid.uuid4(),
            snapshot_log=self._trimmed_snapshot_log(),
            metadata_log=log,
            last_updated_ms=self._now_ms,
        )

    def _log_time(self, ref: SnapshotRef, *, added: bool) -> int:
        """Return a time not before the log's last, or readers would reject the log."""
        log = self.metadata.snapshot_log
        last = log[-1].timestamp_ms if log else 0
        time_ms = self._now_ms
        if added:
            snapshot = self.metadata.snapshots[-1]
            if snapshot.snapshot_id != ref.snapshot_id:
                snapshot = self.metadata.snapshot_by_id(ref.snapshot_id) or snapshot
            time_ms = snapshot.timestamp_ms
        return max(time_ms, last)

    def _trimmed_snapshot_log(self) -> Any:
        """Return the log after the last removed snapshot, without those current between updates."""
        metadata = self.metadata
        if not self._removed and len(self._added) < 2:
            return metadata.snapshot_log
        log = lazily(metadata.snapshot_log, SnapshotLogEntry.from_json)
        between = self._added - {metadata.current_snapshot_id}
        last_gap = max(
            (n for n, i in enumerate(log.members("snapshot-id")) if i in self._removed),
            default=LAST_ADDED,
        )
        return log[last_gap + 1 :].where("snapshot-id", lambda i: i not in between)


def _chosen(given: int, last_added: int | None, what: str) -> int:
    if given != LAST_ADDED:
        return given
    if last_added is None:
        raise ValidationError(
            f"Cannot choose the last added {what}: none was added",
            hint="Add one in the same change, or name it by its id.",
        )
    return last_added


def _without(
    files: Iterable[Mapping[str, Any]], snapshot_ids: Collection[int]
) -> tuple[Mapping[str, Any], ...]:
    return tuple(f for f in files if f.get("snapshot-id") not in snapshot_ids)


def _check_default_spec(metadata: TableMetadata) -> None:
    """Check that the schema has the columns that the default spec and sort order need."""
    schema = metadata.schema()
    _check_sources(
        "partition spec",
        ((f.source_id, str(f.transform)) for f in metadata.spec().fields),
        schema.contains,
    )
    _check_sources(
        "sort order",
        ((f.source_id, str(f.transform)) for f in metadata.sort_order().fields),
        schema.contains,
    )


def _check_sources(
    what: str, sources: Iterable[tuple[int, str]], contains: Callable[[int], bool]
) -> None:
    for source_id, transform in sources:
        if transform != "void" and not contains(source_id):
            raise ValidationError(
                f"The schema has no column of id {source_id}, which the default {what} needs",
                hint=f"Remove it from the {what} first.",
            )


def _copied(known: Mapping[str, _T]) -> dict[str, _T]:
    """Return a dictionary of the same members; there may be thousands of branches and tags."""
    # unpacking a proxy asks it for each of its members
    return known.copy() if isinstance(known, MappingProxyType) else dict(known)


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
