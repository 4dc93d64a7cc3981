"""Execution of statements: one commit each, or none if nothing changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icecomb.catalog.table.ref_change import DropRef, MakeRef, drop_ref, make_ref
from icecomb.format.errors import ValidationError
from icecomb.format.property.table_property import DISTRIBUTION_MODE
from icecomb.format.spec.sort import NullOrder
from icecomb.spark.partitioning import iceberg_transform
from icecomb.spark.planner.statements.grammar import parse_statement
from icecomb.spark.planner.statements.statement import (
    AddPartitionField,
    Column,
    DropIdentifierFields,
    DropPartitionField,
    ReplacePartitionField,
    SetIdentifierFields,
    SetWriteOrder,
    Term,
)

if TYPE_CHECKING:
    from icecomb.catalog.table.transaction import Transaction
    from icecomb.format.evolution.spec_update import UpdateSpec
    from icecomb.format.spec.transform import Transform


def change_by_statement(transaction: Transaction, text: str, *, case_sensitive: bool) -> None:
    """Apply the change of a statement, the text after ``ALTER TABLE name``, to a transaction."""
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
            make_ref(transaction, statement)
        case DropRef() as statement:
            drop_ref(transaction, statement)


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
        """Return the name of the partition field that a term refers to.

        A word that is not a column is the name itself, as in Iceberg Java.
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
            hint=f"Its partition fields are {shown}." if shown else "It is not partitioned.",
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
                    f"Column {column!r} is not an identifier field",
                    hint=f"Identifier fields are {names}." if names else "The table has none.",
                )
        self.set_identifier_fields(tuple(kept.values()))


def _add(update: UpdateSpec, term: Term, name: str | None) -> None:
    transform, column = _source(term)
    update.add_field(column, transform, name)


def _source(term: Term) -> tuple[Transform, str]:
    """Return Iceberg's transform of a term, and its column."""
    transform, column = iceberg_transform(term.to_spark())
    return transform, ".".join(column)
