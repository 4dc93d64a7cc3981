"""Bound expressions as they were before."""

from __future__ import annotations

from icecomb.format.expressions.bound import BoundPredicate
from icecomb.format.expressions.expression import BooleanExpression, replaced


def unbind(expression: BooleanExpression) -> BooleanExpression:
    """Return the same expression by column names; literals keep their internal form."""
    return replaced(expression, BoundPredicate, lambda predicate: predicate.unbound())
