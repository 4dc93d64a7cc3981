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
    Operation,
    literal_predicate,
    replaced,
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
    """A column of a schema.

    Args:
        field: The field.
        name: Its full dotted name.
        may_be_null: Whether the field, or a struct around it, is optional.
        nested: Whether it lies inside a struct.
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
        """Whether the type has a NaN."""
        return isinstance(self.field.field_type, _FLOATING)

    @property
    def reference(self) -> BoundReference:
        """The column: this."""
        return self

    def unbound(self) -> Reference:
        """The column by name."""
        return Reference(self.name)

    def __str__(self) -> str:
        return str(self.unbound())


@dataclass(frozen=True, slots=True)
class BoundTransform:
    """A partition transform of a column of a schema.

    Args:
        transform: The transform; in bound predicates, a bucket.
        reference: The column.
    """

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
        """The type of the results, wide enough for all there can be."""
        source = self.reference.field_type
        if isinstance(self.transform, TimeTransform):
            result = self.transform.result_type(source)
            return result if isinstance(result, DateType) else LongType()
        if isinstance(self.transform, TruncateTransform):
            return DecimalType(38, source.scale) if isinstance(source, DecimalType) else source
        return IntegerType()

    @property
    def may_be_null(self) -> bool:
        """Whether the column may be null: a transform gives null for null only."""
        return self.reference.may_be_null

    @property
    def may_be_nan(self) -> bool:
        """Whether the type has a NaN: never."""
        return False

    def unbound(self) -> UnboundTransform:
        """The transform of the column by name."""
        return UnboundTransform(self.transform, self.reference.unbound())

    def __str__(self) -> str:
        return str(self.unbound())


BoundTerm: TypeAlias = BoundReference | BoundTransform
"""What a bound predicate asks about."""


class BoundPredicate(BooleanExpression):
    """A question about one column of a known schema, or a transform of it."""

    __slots__ = ()
    operation: Operation
    term: BoundTerm

    def unbound(self) -> BooleanExpression:
        """The predicate by name, with the same literals in their internal form."""
        raise NotImplementedError

    def __str__(self) -> str:
        return str(self.unbound())


@dataclass(frozen=True, slots=True)
class BoundUnaryPredicate(BoundPredicate):
    """One of `UNARY_OPERATIONS` on a column."""

    operation: Operation
    term: BoundTerm

    def __invert__(self) -> BooleanExpression:
        return BoundUnaryPredicate(self.operation.negated, self.term)

    def unbound(self) -> BooleanExpression:
        """The predicate by name."""
        return unary_predicate(self.operation, self.term.unbound())


@dataclass(frozen=True, slots=True)
class BoundLiteralPredicate(BoundPredicate):
    """One of `LITERAL_OPERATIONS` on a column.

    Args:
        operation: The comparison.
        term: The column.
        literal: The internal value it is compared with.
    """

    operation: Operation
    term: BoundTerm
    literal: Any

    def __invert__(self) -> BooleanExpression:
        return BoundLiteralPredicate(self.operation.negated, self.term, self.literal)

    def unbound(self) -> BooleanExpression:
        """The predicate by name."""
        return literal_predicate(self.operation, self.term.unbound(), self.literal)


@dataclass(frozen=True, slots=True)
class BoundSetPredicate(BoundPredicate):
    """One of `SET_OPERATIONS` on a column.

    Args:
        operation: In or not in.
        term: The column.
        literals: Two or more internal values.
    """

    operation: Operation
    term: BoundTerm
    literals: frozenset[Any]

    def __invert__(self) -> BooleanExpression:
        return BoundSetPredicate(self.operation.negated, self.term, self.literals)

    def unbound(self) -> BooleanExpression:
        """The predicate by name."""
        return set_predicate(self.operation, self.term.unbound(), self.literals)


def unbind(expression: BooleanExpression) -> BooleanExpression:
    """The same expression by column names; literals keep their internal form."""
    return replaced(expression, BoundPredicate, lambda predicate: predicate.unbound())


def bound_predicates(expression: BooleanExpression) -> Iterator[BoundPredicate]:
    """The predicates of a bound expression."""
    waiting = [expression]
    while waiting:
        found = waiting.pop()
        if isinstance(found, Junction):
            waiting.extend(reversed(found.operands))
        elif isinstance(found, BoundPredicate):
            yield found


def bound_references(expression: BooleanExpression) -> dict[int, BoundReference]:
    """The columns a bound expression asks about, by field id."""
    terms = (predicate.term for predicate in bound_predicates(expression))
    return {term.field_id: term.reference for term in terms}


def bind_set(operation: Operation, term: BoundTerm, literals: Iterable[Any]) -> BooleanExpression:
    """The bound predicate of a set operation: simpler for one value, a constant for none."""
    values = frozenset(literals)
    if len(values) > 1:
        return BoundSetPredicate(operation, term, values)
    if values:
        single = Operation.EQ if operation is Operation.IN else Operation.NOT_EQ
        return BoundLiteralPredicate(single, term, next(iter(values)))
    return AlwaysFalse() if operation is Operation.IN else not_null(term)


def not_null(term: BoundTerm) -> BooleanExpression:
    """Where a column is not null; a constant for one that never is."""
    column = term.reference
    return BoundUnaryPredicate(Operation.NOT_NULL, column) if term.may_be_null else AlwaysTrue()
