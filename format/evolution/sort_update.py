"""Changes of the sort order of a table (spec: Sorting)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icecomb.format.errors import CommitFailedError
from icecomb.format.evolution.pending_update import Commit, RecordedUpdate
from icecomb.format.spec.change.requirement import AssertDefaultSortOrderId, AssertTableUUID
from icecomb.format.spec.change.update import AddSortOrderUpdate, Changes, SetDefaultSortOrderUpdate
from icecomb.format.spec.sort import NullOrder, SortDirection, SortField, SortOrder
from icecomb.format.spec.transform import IdentityTransform, Transform, as_transform

if TYPE_CHECKING:
    from typing_extensions import Self

    from icecomb.format.spec.metadata import TableMetadata


class UpdateSortOrder(RecordedUpdate["SortEdit"]):
    """An update that replaces the sort order; its keys are given in order, none for unsorted.

    Args:
        base: The table's metadata.
        commit: See `PendingUpdate`.
        case_sensitive: Whether given names distinguish `Id` from `id`.
    """

    def __init__(
        self, base: TableMetadata, commit: Commit | None = None, *, case_sensitive: bool = True
    ) -> None:
        super().__init__(base, commit)
        self._case_sensitive = case_sensitive

    def asc(
        self,
        source_column_name: str,
        transform: str | Transform = IdentityTransform(),  # noqa: B008 - a constant
        null_order: NullOrder | None = None,
    ) -> Self:
        """Sort by a column in ascending order, after the keys given before.

        Args:
            source_column_name: The column.
            transform: A transform of its values, for example ``"bucket[16]"``; by default none.
            null_order: The position of nulls; by default first.

        Raises:
            ValidationError: If there is no such column, or the transform does not fit it.
        """
        return self._add(source_column_name, transform, SortDirection.ASC, null_order)

    def desc(
        self,
        source_column_name: str,
        transform: str | Transform = IdentityTransform(),  # noqa: B008 - a constant
        null_order: NullOrder | None = None,
    ) -> Self:
        """Sort by a column in descending order; see `asc`. Nulls are last by default."""
        return self._add(source_column_name, transform, SortDirection.DESC, null_order)

    def apply(self, base: TableMetadata) -> Changes:
        edit = self._replayed(base)
        if [f.source_id for f in edit.fields] != [f.source_id for f in self._edit.fields]:
            raise CommitFailedError(
                "A column of the sort order is another one now: the schema was changed",
                hint="Refresh the table, and check its schema.",
            )
        order = SortOrder(0 if not edit.fields else 1, tuple(edit.fields))
        order.check(base.schema())
        if order.fields == base.sort_order().fields:
            return Changes()
        return Changes(
            (
                AssertTableUUID(base.table_uuid),
                AssertDefaultSortOrderId(base.default_sort_order_id),
            ),
            (AddSortOrderUpdate(order), SetDefaultSortOrderUpdate()),
        )

    def _add(
        self,
        column: str,
        transform: str | Transform,
        direction: SortDirection,
        null_order: NullOrder | None,
    ) -> Self:
        given = as_transform(transform)
        self._record(lambda edit: edit.add(column, given, direction, null_order))
        return self

    def _begin(self, base: TableMetadata) -> SortEdit:
        return SortEdit(base, case_sensitive=self._case_sensitive)


class SortEdit:
    """A sort order being edited."""

    def __init__(self, base: TableMetadata, *, case_sensitive: bool) -> None:
        self._schema = base.schema()
        self._case_sensitive = case_sensitive
        self.fields: list[SortField] = []

    def add(
        self,
        column: str,
        transform: Transform,
        direction: SortDirection,
        null_order: NullOrder | None,
    ) -> None:
        """Add a key after the others."""
        source = self._schema.find_field(column, self._case_sensitive)
        transform.check(source.field_type, self._schema.find_column_name(source.field_id))
        self.fields.append(SortField(source.field_id, transform, direction, null_order))
