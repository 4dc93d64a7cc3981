"""Bound expressions: predicates on columns by field id, literals as internal values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from icecomb.format.expressions.expression import (
    AlwaysFalse,
    AlwaysTrue,
    BooleanExpression,
    Junction,
    PredicateOperation,
    literal_predicate,
    set_predicate,
    unary_predicate,
)
from icecomb.format.expressions.term import Reference, UnboundTransform
from icecomb.format.spec.transform import TimeTransform, Transform, TruncateTransform
from icecomb.format.spec.types import (
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    NestedField,
)

_FLOATING = (FloatType, DoubleType)


@dataclass(frozen=True, slots=True)
class BoundReference:
    """A column of a schema, by its full dotted name.

    Attributes:
        may_be_null: Whether the field, or a struct around it, is optional.
    """

    field: NestedField
    name: str
    may_be_null: bool = True
    nested: bool = False

    @property
    def field_id(self) -> int:
        """The field's id."""
        return self.field.field_id

    @property
    def field_type(self) -> IcebergType:
        """The field's type."""
        return self.field.field_type

    @property
    def may_be_nan(self) -> bool:
        """True if the type has NaN values."""
        return isinstance(self.field.field_type, _FLOATING)

    @property
    def reference(self) -> BoundReference:
        """The column: this reference itself."""
        return self

    def unbound(self) -> Reference:
        """Return the column by name."""
        return Reference(self.name)

    def __str__(self) -> str:
        return str(self.unbound())


@dataclass(frozen=True, slots=True)
class BoundTransform:
    """A partition transform of a column of a schema; in bound predicates always a bucket."""

    transform: Transform
    reference: BoundReference

    @property
    def field_id(self) -> int:
        """The column's id."""
        return self.reference.field_id

    @property
    def name(self) -> str:
        """The column's full dotted name."""
        return self.reference.name

    @property
    def field_type(self) -> IcebergType:
        """The type of the results, wide enough for all possible ones."""
        source = self.reference.field_type
        if isinstance(self.transform, TimeTransform):
            result = self.transform.result_type(source)
            return result if isinstance(result, DateType) else LongType()
        if isinstance(self.transform, TruncateTransform):
            return DecimalType(38, source.scale) if isinstance(source, DecimalType) else source
        return IntegerType()

    @property
    def may_be_null(self) -> bool:
        """True if the column may be null: a transform gives null only for null."""
        return self.reference.may_be_null

    @property
    def may_be_nan(self) -> bool:
        """False: no result is NaN."""
        return False

    def unbound(self) -> UnboundTransform:
        """Return the transform of the column by name."""
        return UnboundTransform(self.transform, self.reference.unbound())

    def __str__(self) -> str:
        return str(self.unbound())


BoundTerm: TypeAlias = BoundReference | BoundTransform
"""The subject of a bound predicate."""


class BoundPredicate(BooleanExpression):
    """A predicate on one column of a known schema, or on a transform of it."""

    __slots__ = ()
    operation: PredicateOperation
    term: BoundTerm

    def unbound(self) -> BooleanExpression:
        """Return the predicate by column name, with literals in their internal form."""
        raise NotImplementedError

    def __str__(self) -> str:
        return str(self.unbound())


@dataclass(frozen=True, slots=True)
class BoundUnaryPredicate(BoundPredicate):
    """A bound predicate of one of `UNARY_OPERATIONS`."""

    operation: PredicateOperation
    term: BoundTerm

    def __invert__(self) -> BooleanExpression:
        return BoundUnaryPredicate(self.operation.negated, self.term)

    def unbound(self) -> BooleanExpression:
        """Return the predicate by column name."""
        return unary_predicate(self.operation, self.term.unbound())


@dataclass(frozen=True, slots=True)
class BoundLiteralPredicate(BoundPredicate):
    """A bound predicate of one of `LITERAL_OPERATIONS`; its literal is an internal value."""

    operation: PredicateOperation
    term: BoundTerm
    literal: Any

    def __invert__(self) -> BooleanExpression:
        return BoundLiteralPredicate(self.operation.negated, self.term, self.literal)

    def unbound(self) -> BooleanExpression:
        """Return the predicate by column name."""
        return literal_predicate(self.operation, self.term.unbound(), self.literal)


@dataclass(frozen=True, slots=True)
class BoundSetPredicate(BoundPredicate):
    """A bound predicate of `IN` or `NOT_IN`, with two or more internal values."""

    operation: PredicateOperation
    term: BoundTerm
    literals: frozenset[Any]

    def __invert__(self) -> BooleanExpression:
        return BoundSetPredicate(self.operation.negated, self.term, self.literals)

    def unbound(self) -> BooleanExpression:
        """Return the predicate by column name."""
        return set_predicate(self.operation, self.term.unbound(), self.literals)


def bound_predicates(expression: BooleanExpression) -> Iterator[BoundPredicate]:
    """Yield the predicates of a bound expression."""
    waiting = [expression]
    while waiting:
        found = waiting.pop()
        if isinstance(found, Junction):
            waiting.extend(reversed(found.operands))
        elif isinstance(found, BoundPredicate):
            yield found


def bound_references(expression: BooleanExpression) -> dict[int, BoundReference]:
    """Return the columns of a bound expression by field id."""
    terms = (predicate.term for predicate in bound_predicates(expression))
    return {term.field_id: term.reference for term in terms}


def bind_set(
    operation: PredicateOperation, term: BoundTerm, literals: Iterable[Any]
) -> BooleanExpression:
    """Return the bound predicate of a set operation: simpler for one value, constant for none."""
    values = frozenset(literals)
    if len(values) > 1:
        return BoundSetPredicate(operation, term, values)
    if values:
        single = (
            PredicateOperation.EQ
            if operation is PredicateOperation.IN
            else PredicateOperation.NOT_EQ
        )
        return BoundLiteralPredicate(single, term, next(iter(values)))
    return AlwaysFalse() if operation is PredicateOperation.IN else not_null(term)


def not_null(term: BoundTerm) -> BooleanExpression:
    """Return the predicate that a column is not null; a constant for one that never is."""
    column = term.reference
    return (
        BoundUnaryPredicate(PredicateOperation.NOT_NULL, column)
        if term.may_be_null
        else AlwaysTrue()
    )
