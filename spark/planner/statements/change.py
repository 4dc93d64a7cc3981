"""What a statement does to a table: one commit, or none where nothing changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icecomb.format.errors import ValidationError
from icecomb.format.operation.append import FastAppend
from icecomb.format.spec.sort import NullOrder
from icecomb.format.spec.table_property import DISTRIBUTION_MODE
from icecomb.spark.partitioning import iceberg_transform
from icecomb.spark.planner.statements.grammar import parse_statement
from icecomb.spark.planner.statements.statement import (
    AddPartitionField,
    Column,
    DropIdentifierFields,
    DropPartitionField,
    DropRef,
    MakeRef,
    ReplacePartitionField,
    SetIdentifierFields,
    SetWriteOrder,
    Term,
)

if TYPE_CHECKING:
    from icecomb.catalog.transaction import Transaction
    from icecomb.format.evolution.spec_update import UpdateSpec
    from icecomb.format.operation.snapshot_management import ManageSnapshots
    from icecomb.format.spec.transform import Transform


def change_by_statement(transaction: Transaction, text: str, *, case_sensitive: bool) -> None:
    """Make the change that a statement describes.

    Args:
        transaction: Takes the change.
        text: What stands behind ``ALTER TABLE name``.
        case_sensitive: Whether names of columns tell ``Id`` from ``id``.

    Raises:
        ValidationError: The statement cannot be read, or does not fit the table.
        NoSuchSnapshotError: There is no such snapshot, branch or tag.
        UnsupportedError: A transform that Iceberg does not have.
    """
    change = _Change(transaction, case_sensitive=case_sensitive)
    match parse_statement(text):
        case AddPartitionField() as statement:
            change.add_partition_field(statement)
        case DropPartitionField() as statement:
            change.drop_partition_field(statement)
        case ReplacePartitionField() as statement:
            change.replace_partition_field(statement)
        case SetWriteOrder() as statement:
            change.set_write_order(statement)
        case SetIdentifierFields() as statement:
            change.set_identifier_fields(tuple(map(".".join, statement.columns)))
        case DropIdentifierFields() as statement:
            change.drop_identifier_fields(statement.columns)
        case MakeRef() as statement:
            change.make_ref(statement)
        case DropRef() as statement:
            change.drop_ref(statement)


class _Change:
    """One statement on one table."""

    def __init__(self, transaction: Transaction, *, case_sensitive: bool) -> None:
        self._transaction = transaction
        self._case_sensitive = case_sensitive

    def add_partition_field(self, statement: AddPartitionField) -> None:
        with self._transaction.update_spec(self._case_sensitive) as update:
            _add(update, statement.term, statement.name)

    def drop_partition_field(self, statement: DropPartitionField) -> None:
        with self._transaction.update_spec(self._case_sensitive) as update:
            update.remove_field(self._partition_field(statement.term))

    def replace_partition_field(self, statement: ReplacePartitionField) -> None:
        with self._transaction.update_spec(self._case_sensitive) as update:
            update.remove_field(self._partition_field(statement.term))
            _add(update, statement.replacement, statement.name)

    def _partition_field(self, term: Term) -> str:
        """The name of the partition field that a term means.

        A word that is no column is the name itself, as for Iceberg Java.
        """
        schema, spec = self._transaction.metadata.schema(), self._transaction.metadata.spec()
        word = term.plain_name
        if word is not None and not schema.contains(word, case_sensitive=self._case_sensitive):
            return word
        transform, column = _source(term)
        source = schema.find_field(column, self._case_sensitive)
        for field in spec.fields:
            if (field.source_id, field.transform) == (source.field_id, transform):
                return field.name
        shown = ", ".join(
            f"{field.transform}({schema.find_column_name(field.source_id)}) as {field.name}"
            for field in spec.fields
        )
        raise ValidationError(
            f"The table has no partition field {transform} of column {column!r}",
            hint=f"its partition fields are {shown}" if shown else "it is not partitioned",
        )

    def set_write_order(self, statement: SetWriteOrder) -> None:
        with self._transaction.update_sort_order(self._case_sensitive) as update:
            for key in statement.order:
                transform, column = _source(key.term)
                nulls = NullOrder.NULLS_FIRST if key.nulls_first else NullOrder.NULLS_LAST
                (update.desc if key.descending else update.asc)(column, transform, nulls)
        if statement.distribution is not None:
            self._transaction.set_properties({DISTRIBUTION_MODE.key: statement.distribution})

    def set_identifier_fields(self, names: tuple[str, ...]) -> None:
        with self._transaction.update_schema(case_sensitive=self._case_sensitive) as update:
            update.set_identifier_fields(*names)

    def drop_identifier_fields(self, columns: tuple[Column, ...]) -> None:
        schema = self._transaction.metadata.schema()
        kept = {i: schema.find_column_name(i) or "" for i in schema.identifier_field_ids}
        for column in map(".".join, columns):
            found = schema.find_field(column, self._case_sensitive).field_id
            if kept.pop(found, None) is None:
                names = ", ".join(sorted(map(str, schema.identifier_field_names())))
                raise ValidationError(
                    f"Column {column!r} is no identifier field",
                    hint=f"identifier fields are {names}" if names else "the table has none",
                )
        self.set_identifier_fields(tuple(kept.values()))

    def make_ref(self, statement: MakeRef) -> None:
        metadata = self._transaction.metadata
        exists = statement.name in metadata.refs
        if exists and statement.if_not_exists:
            return
        current = metadata.current_snapshot()
        snapshot_id = statement.snapshot_id
        if snapshot_id is None and current is not None:
            snapshot_id = current.snapshot_id
        moves = statement.replace and (exists or not statement.create)
        if snapshot_id is None:
            if moves or statement.kind == "tag":
                raise ValidationError(
                    f"{statement.kind.title()} {statement.name!r} has nothing to point to: "
                    "the table has no snapshot",
                    hint="insert rows first, or name a snapshot by AS OF VERSION",
                )
            # as Iceberg Java does: a branch of a table without rows begins with a snapshot of none
            self._transaction.commit(FastAppend(self._transaction.io, branch=statement.name))
        with self._transaction.manage_snapshots() as manage:
            if snapshot_id is not None:
                self._point(manage, statement, snapshot_id, moves=moves)
            _limit(manage, statement)

    @staticmethod
    def _point(
        manage: ManageSnapshots, statement: MakeRef, snapshot_id: int, *, moves: bool
    ) -> None:
        branch = statement.kind == "branch"
        if moves:
            (manage.replace_branch if branch else manage.replace_tag)(snapshot_id, statement.name)
        elif branch:
            manage.create_branch(snapshot_id, statement.name)
        else:
            manage.create_tag(snapshot_id, statement.name)

    def drop_ref(self, statement: DropRef) -> None:
        if statement.if_exists and statement.name not in self._transaction.metadata.refs:
            return
        with self._transaction.manage_snapshots() as manage:
            if statement.kind == "branch":
                manage.remove_branch(statement.name)
            else:
                manage.remove_tag(statement.name)


def _add(update: UpdateSpec, term: Term, name: str | None) -> None:
    transform, column = _source(term)
    update.add_field(column, transform, name)


def _source(term: Term) -> tuple[Transform, str]:
    """Iceberg's transform of a term, and the column it is of."""
    transform, column = iceberg_transform(term.to_spark())
    return transform, ".".join(column)


def _limit(manage: ManageSnapshots, statement: MakeRef) -> None:
    if statement.min_snapshots_to_keep is not None:
        manage.set_min_snapshots_to_keep(statement.name, statement.min_snapshots_to_keep)
    if statement.max_snapshot_age_ms is not None:
        manage.set_max_snapshot_age_ms(statement.name, statement.max_snapshot_age_ms)
    if statement.max_ref_age_ms is not None:
        manage.set_max_ref_age_ms(statement.name, statement.max_ref_age_ms)
