"""Expressions as the JSON of Iceberg's REST catalogs, from which PyIceberg reads them."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from functools import partial
from typing import Any

from icecomb.format.errors import ExpressionError
from icecomb.format.expressions.bound import (
    BoundLiteralPredicate,
    BoundPredicate,
    BoundSetPredicate,
)
from icecomb.format.expressions.expression import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BooleanExpression,
    Junction,
    LiteralPredicate,
    Not,
    SetPredicate,
    UnboundPredicate,
    folded,
    parts_of,
)
from icecomb.format.expressions.term import Reference, Term, UnboundTransform
from icecomb.format.spec.types import BinaryType, FixedType, PrimitiveType


def to_json(expression: BooleanExpression) -> bool | dict[str, Any]:
    """Return the expression as JSON values; bound ones have literals in the column's type."""
    return folded(expression, parts_of, _to_json)


def _to_json(
    expression: BooleanExpression, parts: list[bool | dict[str, Any]]
) -> bool | dict[str, Any]:
    if isinstance(expression, (AlwaysTrue, AlwaysFalse)):
        return isinstance(expression, AlwaysTrue)
    if isinstance(expression, Junction):
        return _nested("and" if isinstance(expression, And) else "or", parts)
    if isinstance(expression, Not):
        return {"type": "not", "child": parts[0]}
    if isinstance(expression, (UnboundPredicate, BoundPredicate)):
        return _predicate(expression)
    raise ExpressionError(
        f"Not an expression: {expression!r}", hint="Build it from the classes of icecomb.format."
    )


def _nested(kind: str, operands: list[bool | dict[str, Any]]) -> bool | dict[str, Any]:
    # Halved, so that a long list does not nest deeper than JSON readers support.
    if len(operands) == 1:
        return operands[0]
    middle = len(operands) // 2
    left, right = _nested(kind, operands[:middle]), _nested(kind, operands[middle:])
    return {"type": kind, "left": left, "right": right}


def _predicate(predicate: UnboundPredicate | BoundPredicate) -> dict[str, Any]:
    text: Callable[[Any], Any]
    if isinstance(predicate, BoundPredicate):
        term, text = predicate.term.unbound(), partial(_typed_to_json, predicate.term.field_type)
    else:
        term, text = predicate.term, partial(_given_to_json, predicate.term)
    named: Any
    if isinstance(term, Reference):
        named = term.name
    else:
        transform, column = term.transform.to_json(), term.reference.name
        named = {"type": "transform", "transform": transform, "term": column}
    found = {"type": predicate.operation.value, "term": named}
    if isinstance(predicate, (LiteralPredicate, BoundLiteralPredicate)):
        found["value"] = text(predicate.literal)
    elif isinstance(predicate, BoundSetPredicate):
        found["values"] = [text(value) for value in sorted(predicate.literals)]
    elif isinstance(predicate, SetPredicate):
        found["values"] = [text(value) for value in sorted(predicate.literals, key=repr)]
    return found


def _given_to_json(term: Term, value: Any) -> Any:
    return _literal_to_json(
        term.unit_literal(value) if isinstance(term, UnboundTransform) else value
    )


def _typed_to_json(field_type: Any, value: Any) -> Any:
    from icecomb.format.spec import single_value

    if isinstance(value, float) and math.isinf(value):
        return _literal_to_json(value)
    if isinstance(field_type, (BinaryType, FixedType)):
        return value.hex()
    assert isinstance(field_type, PrimitiveType)
    return single_value.to_json(field_type, value)


def _literal_to_json(value: Any) -> Any:
    if isinstance(value, float) and math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).hex()
    if isinstance(value, (dt.date, dt.time)):
        return value.isoformat()
    return str(value)
