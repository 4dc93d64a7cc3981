"""Requirements of a commit on the table's current metadata (spec: Commit Conflict Resolution)."""

from __future__ import annotations

import uuid as uuids
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from icecomb.format.errors import CommitFailedError

if TYPE_CHECKING:
    from icecomb.format.spec.metadata import TableMetadata


class TableRequirement(Protocol):
    """A condition of a commit."""

    __slots__ = ()

    def check(self, metadata: TableMetadata | None) -> None:
        """Check the condition on the table's metadata, None if there is none.

        CommitFailedError is raised if it does not hold (anymore).
        """
        ...


def _same(what: str, expected: object, found: object) -> None:
    if expected != found:
        raise CommitFailedError(
            f"{what} has changed: expected {expected}, found {found}",
            hint="Load the table again and repeat the change.",
        )


def _present(metadata: TableMetadata | None) -> TableMetadata:
    if metadata is None:
        raise CommitFailedError(
            "The table does not exist anymore", hint="Create it again, or check its name."
        )
    return metadata


@dataclass(frozen=True, slots=True)
class AssertCreate(TableRequirement):
    """The requirement that no table of this name exists yet."""

    def check(self, metadata: TableMetadata | None) -> None:
        if metadata is not None:
            raise CommitFailedError(
                "The table was created concurrently",
                hint="Load that table, or choose another name.",
            )


@dataclass(frozen=True, slots=True)
class AssertTableUUID(TableRequirement):
    """The requirement that it is the same table, not another one of its name."""

    uuid: uuids.UUID | None

    def check(self, metadata: TableMetadata | None) -> None:
        _same("table-uuid", self.uuid, _present(metadata).table_uuid)


@dataclass(frozen=True, slots=True)
class AssertRefSnapshotId(TableRequirement):
    """The requirement that a branch or tag points to a snapshot; None: that it does not exist."""

    ref: str
    snapshot_id: int | None

    def check(self, metadata: TableMetadata | None) -> None:
        found = _present(metadata).refs.get(self.ref)
        _same(f"ref {self.ref}", self.snapshot_id, None if found is None else found.snapshot_id)


@dataclass(frozen=True, slots=True)
class AssertLastAssignedFieldId(TableRequirement):
    """The requirement that no field id was assigned since."""

    last_assigned_field_id: int

    def check(self, metadata: TableMetadata | None) -> None:
        found = _present(metadata).last_column_id
        _same("last-column-id", self.last_assigned_field_id, found)


@dataclass(frozen=True, slots=True)
class AssertCurrentSchemaId(TableRequirement):
    """The requirement that a schema is still the current one."""

    current_schema_id: int

    def check(self, metadata: TableMetadata | None) -> None:
        found = _present(metadata).current_schema_id
        _same("current-schema-id", self.current_schema_id, found)


@dataclass(frozen=True, slots=True)
class AssertLastAssignedPartitionId(TableRequirement):
    """The requirement that no partition field id was assigned since."""

    last_assigned_partition_id: int

    def check(self, metadata: TableMetadata | None) -> None:
        found = _present(metadata).last_partition_id
        _same("last-partition-id", self.last_assigned_partition_id, found)


@dataclass(frozen=True, slots=True)
class AssertDefaultSpecId(TableRequirement):
    """The requirement that a partition spec is still the default for writers."""

    default_spec_id: int

    def check(self, metadata: TableMetadata | None) -> None:
        _same("default-spec-id", self.default_spec_id, _present(metadata).default_spec_id)


@dataclass(frozen=True, slots=True)
class AssertDefaultSortOrderId(TableRequirement):
    """The requirement that a sort order is still the default for writers."""

    default_sort_order_id: int

    def check(self, metadata: TableMetadata | None) -> None:
        found = _present(metadata).default_sort_order_id
        _same("default-sort-order-id", self.default_sort_order_id, found)
