"""Binding of expressions to a schema: columns by field id, literals as internal values.

Binding converts each literal to the type of its column without changing the selected rows: a value
between two values of the column's type moves the comparison (`id > 1.5` is `id >= 2`), a value
outside its range decides it (`id < 2 ** 40` selects every int that is not null).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final, cast

from icecomb.format.errors import ExpressionError, UnsupportedError, ValidationError
from icecomb.format.expressions.bound import (
    BoundLiteralPredicate,
    BoundPredicate,
    BoundReference,
    BoundSetPredicate,
    BoundTerm,
    BoundTransform,
    BoundUnaryPredicate,
    bind_set,
    not_null,
)
from icecomb.format.expressions.expression import (
    UNARY_OPERATIONS,
    AlwaysFalse,
    AlwaysTrue,
    And,
    BooleanExpression,
    LiteralPredicate,
    Or,
    PredicateOperation,
    SetPredicate,
    UnboundPredicate,
    conjunction,
    disjunction,
    replaced,
    rewrite_not,
    set_predicate,
)
from icecomb.format.expressions.literal import ConvertedLiteral, convert_literal, integer_range
from icecomb.format.expressions.term import Reference, Term, UnboundTransform
from icecomb.format.property.property import similar
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.transform import (
    BucketTransform,
    HourTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    YearTransform,
    units_per_hour,
)
from icecomb.format.spec.types import (
    OPAQUE_TYPES,
    BinaryType,
    DateType,
    DecimalType,
    FixedType,
    IcebergType,
    ListType,
    MapType,
    StringType,
    UnknownType,
    VariantType,
)
from icecomb.format.spec.values.decimal_value import scaled, unscaled
from icecomb.format.spec.values.temporal import days_from_civil


def bind(
    schema: Schema,
    expression: BooleanExpression,
    case_sensitive: bool = True,  # noqa: FBT001, FBT002 - PyIceberg's signature
) -> BooleanExpression:
    """Find the columns of an expression and convert its literals; the result is without `Not`."""
    return replaced(
        rewrite_not(expression),
        UnboundPredicate,
        lambda predicate: _bind(schema, predicate, case_sensitive=case_sensitive),
    )


def _bind(
    schema: Schema, expression: UnboundPredicate, *, case_sensitive: bool
) -> BooleanExpression:
    asked = expression.term
    null_test = expression.operation in {PredicateOperation.IS_NULL, PredicateOperation.NOT_NULL}
    term = _bind_term(schema, asked, case_sensitive=case_sensitive, null_test=null_test)
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


def _bind_term(schema: Schema, term: Term, *, case_sensitive: bool, null_test: bool) -> BoundTerm:
    if isinstance(term, Reference):
        return _bind_reference(
            schema, term.name, case_sensitive=case_sensitive, null_test=null_test
        )
    column = _bind_reference(schema, term.reference.name, case_sensitive=case_sensitive)
    if not term.transform.can_transform(column.field_type):
        raise ExpressionError(
            f"Cannot apply the transform {term.transform} to {column}: it is a {column.field_type}",
            hint="Choose a transform that fits its type, or compare the column itself.",
            column=column.name,
        )
    return BoundTransform(term.transform, column)


def _bind_reference(
    schema: Schema, name: str, *, case_sensitive: bool, null_test: bool = False
) -> BoundReference:
    try:
        found = schema.find_field(name, case_sensitive)
    except ValidationError as error:
        raise unresolved_column(schema, name, error) from None
    full_name = schema.find_column_name(found.field_id) or name
    nulls_known = null_test and isinstance(found.field_type, VariantType)
    if isinstance(found.field_type, OPAQUE_TYPES) and not nulls_known:
        raise UnsupportedError(
            f"Cannot filter by {Reference(full_name)}: values of type {found.field_type} cannot be "
            "compared",
            hint="Filter by other columns; a variant can be tested for null.",
            column=full_name,
        )
    may_be_null, nested = not found.required, False
    parent_id = schema.find_parent_id(found.field_id)
    while parent_id is not None:
        parent = schema.find_field(parent_id)
        if isinstance(parent.field_type, (ListType, MapType)):
            raise ExpressionError(
                f"Cannot filter by {Reference(full_name)}: it is inside the {parent.field_type} "
                f"{parent.name!r}, so a row has many values of it",
                hint="Filter by a column, or by a field of a struct column.",
                column=full_name,
            )
        may_be_null, nested = may_be_null or not parent.required, True
        parent_id = schema.find_parent_id(parent_id)
    return BoundReference(found, full_name, may_be_null, nested)


def unresolved_column(schema: Schema, name: str, problem: ValidationError) -> ExpressionError:
    """Return the error for a name that `Schema.find_field` did not find."""
    if schema.contains(name):
        return ExpressionError(problem.message, hint=problem.hint, column=name)
    close = similar(name, schema.column_names)
    hint = (
        f"Did you mean {' or '.join(close)}?"
        if close
        else f"Columns are: {', '.join(f.name for f in schema.columns)}."
    )
    return ExpressionError(f"Cannot find column {name!r}", hint=hint, column=name)


def _bind_unary(operation: PredicateOperation, term: BoundReference) -> BooleanExpression:
    if operation in (PredicateOperation.IS_NULL, PredicateOperation.NOT_NULL):
        if isinstance(term.field_type, UnknownType):
            # whatever files and their metrics say of such a column
            return AlwaysTrue() if operation is PredicateOperation.IS_NULL else AlwaysFalse()
        if term.may_be_null:
            return BoundUnaryPredicate(operation, term)
        return AlwaysFalse() if operation is PredicateOperation.IS_NULL else AlwaysTrue()
    if term.may_be_nan:
        return BoundUnaryPredicate(operation, term)
    return AlwaysFalse() if operation is PredicateOperation.IS_NAN else AlwaysTrue()


def _bind_literal(
    operation: PredicateOperation, term: BoundTerm, literal: Any
) -> BooleanExpression:
    if operation in (PredicateOperation.STARTS_WITH, PredicateOperation.NOT_STARTS_WITH):
        return _bind_prefix(operation, term, literal)
    converted = _convert(term, literal)
    if converted.exact:
        return BoundLiteralPredicate(operation, term, converted.floor)
    if operation is PredicateOperation.EQ:
        return AlwaysFalse()
    if operation is PredicateOperation.NOT_EQ:
        return not_null(term)
    if operation in (PredicateOperation.LT, PredicateOperation.LT_EQ):
        # x < L and x <= L are both x <= floor when no value equals L
        if converted.floor is None:
            return AlwaysFalse()
        if converted.above_all:
            return _all_numbers(term)
        return BoundLiteralPredicate(PredicateOperation.LT_EQ, term, converted.floor)
    if converted.floor is None:
        return _all_numbers(term)
    if converted.above_all:
        return AlwaysFalse()
    return BoundLiteralPredicate(PredicateOperation.GT, term, converted.floor)


def _bind_prefix(operation: PredicateOperation, term: BoundTerm, literal: Any) -> BooleanExpression:
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
        return not_null(term) if operation is PredicateOperation.STARTS_WITH else AlwaysFalse()
    return BoundLiteralPredicate(operation, term, literal)


def _bind_set_literals(
    operation: PredicateOperation, term: BoundTerm, literals: Iterable[Any]
) -> BooleanExpression:
    converted = (_convert(term, literal) for literal in literals)
    return bind_set(operation, term, (value.floor for value in converted if value.exact))


def _convert(term: BoundTerm, literal: Any) -> ConvertedLiteral:
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


def _all_numbers(term: BoundTerm) -> BooleanExpression:
    if not term.may_be_nan:
        return not_null(term)
    return conjunction(
        (not_null(term), BoundUnaryPredicate(PredicateOperation.NOT_NAN, term.reference))
    )


_NEGATIVE: Final = (
    PredicateOperation.NOT_EQ,
    PredicateOperation.GT,
    PredicateOperation.GT_EQ,
    PredicateOperation.NOT_STARTS_WITH,
)


def on_column(predicate: BoundPredicate) -> BooleanExpression:
    """Return the predicate on the column that has the same result; one of buckets stays."""
    term = predicate.term
    if not isinstance(term, BoundTransform) or isinstance(term.transform, BucketTransform):
        return predicate
    if isinstance(predicate, BoundSetPredicate):
        is_in = predicate.operation is PredicateOperation.IN
        single = PredicateOperation.EQ if is_in else PredicateOperation.NOT_EQ
        parts = [_compared(term, single, literal) for literal in predicate.literals]
        return disjunction(parts) if is_in else conjunction(parts)
    assert isinstance(predicate, BoundLiteralPredicate)  # noqa: S101 - null checks ask the column
    return _compared(term, predicate.operation, predicate.literal)


def _compared(
    term: BoundTransform, operation: PredicateOperation, literal: Any
) -> BooleanExpression:
    if operation in _NEGATIVE:
        return _negated(_compared(term, operation.negated, literal), term)
    column = term.reference
    if isinstance(column.field_type, (StringType, BinaryType)):
        assert isinstance(term.transform, TruncateTransform)  # noqa: S101 - no other takes text
        return _text(column, operation, literal, term.transform.width)
    return _number(column, operation, literal, term.transform)


def _negated(expression: BooleanExpression, term: BoundTransform) -> BooleanExpression:
    """Return the expression that is true where another is false, and unknown for null, too."""
    if isinstance(expression, And):
        return disjunction(_negated(operand, term) for operand in expression.operands)
    if isinstance(expression, Or):
        return conjunction(_negated(operand, term) for operand in expression.operands)
    if isinstance(expression, AlwaysFalse):
        return not_null(term)
    # values are not null, so the unary predicate or the constant holds for all of them
    all_values = isinstance(expression, (AlwaysTrue, BoundUnaryPredicate))
    return AlwaysFalse() if all_values else ~expression


def _text(
    column: BoundReference, operation: PredicateOperation, literal: Any, width: int
) -> BooleanExpression:
    start = literal[:width]
    begins = (
        BoundLiteralPredicate(PredicateOperation.STARTS_WITH, column, start)
        if start
        else not_null(column)
    )
    if operation is PredicateOperation.STARTS_WITH:
        return begins if len(literal) <= width else AlwaysFalse()
    if operation is PredicateOperation.EQ:
        if len(literal) == width:
            return begins
        return (
            BoundLiteralPredicate(operation, column, literal)
            if start == literal
            else (AlwaysFalse())
        )
    # Truncated values are never greater than the values, and equal a shorter text only if nothing
    # was cut: so a literal that is not a truncated value compares as with the values themselves.
    whole = len(literal) < width or (len(literal) == width and operation is PredicateOperation.LT)
    if whole:
        return BoundLiteralPredicate(operation, column, literal)
    return disjunction((BoundLiteralPredicate(PredicateOperation.LT, column, start), begins))


def _number(
    column: BoundReference, operation: PredicateOperation, literal: Any, transform: Transform
) -> BooleanExpression:
    source = column.field_type
    label = unscaled(literal) if isinstance(source, DecimalType) else literal
    at_least, above = _thresholds(transform, source, label)
    before = _before(column, at_least), _before(column, above)
    if operation is PredicateOperation.LT:
        found = before[0]
    elif operation is PredicateOperation.LT_EQ:
        found = before[1]
    elif at_least == above:
        found = AlwaysFalse()
    else:
        found = conjunction((_from(column, at_least), before[1]))
    return _with_wrapped(column, operation, label, transform, found)


def _thresholds(transform: Transform, source: IcebergType, label: int) -> tuple[int, int]:
    """Return the least values whose results are at least a label, and above it."""
    if isinstance(transform, TruncateTransform):
        above = (label // transform.width + 1) * transform.width
        return (above if label % transform.width else label), above
    if isinstance(transform, HourTransform):
        unit = units_per_hour(source)
        return label * unit, (label + 1) * unit
    unit = 1 if isinstance(source, DateType) else 24 * units_per_hour(source)
    return _first_day(transform, label) * unit, _first_day(transform, label + 1) * unit


def _first_day(transform: Transform, label: int) -> int:
    if isinstance(transform, YearTransform):
        return days_from_civil(1970 + label, 1, 1)
    if isinstance(transform, MonthTransform):
        return days_from_civil(1970 + label // 12, label % 12 + 1, 1)
    return label


def _before(column: BoundReference, threshold: int) -> BooleanExpression:
    low, high = _range(column.field_type)
    if threshold <= low:
        return AlwaysFalse()
    if threshold > high:
        return not_null(column)
    return BoundLiteralPredicate(PredicateOperation.LT, column, _value(column, threshold))


def _from(column: BoundReference, threshold: int) -> BooleanExpression:
    low, high = _range(column.field_type)
    if threshold > high:
        return AlwaysFalse()
    if threshold <= low:
        return not_null(column)
    return BoundLiteralPredicate(PredicateOperation.GT_EQ, column, _value(column, threshold))


def _range(source: IcebergType) -> tuple[int, int]:
    if isinstance(source, DecimalType):
        return 1 - 10**source.precision, 10**source.precision - 1
    limits = integer_range(source)
    assert limits is not None  # noqa: S101 - the transforms take no other type
    return limits


def _value(column: BoundReference, number: int) -> Any:
    kind = column.field_type
    return scaled(number, kind.scale) if isinstance(kind, DecimalType) else number


_HOLDS: Final[dict[PredicateOperation, Callable[[int, int], bool]]] = {
    PredicateOperation.LT: lambda value, label: value < label,
    PredicateOperation.LT_EQ: lambda value, label: value <= label,
    PredicateOperation.EQ: lambda value, label: value == label,
}


def _with_wrapped(
    column: BoundReference,
    operation: PredicateOperation,
    label: int,
    transform: Transform,
    found: BooleanExpression,
) -> BooleanExpression:
    """Adjust for the least integers, which truncation wraps around to the greatest results."""
    low, high = _range(column.field_type)
    if not isinstance(transform, TruncateTransform) or isinstance(column.field_type, DecimalType):
        return found
    rounded = low - low % transform.width
    if rounded == low:
        return found
    wrapped = _HOLDS[operation](rounded + high - low + 1, label)
    if wrapped is _HOLDS[operation](rounded, label):
        return found
    regular = rounded + transform.width
    if wrapped:
        return disjunction((found, _before(column, regular)))
    return conjunction((found, _from(column, regular)))


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
