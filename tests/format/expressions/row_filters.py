"""Row filters of any shape, and what they say of a row by the definition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import hypothesis.strategies as st

from icecomb.format.expressions.bound import (
    BoundLiteralPredicate,
    BoundPredicate,
    BoundSetPredicate,
)
from icecomb.format.expressions.expression import (
    LITERAL_OPERATIONS,
    AlwaysTrue,
    And,
    BooleanExpression,
    IsNaN,
    IsNull,
    NotNaN,
    NotNull,
    Or,
    PredicateOperation,
    literal_predicate,
    set_predicate,
)

_STARTS = (PredicateOperation.STARTS_WITH, PredicateOperation.NOT_STARTS_WITH)
_SETS = (PredicateOperation.IN, PredicateOperation.NOT_IN)


@st.composite
def predicates(draw: Any, columns: Mapping[str, st.SearchStrategy[Any]], texts: Any) -> Any:
    """Draw a predicate about one of the columns, given with their values; `texts` have prefixes."""
    name = draw(st.sampled_from([*columns]))
    operations = [*LITERAL_OPERATIONS, *_SETS, "unary"]
    if name not in texts:
        operations = [one for one in operations if one not in _STARTS]
    operation = draw(st.sampled_from(sorted(operations, key=str)))
    if operation == "unary":
        return draw(st.sampled_from([IsNull, NotNull, IsNaN, NotNaN]))(name)
    if operation in _SETS:
        values = draw(st.lists(columns[name], min_size=1, max_size=4))
        return set_predicate(operation, name, values)
    return literal_predicate(operation, name, draw(columns[name]))


def expressions(columns: Mapping[str, st.SearchStrategy[Any]], texts: Any) -> Any:
    """Return a strategy of expressions of such predicates."""
    return st.recursive(
        predicates(columns, texts),
        lambda inner: st.one_of(
            st.builds(And, inner, inner), st.builds(Or, inner, inner), inner.map(lambda e: ~e)
        ),
        max_leaves=4,
    )


def matches(expression: BooleanExpression, row: Mapping[int, Any]) -> bool | None:
    """Return True, False or None (unknown) for a row without NaN, by field id."""
    if isinstance(expression, (And, Or)):
        parts = [matches(one, row) for one in expression.operands]
        decisive = isinstance(expression, Or)
        return decisive if decisive in parts else (None if None in parts else not decisive)
    if not isinstance(expression, BoundPredicate):
        return isinstance(expression, AlwaysTrue)
    value, operation = row[expression.term.field_id], expression.operation
    if operation in (PredicateOperation.IS_NULL, PredicateOperation.NOT_NULL):
        return (value is None) is (operation is PredicateOperation.IS_NULL)
    if operation in (PredicateOperation.IS_NAN, PredicateOperation.NOT_NAN):
        return operation is PredicateOperation.NOT_NAN
    if value is None:
        return None
    if isinstance(expression, BoundSetPredicate):
        return (value in expression.literals) is (operation is PredicateOperation.IN)
    assert isinstance(expression, BoundLiteralPredicate)
    literal = expression.literal
    if operation in _STARTS:
        return value.startswith(literal) is (operation is PredicateOperation.STARTS_WITH)
    found: dict[PredicateOperation, bool] = {
        PredicateOperation.LT: value < literal,
        PredicateOperation.LT_EQ: value <= literal,
        PredicateOperation.GT: value > literal,
        PredicateOperation.GT_EQ: value >= literal,
        PredicateOperation.EQ: value == literal,
        PredicateOperation.NOT_EQ: value != literal,
    }
    return found[operation]
