"""What must still be true of a table at a commit (spec: Commit Conflict Resolution)."""

from __future__ import annotations

import uuid as uuids
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from icecomb.format.errors import CommitFailedError

if TYPE_CHECKING:
    from icecomb.format.spec.metadata import TableMetadata


class TableRequirement(Protocol):
    """One condition of a commit."""

    def check(self, metadata: TableMetadata | None) -> None:
        """Compare with the table as it is; None means that there is no such table.

        Raises:
            CommitFailedError: The condition does not hold (any more).
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
            "The table does not exist any more", hint="Create it again, or check its name."
        )
    return metadata


@dataclass(frozen=True, slots=True)
class AssertCreate:
    """There is no table of this name yet."""

    def check(self, metadata: TableMetadata | None) -> None:
        """See `TableRequirement.check`."""
        if metadata is not None:
            raise CommitFailedError(
                "The table was created concurrently",
                hint="Load that table, or choose another name.",
            )


@dataclass(frozen=True, slots=True)
class AssertTableUUID:
    """It is the same table, not another one under its name."""

    uuid: uuids.UUID | None

    def check(self, metadata: TableMetadata | None) -> None:
        """See `TableRequirement.check`."""
        _same("table-uuid", self.uuid, _present(metadata).table_uuid)


@dataclass(frozen=True, slots=True)
class AssertRefSnapshotId:
    """A branch or tag points where it did; None means that it does not exist."""

    ref: str
    snapshot_id: int | None

    def check(self, metadata: TableMetadata | None) -> None:
        """See `TableRequirement.check`."""
        found = _present(metadata).refs.get(self.ref)
        _same(f"ref {self.ref}", self.snapshot_id, None if found is None else found.snapshot_id)


@dataclass(frozen=True, slots=True)
class AssertLastAssignedFieldId:
    """No field id was given out since."""

    last_assigned_field_id: int

    def check(self, metadata: TableMetadata | None) -> None:
        """See `TableRequirement.check`."""
        found = _present(metadata).last_column_id
        _same("last-column-id", self.last_assigned_field_id, found)


@dataclass(frozen=True, slots=True)
class AssertCurrentSchemaId:
    """The schema is still the current one."""

    current_schema_id: int

    def check(self, metadata: TableMetadata | None) -> None:
        """See `TableRequirement.check`."""
        found = _present(metadata).current_schema_id
        _same("current-schema-id", self.current_schema_id, found)


@dataclass(frozen=True, slots=True)
class AssertLastAssignedPartitionId:
    """No partition field id was given out since."""

    last_assigned_partition_id: int

    def check(self, metadata: TableMetadata | None) -> None:
        """See `TableRequirement.check`."""
        found = _present(metadata).last_partition_id
        _same("last-partition-id", self.last_assigned_partition_id, found)


@dataclass(frozen=True, slots=True)
class AssertDefaultSpecId:
    """The partition spec is still the writers' one."""

    default_spec_id: int

    def check(self, metadata: TableMetadata | None) -> None:
        """See `TableRequirement.check`."""
        _same("default-spec-id", self.default_spec_id, _present(metadata).default_spec_id)


@dataclass(frozen=True, slots=True)
class AssertDefaultSortOrderId:
    """The sort order is still the writers' one."""

    default_sort_order_id: int

    def check(self, metadata: TableMetadata | None) -> None:
        """See `TableRequirement.check`."""
        found = _present(metadata).default_sort_order_id
        _same("default-sort-order-id", self.default_sort_order_id, found)
