"""Which columns an expression means, whatever they are called by the time it is evaluated."""

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
    """The names that expressions use, and the columns that they mean: those of a schema.

    Others may rename the columns of a table, or swap their names, before an expression that waits
    for a commit is evaluated: names are looked up once, in the schema that whoever wrote the
    expression saw, and columns are found by their ids from then on.

    Args:
        schema: That schema.
        case_sensitive: Whether `Id` and `id` are different names.
    """

    schema: Schema
    case_sensitive: bool = True

    def now(self, expression: BooleanExpression, schema: Schema) -> BooleanExpression:
        """The expression by the full names, in their own case, that its columns have in a schema.

        Raises:
            ExpressionError: A name is unknown, or its column is not in that schema any more.
        """
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
        f"Column {Reference(name)}, which the change finds rows by, was dropped meanwhile",
        hint="Load the table again, and repeat the change with columns that it has.",
        column=name,
    )
