"""Evaluation of bound predicates, as masks on Arrow batches and on statistics of row groups.

The semantics are those of `expression`: unknown (a comparison with null) selects nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.errors import ExpressionError
from icecomb.format.expressions.bound import (
    BoundLiteralPredicate,
    BoundPredicate,
    BoundSetPredicate,
    BoundTransform,
    BoundUnaryPredicate,
)
from icecomb.format.expressions.comparison import combine
from icecomb.format.expressions.expression import BooleanExpression, PredicateOperation
from icecomb.format.rows.values.data_metrics import truncated_upper
from icecomb.format.rows.values.statistics import ChunkStatistics
from icecomb.format.spec.arrow_schema import scalar_to_pyarrow, type_to_pyarrow

_COMPARISONS: dict[PredicateOperation, Callable[[pa.Array, pa.Scalar], pa.Array]] = {
    PredicateOperation.LT: pc.less,
    PredicateOperation.LT_EQ: pc.less_equal,
    PredicateOperation.GT: pc.greater,
    PredicateOperation.GT_EQ: pc.greater_equal,
    PredicateOperation.EQ: pc.equal,
    PredicateOperation.NOT_EQ: pc.not_equal,
}


def row_mask(
    expression: BooleanExpression, columns: Mapping[int, pa.Array], rows: int
) -> pa.BooleanArray:
    """Return a mask without nulls of the rows that a bound expression without `Not` selects."""
    mask = combine(expression, lambda predicate: _mask(predicate, columns))
    if isinstance(mask, bool):
        return pa.repeat(mask, rows)
    return mask.fill_null(False) if mask.null_count else mask


def may_match(
    expression: BooleanExpression, statistics: Callable[[int], ChunkStatistics | None]
) -> bool:
    """Return whether a bound expression without `Not` may select rows of a row group.

    Args:
        statistics: A function that returns a column's statistics by field id; None if unknown.
    """

    def answer(predicate: BoundPredicate) -> bool:
        known = statistics(predicate.term.field_id)
        return True if known is None else _predicate_may_match(predicate, known)

    return bool(combine(expression, answer))


def _mask(expression: BoundPredicate, columns: Mapping[int, pa.Array]) -> pa.BooleanArray:
    array = columns[expression.term.field_id]
    if isinstance(expression.term, BoundTransform):
        array = expression.term.transform.apply_array(array)
    if isinstance(expression, BoundUnaryPredicate):
        return _unary(expression.operation, array)
    array = _comparable(array)
    if isinstance(expression, BoundSetPredicate):
        return _set(expression, array)
    if not isinstance(expression, BoundLiteralPredicate):
        raise ExpressionError(
            f"Not a predicate on rows: {expression}",
            hint="Build it from the classes of icecomb.format, or give SQL text.",
        )
    if expression.operation in (PredicateOperation.STARTS_WITH, PredicateOperation.NOT_STARTS_WITH):
        found = _starts_with(array, expression.literal)
        return found if expression.operation is PredicateOperation.STARTS_WITH else pc.invert(found)
    literal = scalar_to_pyarrow(expression.literal, _type(expression))
    if isinstance(literal, pa.ExtensionScalar):
        literal = literal.value
    return _COMPARISONS[expression.operation](array, literal)


def _type(predicate: BoundPredicate) -> pa.DataType:

    return type_to_pyarrow(predicate.term.field_type)


def _comparable(array: pa.Array) -> pa.Array:
    # Kernels do not support UUIDs, but their bytes are in the same order.
    return array.storage if array.type == pa.uuid() else array


def _unary(operation: PredicateOperation, array: pa.Array) -> pa.BooleanArray:
    if operation is PredicateOperation.IS_NULL:
        return pc.is_null(array)
    if operation is PredicateOperation.NOT_NULL:
        return pc.is_valid(array)
    nan = pc.is_nan(array).fill_null(False)
    return nan if operation is PredicateOperation.IS_NAN else pc.invert(nan)


def _set(predicate: BoundSetPredicate, array: pa.Array) -> pa.BooleanArray:
    kind = _type(predicate)
    values = _comparable(pa.array([scalar_to_pyarrow(v, kind) for v in predicate.literals]))
    if pa.types.is_floating(array.type):
        # Sets distinguish -0.0 from 0.0, comparisons do not.
        zero = pa.scalar(0.0, array.type)
        array, values = pc.add(array, zero), pc.add(values, zero)
    found = pc.is_in(array, value_set=values)
    if predicate.operation is PredicateOperation.IN:
        return found
    return pc.and_(pc.invert(found), pc.is_valid(array))


def _starts_with(array: pa.Array, prefix: str | bytes) -> pa.BooleanArray:
    if isinstance(prefix, str):
        return pc.starts_with(array, prefix)
    if pa.types.is_fixed_size_binary(array.type):
        array = array.cast(pa.binary())
    return pc.starts_with(array, prefix)


def _predicate_may_match(predicate: BoundPredicate, known: ChunkStatistics) -> bool:
    operation = predicate.operation
    if operation is PredicateOperation.IS_NULL:
        return known.null_count != 0
    if operation in (PredicateOperation.IS_NAN, PredicateOperation.NOT_NAN):
        return operation is PredicateOperation.NOT_NAN or not known.only_nulls
    if known.only_nulls:
        return False
    if isinstance(predicate.term, BoundTransform):
        return True
    if isinstance(predicate, BoundSetPredicate) and operation is PredicateOperation.IN:
        return any(_literal_may_match(PredicateOperation.EQ, v, known) for v in predicate.literals)
    if isinstance(predicate, BoundLiteralPredicate):
        return _literal_may_match(operation, predicate.literal, known)
    return True


def _literal_may_match(operation: PredicateOperation, literal: Any, known: ChunkStatistics) -> bool:
    lower, upper = known.lower, known.upper
    above = lower is not None and _less(literal, lower)
    below = upper is not None and _less(upper, literal)
    if operation is PredicateOperation.EQ:
        return not above and not below
    if operation is PredicateOperation.LT:
        return lower is None or _less(lower, literal)
    if operation is PredicateOperation.LT_EQ:
        return not above
    if operation is PredicateOperation.GT:
        return upper is None or _less(literal, upper)
    if operation is PredicateOperation.GT_EQ:
        return not below
    if operation is PredicateOperation.STARTS_WITH:
        after = truncated_upper(literal + literal[-1:], len(literal))
        too_high = lower is not None and after is not None and not _less(lower, after)
        return not below and not too_high
    return True


def _less(left: Any, right: Any) -> bool:
    return bool(left < right)
