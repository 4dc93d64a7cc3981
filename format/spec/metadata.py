"""The state of a table at one commit (spec: Table Metadata).

A `TableMetadata` is immutable: `icecomb.format.spec.change.update` applies changes to give a new
one, which shares the history of the old one. So a commit costs the same on a long history as on a
short one, apart from writing the JSON.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from icecomb.format.argument import MAX_LONG, checked_int, checked_text, property_texts
from icecomb.format.errors import NoSuchSnapshotError, UnsupportedError, ValidationError
from icecomb.format.property.table_property import NAME_MAPPING, PARQUET_CODEC, check_properties
from icecomb.format.spec.default_value import check_defaults
from icecomb.format.spec.partition import PartitionSpec, assign_fresh_partition_spec_ids
from icecomb.format.spec.schema import (
    INITIAL_SCHEMA_ID,
    Schema,
    assign_fresh_schema_ids,
    check_types,
)
from icecomb.format.spec.snapshot import MAIN_BRANCH
from icecomb.format.spec.sort import SortOrder, assign_fresh_sort_order_ids
from icecomb.format.spec.transform import VoidTransform
from icecomb.format.spec.values.json_object import JsonSequence
from icecomb.format.spec.values.temporal import human_timestamptz

if TYPE_CHECKING:
    from icecomb.format.spec.name_mapping import NameMapping
    from icecomb.format.spec.snapshot import (
        MetadataLogEntry,
        Snapshot,
        SnapshotLogEntry,
        SnapshotRef,
    )

SUPPORTED_FORMAT_VERSIONS: Final = (1, 2, 3)
DEFAULT_FORMAT_VERSION: Final = 2
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


def _nothing() -> Mapping[str, Any]:
    return _NOTHING


@dataclass(frozen=True)
class TableMetadata:
    """One version of a table's metadata.

    Attributes:
        format_version: 1, 2 or 3.
        table_uuid: The identity of the table; None in some files of version 1.
        location: The folder of the table, as text.
        last_updated_ms: The time of this version, in milliseconds since the epoch.
        last_column_id: The highest field id ever used.
        schemas: All schemas of the table; `current_schema_id` names the current one.
        partition_specs: All partition specs; `default_spec_id` names the one for writers.
        last_partition_id: The highest partition field id ever used.
        sort_orders: All sort orders; `default_sort_order_id` names the one for writers.
        last_sequence_number: The highest sequence number ever used; 0 in version 1.
        next_row_id: A number above all row ids ever assigned; 0 before version 3.
        properties: Properties of the table.
        current_snapshot_id: The head of the branch `main`; None while the table is empty.
        snapshots: All snapshots that are not expired.
        snapshot_log: The changes of the current snapshot, with their times.
        metadata_log: The metadata files before this one, oldest first.
        refs: Branches and tags by name; `main` is among them unless the table is empty.
        statistics: Statistics files, as JSON objects.
        partition_statistics: Partition statistics files, as JSON objects.
        encryption_keys: Keys of encrypted files, as JSON objects.
        extra: Fields that icecomb does not know, written back unchanged.
    """

    format_version: int
    table_uuid: uuid.UUID | None
    location: str
    last_updated_ms: int
    last_column_id: int
    schemas: tuple[Schema, ...]
    current_schema_id: int
    partition_specs: tuple[PartitionSpec, ...]
    default_spec_id: int
    last_partition_id: int
    sort_orders: tuple[SortOrder, ...]
    default_sort_order_id: int
    last_sequence_number: int = 0
    next_row_id: int = 0
    properties: Mapping[str, str] = field(default_factory=_nothing)
    current_snapshot_id: int | None = None
    snapshots: Sequence[Snapshot] = ()
    snapshot_log: Sequence[SnapshotLogEntry] = ()
    metadata_log: Sequence[MetadataLogEntry] = ()
    refs: Mapping[str, SnapshotRef] = field(default_factory=_nothing)
    statistics: tuple[Mapping[str, Any], ...] = ()
    partition_statistics: tuple[Mapping[str, Any], ...] = ()
    encryption_keys: tuple[Mapping[str, Any], ...] = ()
    extra: Mapping[str, Any] = field(default_factory=_nothing, repr=False)

    def schema(self) -> Schema:
        """Return the current schema."""
        return self.schema_by_id(self.current_schema_id)

    def schema_by_id(self, schema_id: int) -> Schema:
        """Return the schema of this id.

        Raises:
            ValidationError: If the table has none.
        """
        for schema in self.schemas:
            if schema.schema_id == schema_id:
                return schema
        raise ValidationError(
            f"The table has no schema of id {schema_id}", hint="Choose one of the table's schemas."
        )

    def spec(self) -> PartitionSpec:
        """Return the partition spec that writers use."""
        return self.specs()[self.default_spec_id]

    def specs(self) -> Mapping[int, PartitionSpec]:
        """Return all partition specs by id."""
        return self._specs

    def spec_by_id(self, spec_id: int) -> PartitionSpec:
        """Return the partition spec of this id.

        Raises:
            ValidationError: If the table has none.
        """
        spec = self._specs.get(spec_id)
        if spec is None:
            raise ValidationError(
                f"The table has no partition spec of id {spec_id}",
                hint="Choose one of the table's partition specs.",
            )
        return spec

    def schema_of(self, spec: PartitionSpec) -> Schema:
        """Return the schema to write a spec with: an old spec may use a column that was dropped.

        Void fields need no column: no schema need have theirs together with the others.
        """
        void = VoidTransform()
        sources = [field.source_id for field in spec.fields if field.transform != void]
        schemas = (self.schema(), *reversed(self.schemas))
        complete = (s for s in schemas if all(s.contains(source) for source in sources))
        return next(complete, self.schema())

    def schema_with(self, field_id: int) -> Schema:
        """Return the current schema if it has a field, else the latest that has, if any."""
        current = self.schema()
        older = (s for s in reversed(self.schemas) if s.contains(field_id))
        return current if current.contains(field_id) else next(older, current)

    def sort_order(self) -> SortOrder:
        """Return the sort order that writers use."""
        return self.sort_order_by_id(self.default_sort_order_id)

    def sort_order_by_id(self, order_id: int) -> SortOrder:
        """Return the sort order of this id.

        Raises:
            ValidationError: If the table has none.
        """
        for order in self.sort_orders:
            if order.order_id == order_id:
                return order
        raise ValidationError(
            f"The table has no sort order of id {order_id}",
            hint="Choose one of the table's sort orders.",
        )

    def current_snapshot(self) -> Snapshot | None:
        """Return the head of the branch `main`, or None while the table is empty."""
        if self.current_snapshot_id is None:
            return None
        return self.snapshot_by_id(self.current_snapshot_id)

    def snapshot_by_id(self, snapshot_id: int) -> Snapshot | None:
        """Return the snapshot of this id, or None."""
        if type(snapshot_id) is not int:
            snapshot_id = checked_int("snapshot_id", snapshot_id, -MAX_LONG - 1, MAX_LONG)
        if self._last is not None and self._last.snapshot_id == snapshot_id:
            return self._last
        position = self._positions.get(snapshot_id)
        return None if position is None else self.snapshots[position]

    def snapshot_ids(self) -> Iterable[int]:
        """Return the ids of all snapshots, in order; decodes none, as there may be many."""
        return self._positions.keys()

    def manifest_lists(self) -> list[str]:
        """Return the lists of all snapshots, and the manifests of those without; decodes none."""
        lists = [one for one in self._members("manifest-list") if one]
        return lists + [one for each in self._members("manifests") for one in each or ()]

    def has_snapshot(self, snapshot_id: int) -> bool:
        """Return whether there is a snapshot of this id."""
        return snapshot_id in self._positions

    def snapshot_by_name(self, name: str) -> Snapshot | None:
        """Return the snapshot that a branch or tag points to, or None."""
        if name == MAIN_BRANCH:
            return self.current_snapshot()
        ref = self.refs.get(name)
        return None if ref is None else self.snapshot_by_id(ref.snapshot_id)

    def snapshot_as_of(self, timestamp_ms: int) -> Snapshot:
        """Return the snapshot that was current at a time, by the snapshot log.

        All reads as of a time use this, as in Iceberg Java (SnapshotUtil.snapshotIdAsOfTime).
        A rollback uses ancestors instead; see `latest_ancestor_before` in `ancestry`.

        Args:
            timestamp_ms: Milliseconds since the epoch.

        Raises:
            NoSuchSnapshotError: If the table was empty then, its history does not reach back that
                far, or the snapshot has expired: an older one was not what the table held.
        """
        timestamp_ms = checked_int("timestamp_ms", timestamp_ms, -MAX_LONG - 1, MAX_LONG)
        at = human_timestamptz(timestamp_ms * 1000)
        hint = "See the table's history for the times it covers."
        for entry in reversed(self.snapshot_log):
            if entry.timestamp_ms <= timestamp_ms:
                found = self.snapshot_by_id(entry.snapshot_id)
                if found is None:
                    raise NoSuchSnapshotError(
                        f"Snapshot {entry.snapshot_id}, which the table had at {at}, has expired",
                        hint=hint,
                        timestamp_ms=timestamp_ms,
                    )
                return found
        raise NoSuchSnapshotError(
            f"The table had no snapshot at {at}",
            hint=hint,
            timestamp_ms=timestamp_ms,
        )

    def name_mapping(self) -> NameMapping | None:
        """Return the table's name mapping, for files without field ids; None if unset."""
        text = self.properties.get(NAME_MAPPING.key)
        if text is None:
            return None
        from icecomb.format.spec.name_mapping import NameMapping

        return NameMapping.from_json(text)

    def to_json(self) -> str:
        """Return the content of a metadata file: canonical JSON."""
        from icecomb.format.spec.metadata_json import metadata_to_json

        return metadata_to_json(self)

    @classmethod
    def from_json(cls, raw: bytes | str, location: str | None = None) -> TableMetadata:
        """Read the content of a metadata file.

        Args:
            raw: The JSON text, or its UTF-8 bytes.
            location: The file that it was read from, for error messages.

        Raises:
            CorruptFileError: If it is not JSON, lacks a required field, or contradicts itself.
            UnsupportedError: If it is of a format version that icecomb does not know.
        """
        from icecomb.format.spec.metadata_json import metadata_from_json

        return metadata_from_json(raw, location)

    def __reduce__(self) -> tuple[Callable[[str], TableMetadata], tuple[str]]:
        # Pickled as its JSON, which another version of icecomb can read, too.
        return TableMetadata.from_json, (self.to_json(),)

    def __copy__(self) -> TableMetadata:
        return self

    def __deepcopy__(self, memo: object) -> TableMetadata:
        return self

    @cached_property
    def unlike_by_schema(self) -> dict[int, tuple[Schema, frozenset[int]]]:
        """Results of `column_history` about schemas, by their `id()`."""
        return {}

    @cached_property
    def _specs(self) -> Mapping[int, PartitionSpec]:
        return MappingProxyType({spec.spec_id: spec for spec in self.partition_specs})

    @cached_property
    def _last(self) -> Snapshot | None:
        """The last snapshot, the one needed most often: found without indexing all of them."""
        return self.snapshots[-1] if self.snapshots else None

    @cached_property
    def _positions(self) -> Mapping[int, int]:
        ids = self._members("snapshot-id")
        return {snapshot_id: position for position, snapshot_id in enumerate(ids)}

    def _members(self, name: str) -> Iterable[Any]:
        """Return one member of each snapshot, by its name in JSON."""
        if isinstance(self.snapshots, JsonSequence):
            return self.snapshots.members(name)
        return (getattr(snapshot, name.replace("-", "_")) for snapshot in self.snapshots)


def existing_snapshot(
    metadata: TableMetadata, snapshot_id: int, said: str = "There is"
) -> Snapshot:
    """Return a snapshot; `said` begins the message of the error if there is none."""
    found = metadata.snapshot_by_id(snapshot_id)
    if found is None:
        raise NoSuchSnapshotError(
            f"{said} no snapshot {snapshot_id}",
            hint="Look for its id in the snapshots of the table; it may have expired.",
            snapshot_id=snapshot_id,
        )
    return found


def new_table_metadata(  # noqa: PLR0917
    schema: Schema,
    partition_spec: PartitionSpec,
    sort_order: SortOrder,
    location: str,
    properties: Mapping[str, str] | None = None,
    table_uuid: uuid.UUID | None = None,
    *,
    now_ms: int | None = None,
) -> TableMetadata:
    """Return the metadata of a new, empty table, as the reference implementation creates it.

    Field ids are reassigned from 1, partition field ids from 1000; sources of the spec and the
    sort order follow their fields. The property `format-version` selects the version (2 by
    default), and is not kept.

    Raises:
        ValidationError: If the spec or sort order does not fit the schema, or a property is wrong.
        UnsupportedError: If the format version is not supported or lacks the type of a column, or
            a column has a default value.
    """
    given = property_texts("property", properties)
    version = new_format_version(given)
    given.pop("format-version", None)
    check_properties(given)
    kept = {PARQUET_CODEC.key: PARQUET_CODEC.default, **given}
    check_types(schema, version)
    fresh = replace(assign_fresh_schema_ids(schema), schema_id=INITIAL_SCHEMA_ID)
    check_defaults(fresh, version)
    spec = assign_fresh_partition_spec_ids(partition_spec, schema, fresh)
    spec.check(fresh)
    order = assign_fresh_sort_order_ids(sort_order, schema, fresh)
    order.check(fresh)
    return TableMetadata(
        format_version=version,
        table_uuid=table_uuid or uuid.uuid4(),
        location=checked_text("location of a table", location),
        last_updated_ms=int(time.time() * 1000) if now_ms is None else now_ms,
        last_column_id=fresh.highest_field_id,
        schemas=(fresh,),
        current_schema_id=fresh.schema_id,
        partition_specs=(spec,),
        default_spec_id=spec.spec_id,
        last_partition_id=spec.last_assigned_field_id,
        sort_orders=(order,),
        default_sort_order_id=order.order_id,
        properties=MappingProxyType(kept),
    )


def with_properties(metadata: TableMetadata, more: Mapping[str, str]) -> TableMetadata:
    """Return metadata by which one write goes: with properties that the table does not get.

    The properties in `more` take precedence over the table's.
    """
    return replace(metadata, properties={**metadata.properties, **more}) if more else metadata


def new_format_version(properties: Mapping[str, str]) -> int:
    """Return the format version of a new table of some properties."""
    text = properties.get("format-version", str(DEFAULT_FORMAT_VERSION))
    if text not in {str(version) for version in SUPPORTED_FORMAT_VERSIONS}:
        raise UnsupportedError(
            f"Cannot create a table of format version {text} (v{text}), which is not supported",
            hint="Set the property format-version to 1, 2 or 3.",
        )
    return int(text)
