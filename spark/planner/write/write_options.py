"""Options of a write, and settings of its session for writes.

Options about the columns of rows are in `given_rows`. Unknown options are ignored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from icecomb.format.errors import ValidationError
from icecomb.format.property.property import choice, optional_number
from icecomb.format.rows.write.write_option import OUTPUT_SPEC
from icecomb.spark.planner.options import Options
from icecomb.spark.planner.write.table_change import OVERWRITE, OVERWRITE_PARTITIONS

if TYPE_CHECKING:
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.partition import PartitionSpec
    from icecomb.spark.planner.protocol.writes import BeginWrite

_SORT_ORDER: Final = optional_number("output-sort-order-id", "The sort order of new files.")
_FROM: Final = optional_number(
    "validate-from-snapshot-id", "The snapshot from which concurrent commits are validated."
)
_ISOLATION: Final = choice(
    "isolation-level",
    ("serializable", "snapshot"),
    "Whether concurrently added rows conflict.",
)


class WriteOptions(Options):
    """The options of one write."""

    def output_spec(self, metadata: TableMetadata) -> PartitionSpec:
        """Return the partition spec of new files."""
        number = self.of(OUTPUT_SPEC, {}, OUTPUT_SPEC.key)
        if number is None:
            return metadata.spec()
        specs = metadata.specs()
        if number not in specs:
            raise ValidationError(
                f"Output spec id {number} is not a valid spec id for table",
                hint=f"it has {', '.join(map(str, sorted(specs)))}",
            )
        return specs[number]

    def output_sort_order(self, metadata: TableMetadata, *, is_ordered: bool) -> int:
        """Return the id of the sort order of new files; 0 for none.

        Args:
            is_ordered: Whether rows come in the table's order.
        """
        number = self.of(_SORT_ORDER, {}, _SORT_ORDER.key)
        if number is None:
            return metadata.sort_order().order_id if is_ordered else 0
        known = {order.order_id for order in metadata.sort_orders}
        if number not in known:
            raise ValidationError(
                f"Cannot use output sort order id {number} because the table does not contain a "
                "sort order with that id",
                hint=f"it has {', '.join(map(str, sorted(known)))}",
            )
        return number

    def operation(self, request: BeginWrite) -> str:
        """Return the operation; `overwrite-mode=dynamic` restricts a full overwrite.

        It then replaces only the partitions of the new files.
        """
        everything = all(each.get("op") == "always_true" for each in request.filters)
        if (
            request.operation == OVERWRITE
            and everything
            and (self.text("overwrite-mode") or "").lower() == "dynamic"
        ):
            return OVERWRITE_PARTITIONS
        return request.operation

    def validated_from(self, metadata: TableMetadata, head: int | None) -> int | None:
        """Return the snapshot from which concurrent commits are validated; None for all.

        Who gives an isolation level without it has Iceberg look at the whole history, too.

        Args:
            head: The snapshot that the statement has read, see `oldest_read`.
        """
        number = self.of(_FROM, {}, _FROM.key)
        if number is None:
            return head if self.is_serializable() is None else None
        if metadata.snapshot_by_id(number) is None:
            raise ValidationError(
                f"There is no snapshot {number} to validate from",
                hint="give the id of a snapshot that the branch has had",
            )
        return number

    def is_serializable(self) -> bool | None:
        """Return whether concurrently added rows conflict; None to use the table's properties."""
        if self.text(_ISOLATION.key) is None:
            return None
        return self.of(_ISOLATION, {}, _ISOLATION.key) == "serializable"
