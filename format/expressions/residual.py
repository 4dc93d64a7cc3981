"""Residuals: the part of a filter to check on the rows of a file whose partition is known.

With partitions by `day(ts)`, `ts >= X and ts < Y` leaves nothing to check for the days between X
and Y, one comparison for each of the days at the ends, and no rows for the days outside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from icecomb.format.expressions.bound import BoundPredicate, BoundReference, bound_predicates
from icecomb.format.expressions.comparison import ComparableColumn, evaluate
from icecomb.format.expressions.expression import (
    AlwaysFalse,
    AlwaysTrue,
    BooleanExpression,
    replaced,
)
from icecomb.format.expressions.projection import project_predicate
from icecomb.format.spec.partition import PartitionSpec

_Decided = dict[BoundPredicate, bool | None]


class ResidualEvaluator:
    """Residuals of one bound filter in the partitions of one spec."""

    def __init__(self, expression: BooleanExpression, spec: PartitionSpec) -> None:
        self.expression = expression
        self._projections = []
        for predicate in dict.fromkeys(bound_predicates(expression)):
            strict = project_predicate(predicate, spec, inclusive=False)
            inclusive = project_predicate(predicate, spec, inclusive=True)
            if not (isinstance(strict, AlwaysFalse) and isinstance(inclusive, AlwaysTrue)):
                self._projections.append((predicate, strict, inclusive))
        self._known: dict[tuple[bool | None, ...], BooleanExpression] = {}

    def residuals(
        self, column: Callable[[BoundReference], ComparableColumn], count: int
    ) -> Sequence[BooleanExpression]:
        """Return the residuals in `count` partitions, whose field values `column` returns."""
        if not self._projections:
            return [self.expression] * count
        decided = [
            _decide(evaluate(strict, column), evaluate(inclusive, column), count)
            for _, strict, inclusive in self._projections
        ]
        return [self._residual(key) for key in zip(*decided, strict=True)]

    def _residual(self, key: tuple[bool | None, ...]) -> BooleanExpression:
        found = self._known.get(key)
        if found is None:
            predicates = (predicate for predicate, _, _ in self._projections)
            found = _substitute(self.expression, dict(zip(predicates, key, strict=True)))
            self._known[key] = found
        return found


def _decide(strict: object, inclusive: object, count: int) -> Sequence[bool | None]:
    all_match = _listed(strict, count)
    some_match = _listed(inclusive, count)
    return [
        True if every else (None if some else False)
        for every, some in zip(all_match, some_match, strict=True)
    ]


def _listed(mask: object, count: int) -> list[bool]:
    if isinstance(mask, bool):
        return [mask] * count
    values: list[bool] = mask.to_pylist()  # type: ignore[attr-defined]
    return values


def _substitute(expression: BooleanExpression, decided: _Decided) -> BooleanExpression:
    def answer(predicate: BoundPredicate) -> BooleanExpression:
        found = decided.get(predicate)
        if found is None:
            return predicate
        return AlwaysTrue() if found else AlwaysFalse()

    return replaced(expression, BoundPredicate, answer)
