"""Expressions bound to a schema: columns by field id, literals as internal values.

Binding converts each literal to the type of its column without changing what is selected: a value
between two values the column can hold moves the comparison (`id > 1.5` is `id >= 2`), a value out
of the column's range decides it (`id < 2 ** 40` selects every int that is not null).
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from icecomb.format.errors import ExpressionError, ValidationError
from icecomb.format.expressions.expression import (
    UNARY_OPERATIONS,
    AlwaysFalse,
    AlwaysTrue,
    And,
    BooleanExpression,
    LiteralPredicate,
    Operation,
    Or,
    SetPredicate,
    UnboundPredicate,
    conjunction,
    disjunction,
    literal_predicate,
    rewrite_not,
    set_predicate,
    unary_predicate,
)
from icecomb.format.expressions.literal import Converted, convert_literal
from icecomb.format.expressions.term import Reference, Term, UnboundTransform
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.transform import TimeTransform, Transform, TruncateTransform
from icecomb.format.spec.types import (
    BinaryType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
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


def bind(
    schema: Schema,
    expression: BooleanExpression,
    case_sensitive: bool = True,  # noqa: FBT001, FBT002 - PyIceberg's signature
) -> BooleanExpression:
    """Find the columns of an expression and convert its literals.

    Args:
        schema: Where the columns are looked up.
        expression: Unbound; what is bound already stays as it is.
        case_sensitive: Whether `Id` and `id` are different names.

    Returns:
        An expression of `And`, `Or`, constants and bound predicates, without `Not`.

    Raises:
        ExpressionError: A column is unknown, or a literal does not fit its type.
    """
    return _bind(schema, rewrite_not(expression), case_sensitive=case_sensitive)


def unbind(expression: BooleanExpression) -> BooleanExpression:
    """The same expression by column names; literals keep their internal form."""
    if isinstance(expression, And):
        return conjunction(map(unbind, expression.operands))
    if isinstance(expression, Or):
        return disjunction(map(unbind, expression.operands))
    if isinstance(expression, BoundPredicate):
        return expression.unbound()
    return expression


def bound_references(expression: BooleanExpression) -> dict[int, BoundReference]:
    """The columns a bound expression asks about, by field id."""
    if isinstance(expression, (And, Or)):
        found: dict[int, BoundReference] = {}
        for operand in expression.operands:
            found.update(bound_references(operand))
        return found
    if isinstance(expression, BoundPredicate):
        return {expression.term.field_id: expression.term.reference}
    return {}


def bind_set(operation: Operation, term: BoundTerm, literals: Iterable[Any]) -> BooleanExpression:
    """The bound predicate of a set operation: simpler for one value, a constant for none."""
    values = frozenset(literals)
    if len(values) > 1:
        return BoundSetPredicate(operation, term, values)
    if values:
        single = Operation.EQ if operation is Operation.IN else Operation.NOT_EQ
        return BoundLiteralPredicate(single, term, next(iter(values)))
    return AlwaysFalse() if operation is Operation.IN else not_null(term)


def _bind(
    schema: Schema, expression: BooleanExpression, *, case_sensitive: bool
) -> BooleanExpression:
    if isinstance(expression, And):
        return conjunction(
            _bind(schema, o, case_sensitive=case_sensitive) for o in expression.operands
        )
    if isinstance(expression, Or):
        return disjunction(
            _bind(schema, o, case_sensitive=case_sensitive) for o in expression.operands
        )
    if not isinstance(expression, UnboundPredicate):
        return expression
    asked = expression.term
    term = _bind_term(schema, asked, case_sensitive=case_sensitive)
    if expression.operation in UNARY_OPERATIONS:
        return _bind_unary(expression.operation, term.reference)
    if not term.field_type.is_primitive:
        raise ExpressionError(
            f"Cannot compare {term} with a value: it is a {term.field_type}",
            hint="Compare a field inside the struct, by its dotted name.",
            column=term.name,
        )
    if isinstance(asked, UnboundTransform) and isinstance(term, BoundTransform):
        return _bind_transformed(expression, asked, term)
    if isinstance(expression, LiteralPredicate):
        return _bind_literal(expression.operation, term, expression.literal)
    if isinstance(expression, SetPredicate):
        return _bind_set_literals(expression.operation, term, expression.literals)
    raise ExpressionError(
        f"Not an expression: {expression!r}",
        hint="Build it from the classes of icecomb.format, or give SQL text.",
    )


def _bind_transformed(
    expression: UnboundPredicate, asked: UnboundTransform, term: BoundTransform
) -> BooleanExpression:
    from icecomb.format.expressions.preimage import on_column

    if isinstance(expression, LiteralPredicate):
        literal = asked.unit_literal(expression.literal)
        bound = _bind_literal(expression.operation, term, literal)
    elif isinstance(expression, SetPredicate):
        literals = map(asked.unit_literal, expression.literals)
        bound = _bind_set_literals(expression.operation, term, literals)
    else:
        raise ExpressionError(
            f"Not an expression: {expression!r}",
            hint="Build it from the classes of icecomb.format, or give SQL text.",
        )
    return on_column(bound) if isinstance(bound, BoundPredicate) else bound


def _bind_term(schema: Schema, term: Term, *, case_sensitive: bool) -> BoundTerm:
    if isinstance(term, Reference):
        return _bind_reference(schema, term.name, case_sensitive=case_sensitive)
    column = _bind_reference(schema, term.reference.name, case_sensitive=case_sensitive)
    if not term.transform.can_transform(column.field_type):
        raise ExpressionError(
            f"Cannot apply the transform {term.transform} to {column}: it is a {column.field_type}",
            hint="Choose a transform that its type has, or compare the column itself.",
            column=column.name,
        )
    return BoundTransform(term.transform, column)


def _bind_reference(schema: Schema, name: str, *, case_sensitive: bool) -> BoundReference:
    try:
        found = schema.find_field(name, case_sensitive)
    except ValidationError as error:
        if schema.contains(name):
            raise ExpressionError(error.message, hint=error.hint, column=name) from None
        raise _unknown_column(schema, name) from None
    full_name = schema.find_column_name(found.field_id) or name
    may_be_null, nested = not found.required, False
    parent_id = schema.find_parent_id(found.field_id)
    while parent_id is not None:
        parent = schema.find_field(parent_id)
        if isinstance(parent.field_type, (ListType, MapType)):
            raise ExpressionError(
                f"Cannot filter by {Reference(full_name)}: it lies inside the {parent.field_type} "
                f"{parent.name!r}, so a row has many values of it",
                hint="Filter by a column, or by a field of a struct column.",
                column=full_name,
            )
        may_be_null, nested = may_be_null or not parent.required, True
        parent_id = schema.find_parent_id(parent_id)
    return BoundReference(found, full_name, may_be_null, nested)


def _unknown_column(schema: Schema, name: str) -> ExpressionError:
    names = schema.column_names
    lowered = {known.lower(): known for known in names}
    close = [
        lowered[match]
        for match in difflib.get_close_matches(name.lower(), list(lowered), n=3, cutoff=0.6)
    ]
    hint = (
        f"Did you mean {' or '.join(close)}?"
        if close
        else f"Columns are: {', '.join(f.name for f in schema.columns)}"
    )
    return ExpressionError(f"Cannot find column {name!r}", hint=hint, column=name)


def _bind_unary(operation: Operation, term: BoundReference) -> BooleanExpression:
    if operation in (Operation.IS_NULL, Operation.NOT_NULL):
        if term.may_be_null:
            return BoundUnaryPredicate(operation, term)
        return AlwaysFalse() if operation is Operation.IS_NULL else AlwaysTrue()
    if term.may_be_nan:
        return BoundUnaryPredicate(operation, term)
    return AlwaysFalse() if operation is Operation.IS_NAN else AlwaysTrue()


def _bind_literal(operation: Operation, term: BoundTerm, literal: Any) -> BooleanExpression:
    if operation in (Operation.STARTS_WITH, Operation.NOT_STARTS_WITH):
        return _bind_prefix(operation, term, literal)
    converted = _convert(term, literal)
    if converted.exact:
        return BoundLiteralPredicate(operation, term, converted.floor)
    if operation is Operation.EQ:
        return AlwaysFalse()
    if operation is Operation.NOT_EQ:
        return not_null(term)
    if operation in (Operation.LT, Operation.LT_EQ):
        # x < L and x <= L are both x <= floor when no value equals L
        if converted.floor is None:
            return AlwaysFalse()
        if converted.above_all:
            return _all_numbers(term)
        return BoundLiteralPredicate(Operation.LT_EQ, term, converted.floor)
    if converted.floor is None:
        return _all_numbers(term)
    if converted.above_all:
        return AlwaysFalse()
    return BoundLiteralPredicate(Operation.GT, term, converted.floor)


def _bind_prefix(operation: Operation, term: BoundTerm, literal: Any) -> BooleanExpression:
    wanted = str if isinstance(term.field_type, StringType) else bytes
    if not isinstance(term.field_type, (StringType, BinaryType, FixedType)) or not isinstance(
        literal, wanted
    ):
        raise ExpressionError(
            f"Cannot ask whether {term} starts with {literal!r}: it is a {term.field_type}",
            hint="Prefixes are for string columns (and bytes for binary ones).",
            column=term.name,
        )
    if not literal:
        return not_null(term) if operation is Operation.STARTS_WITH else AlwaysFalse()
    return BoundLiteralPredicate(operation, term, literal)


def _bind_set_literals(
    operation: Operation, term: BoundTerm, literals: Iterable[Any]
) -> BooleanExpression:
    converted = (_convert(term, literal) for literal in literals)
    return bind_set(operation, term, (value.floor for value in converted if value.exact))


def _convert(term: BoundTerm, literal: Any) -> Converted:
    try:
        converted = convert_literal(literal, term.field_type)
    except ExpressionError as error:
        raise ExpressionError(
            f"Cannot compare {term} ({term.field_type}) with {literal!r}: {error.message}",
            hint=error.hint,
            column=term.name,
        ) from error
    if isinstance(converted.floor, float) and math.isnan(converted.floor):
        raise ExpressionError(
            f"Cannot compare {term} with NaN: no comparison with NaN is true",
            hint="Use IsNaN or NotNaN (isnan(x) in SQL).",
            column=term.name,
        )
    return converted


def not_null(term: BoundTerm) -> BooleanExpression:
    """Where a column is not null; a constant for one that never is."""
    column = term.reference
    return BoundUnaryPredicate(Operation.NOT_NULL, column) if term.may_be_null else AlwaysTrue()


def _all_numbers(term: BoundTerm) -> BooleanExpression:
    if not term.may_be_nan:
        return not_null(term)
    return conjunction((not_null(term), BoundUnaryPredicate(Operation.NOT_NAN, term.reference)))
