"""Detection of filters that select whole partitions, so that kept files need no row filter.

A file is kept if its partition satisfies the inclusive projection of a filter, and all of its rows
match if the partition satisfies the strict one. If both projections of a predicate onto a partition
field are the same condition, that field decides it: a filter of only such predicates keeps only
files in which all rows match.
"""

from __future__ import annotations

from collections.abc import Iterable

from icecomb.format.expressions.bound import (
    BoundLiteralPredicate,
    BoundPredicate,
    bound_predicates,
)
from icecomb.format.expressions.expression import BooleanExpression, PredicateOperation, replaced
from icecomb.format.expressions.projection import project_predicate
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.transform import TimeTransform

_CLOSED = {
    PredicateOperation.LT: (PredicateOperation.LT_EQ, -1),
    PredicateOperation.GT: (PredicateOperation.GT_EQ, 1),
}


def selects_partitions(expression: BooleanExpression, specs: Iterable[PartitionSpec]) -> bool:
    """Return whether a bound filter without `Not` selects whole partitions in each of the specs."""
    predicates = list(bound_predicates(expression))
    return all(
        any(_decides(field, predicate, spec) for field in spec.fields)
        for spec in specs
        for predicate in predicates
    )


def _decides(field: PartitionField, predicate: BoundPredicate, spec: PartitionSpec) -> bool:
    """Return whether a partition field's value decides a predicate for all rows of a file."""
    if field.source_id != predicate.term.field_id:
        return False
    alone = PartitionSpec(field, spec_id=spec.spec_id)
    inclusive = project_predicate(predicate, alone, inclusive=True)
    strict = project_predicate(predicate, alone, inclusive=False)
    if isinstance(field.transform, TimeTransform):
        inclusive, strict = _closed(inclusive), _closed(strict)
    return inclusive == strict


def _closed(projected: BooleanExpression) -> BooleanExpression:
    """Return the same condition on integers with `<=` and `>=` for `<` and `>`."""

    def answer(predicate: BoundPredicate) -> BooleanExpression:
        if not isinstance(predicate, BoundLiteralPredicate) or predicate.operation not in _CLOSED:
            return predicate
        operation, step = _CLOSED[predicate.operation]
        return BoundLiteralPredicate(operation, predicate.term, predicate.literal + step)

    return replaced(projected, BoundPredicate, answer)
