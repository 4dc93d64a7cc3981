"""Columns that an expression means, even if they are renamed before it is evaluated."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from icecomb.format.errors import ExpressionError, ValidationError
from icecomb.format.expressions.binding import unresolved_column
from icecomb.format.expressions.bound import BoundPredicate
from icecomb.format.expressions.expression import (
    BooleanExpression,
    SetPredicate,
    UnboundPredicate,
    replaced,
    rewrite_not,
    set_predicate,
)
from icecomb.format.expressions.term import Reference, Term

if TYPE_CHECKING:
    from icecomb.format.spec.schema import Schema


@dataclass(frozen=True, slots=True)
class ColumnNames:
    """The columns meant by names in expressions: those of the schema that the author saw.

    Other writers may rename columns, or swap their names, before the expression of a pending commit
    is evaluated: from then on columns are found by id.
    """

    schema: Schema
    case_sensitive: bool = True

    def now(self, expression: BooleanExpression, schema: Schema) -> BooleanExpression:
        """Return the expression with the full names that its columns have in a schema now."""
        known = replaced(
            rewrite_not(expression),
            UnboundPredicate,
            lambda predicate: self._renamed(predicate, schema),
        )
        return replaced(known, BoundPredicate, lambda predicate: _kept(predicate, schema))

    def _renamed(self, predicate: UnboundPredicate, schema: Schema) -> BooleanExpression:
        asked = predicate.term
        column = self._reference(asked if isinstance(asked, Reference) else asked.reference, schema)
        term: Term = column if isinstance(asked, Reference) else replace(asked, reference=column)
        if term == asked:
            return predicate
        if isinstance(predicate, SetPredicate):
            return set_predicate(predicate.operation, term, predicate.literals)
        return cast("BooleanExpression", replace(cast("Any", predicate), term=term))

    def _reference(self, asked: Reference, schema: Schema) -> Reference:
        try:
            field_id = self.schema.find_field(asked.name, self.case_sensitive).field_id
        except ValidationError as error:
            raise unresolved_column(self.schema, asked.name, error) from None
        name = schema.find_column_name(field_id)
        if name is None:
            raise _gone(asked.name)
        return asked if name == asked.name else Reference(name)


def _kept(predicate: BoundPredicate, schema: Schema) -> BooleanExpression:
    if not schema.contains(predicate.term.field_id):
        raise _gone(predicate.term.name)
    return predicate


def _gone(name: str) -> ExpressionError:
    return ExpressionError(
        f"Column {Reference(name)}, by which the change selects rows, was dropped meanwhile",
        hint="Load the table again, and repeat the change with columns that it has.",
        column=name,
    )
