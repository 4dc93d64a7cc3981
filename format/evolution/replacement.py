"""Replacement of a table: new schema, spec and order and no rows, on top of the old history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

from icecomb.format.argument import checked_text, property_texts
from icecomb.format.evolution.pending_update import Commit, PendingUpdate
from icecomb.format.evolution.property_update import check_version, keeping_folders
from icecomb.format.property.table_property import NAME_MAPPING, PARQUET_CODEC, check_properties
from icecomb.format.spec.change.requirement import AssertTableUUID
from icecomb.format.spec.change.update import (
    AddPartitionSpecUpdate,
    AddSchemaUpdate,
    AddSortOrderUpdate,
    Changes,
    RemoveSnapshotRefUpdate,
    SetCurrentSchemaUpdate,
    SetDefaultSortOrderUpdate,
    SetDefaultSpecUpdate,
    SetLocationUpdate,
    SetPropertiesUpdate,
    TableUpdate,
    UpgradeFormatVersionUpdate,
)
from icecomb.format.spec.name_mapping import update_name_mapping
from icecomb.format.spec.partition import (
    PartitionField,
    PartitionSpec,
    assign_fresh_partition_spec_ids,
)
from icecomb.format.spec.schema import assign_fresh_schema_ids
from icecomb.format.spec.snapshot import MAIN_BRANCH
from icecomb.format.spec.sort import assign_fresh_sort_order_ids
from icecomb.format.spec.transform import VoidTransform
from icecomb.format.storage.location import check_table_location

if TYPE_CHECKING:
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.schema import Schema
    from icecomb.format.spec.sort import SortOrder

_FORMAT_VERSION = "format-version"


class TableReplacement(PendingUpdate):
    """An update that replaces a table by an empty one; history and refs except ``main`` stay.

    Columns keep the ids that the old schema has under their names if files with the old types can
    be read with the new ones: remaining snapshots and delayed writers use the old ids.

    Args:
        schema: The columns, with any ids.
        partition_spec: The new partition spec; its sources are ids of ``schema``.
        sort_order: The order of new files; its sources are ids of ``schema``.
        location: The new folder; by default the old one.
        properties: Properties to add to the old ones; ``format-version`` upgrades the table.
        commit: See `PendingUpdate`.

    Raises:
        ValidationError: If a property cannot be set, or not to that value.
    """

    def __init__(
        self,
        schema: Schema,
        partition_spec: PartitionSpec,
        sort_order: SortOrder,
        *,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
        commit: Commit | None = None,
    ) -> None:
        super().__init__(commit)
        self._schema = schema
        self._spec = partition_spec
        self._order = sort_order
        if location is not None:
            location = checked_text("location of a table", location)
        self._location = location
        given = property_texts("property", properties)
        version = given.pop(_FORMAT_VERSION, None)
        if version is not None:
            check_version(version)
        self._version = None if version is None else int(version)
        check_properties(given)
        self._properties = {
            PARQUET_CODEC.key: PARQUET_CODEC.default,
            **given,
        }

    def apply(self, base: TableMetadata) -> Changes:
        fresh = assign_fresh_schema_ids(self._schema, base.schema(), base.last_column_id)
        spec = _with_known_ids(
            assign_fresh_partition_spec_ids(self._spec, self._schema, fresh),
            base,
            self._version or base.format_version,
        )
        # specs and orders of the old table are reused unchecked, but a column's type may differ
        spec.check(fresh)
        order = assign_fresh_sort_order_ids(self._order, self._schema, fresh)
        order.check(fresh)
        mapping = base.name_mapping()
        if mapping is not None:
            # older snapshots still have files without ids
            mapping = update_name_mapping(mapping, base.schema(), fresh)
        updates: list[TableUpdate] = []
        if self._version is not None:
            updates.append(UpgradeFormatVersionUpdate(self._version))
        updates += (
            RemoveSnapshotRefUpdate(MAIN_BRANCH),
            AddSchemaUpdate(fresh),
            SetCurrentSchemaUpdate(),
            AddPartitionSpecUpdate(spec),
            SetDefaultSpecUpdate(),
            AddSortOrderUpdate(order),
            SetDefaultSortOrderUpdate(),
        )
        if self._location is not None:
            check_table_location(self._location)
            updates.append(SetLocationUpdate(self._location))
        mapped = {} if mapping is None else {NAME_MAPPING.key: mapping.to_json()}
        updates.append(SetPropertiesUpdate({**mapped, **self._properties}))
        updates += keeping_folders(base, updates)
        return Changes((AssertTableUUID(base.table_uuid),), tuple(updates))


def _with_known_ids(spec: PartitionSpec, base: TableMetadata, version: int) -> PartitionSpec:
    """Return the spec with the field ids that the table's specs have for the same values."""
    unused = count(base.last_partition_id + 1)
    if version == 1:
        return replace(spec, fields=_after_old_fields(spec, base.spec(), unused))
    known: dict[tuple[int, str], int] = {}
    for old in base.partition_specs:
        for f in old.fields:
            known[_values(f)] = max(f.field_id, known.get(_values(f), 0))
    fields = []
    for f in spec.fields:
        if _values(f) not in known:
            known[_values(f)] = next(unused)
        fields.append(replace(f, field_id=known[_values(f)]))
    return replace(spec, fields=tuple(fields))


def _after_old_fields(
    spec: PartitionSpec, old: PartitionSpec, unused: count[int]
) -> tuple[PartitionField, ...]:
    """Return the old fields in their positions, void where the spec lacks them, then the new ones.

    Format version 1 identifies partition fields only by position.
    """
    names = {f.name for f in spec.fields}
    new = {_values(f): f for f in spec.fields}
    fields = []
    for f in old.fields:
        kept = new.pop(_values(f), None)
        if kept is not None:
            fields.append(replace(kept, field_id=f.field_id))
            continue
        name = f"{f.name}_{f.field_id}" if f.name in names else f.name
        fields.append(replace(f, name=name, transform=VoidTransform()))
    fields += (replace(f, field_id=next(unused)) for f in new.values())
    return tuple(fields)


def _values(f: PartitionField) -> tuple[int, str]:
    return f.source_id, str(f.transform)
