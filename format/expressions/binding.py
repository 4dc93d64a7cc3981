"""Binding of expressions to a schema: columns by field id, literals as internal values.

Binding converts each literal to the type of its column without changing the selected rows: a value
between two values of the column's type moves the comparison (`id > 1.5` is `id >= 2`), a value
outside its range decides it (`id < 2 ** 40` selects every int that is not null).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from icecomb.format.errors import ExpressionError, UnsupportedError, ValidationError
from icecomb.format.expressions.bound import (
    BoundLiteralPredicate,
    BoundPredicate,
    BoundReference,
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
    BooleanExpression,
    LiteralPredicate,
    Operation,
    SetPredicate,
    UnboundPredicate,
    conjunction,
    replaced,
    rewrite_not,
)
from icecomb.format.expressions.literal import Converted, convert_literal
from icecomb.format.expressions.preimage import on_column
from icecomb.format.expressions.term import Reference, Term, UnboundTransform
from icecomb.format.property.property import similar
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import (
    OPAQUE_TYPES,
    BinaryType,
    FixedType,
    ListType,
    MapType,
    StringType,
    UnknownType,
    VariantType,
)


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
    null_test = expression.operation in {Operation.IS_NULL, Operation.NOT_NULL}
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
        else f"Columns are: {', '.join(f.name for f in schema.columns)}"
    )
    return ExpressionError(f"Cannot find column {name!r}", hint=hint, column=name)


def _bind_unary(operation: Operation, term: BoundReference) -> BooleanExpression:
    if operation in (Operation.IS_NULL, Operation.NOT_NULL):
        if isinstance(term.field_type, UnknownType):
            # whatever files and their metrics say of such a column
            return AlwaysTrue() if operation is Operation.IS_NULL else AlwaysFalse()
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


def _all_numbers(term: BoundTerm) -> BooleanExpression:
    if not term.may_be_nan:
        return not_null(term)
    return conjunction((not_null(term), BoundUnaryPredicate(Operation.NOT_NAN, term.reference)))
