"""Expressions as JSON, in the form of Iceberg's REST catalogs and scan reports.

    {"type": "and", "left": {"type": "gt-eq", "term": "id", "value": 5}, "right": true}

Dates and times are ISO 8601 strings, decimals and UUIDs strings, binary values hexadecimal strings,
infinite numbers the strings `Infinity` and `-Infinity`.
"""

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
    LITERAL_OPERATIONS,
    SET_OPERATIONS,
    AlwaysFalse,
    AlwaysTrue,
    And,
    BooleanExpression,
    Junction,
    LiteralPredicate,
    Not,
    PredicateOperation,
    SetPredicate,
    UnboundPredicate,
    conjunction,
    disjunction,
    folded,
    literal_predicate,
    parts_of,
    set_predicate,
    unary_predicate,
)
from icecomb.format.expressions.term import Reference, Term, UnboundTransform
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.transform import parse_transform
from icecomb.format.spec.types import BinaryType, FixedType, PrimitiveType

_OPERATIONS = {operation.value: operation for operation in PredicateOperation}


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


def from_json(raw: Any, schema: Schema | None = None) -> BooleanExpression:
    """Read an unbound expression.

    With a schema, strings compared with its binary columns are read as hexadecimal.
    """

    def parts(node: Any) -> list[Any]:
        kind = node.get("type") if isinstance(node, dict) else None
        if kind in ("and", "or"):
            return [_member(node, "left"), _member(node, "right")]
        return [_member(node, "child")] if kind == "not" else []

    return folded(raw, parts, lambda node, found: _from_json(node, found, schema))


def _from_json(
    raw: Any, parts: list[BooleanExpression], schema: Schema | None
) -> BooleanExpression:
    if isinstance(raw, bool):
        return AlwaysTrue() if raw else AlwaysFalse()
    if not isinstance(raw, dict):
        raise ExpressionError(
            f"Not the JSON of an expression: {raw!r}",
            hint="Give true, false or an object with a type, as to_json does.",
        )
    kind = raw.get("type")
    if kind in ("true", "false"):
        return AlwaysTrue() if kind == "true" else AlwaysFalse()
    if kind in ("and", "or"):
        return conjunction(parts) if kind == "and" else disjunction(parts)
    if kind == "not":
        return Not(parts[0])
    operation = _OPERATIONS.get(kind) if isinstance(kind, str) else None
    if operation is None:
        raise ExpressionError(
            f"Unknown type of expression in JSON: {kind!r}",
            hint="Use one of the types that to_json writes, such as eq, lt-eq, in or and.",
        )
    return _predicate_from_json(operation, raw, schema)


def _predicate_from_json(
    operation: PredicateOperation, raw: dict[str, Any], schema: Schema | None
) -> BooleanExpression:
    term = _term_from_json(_member(raw, "term"))
    if operation in SET_OPERATIONS:
        values = _member(raw, "values")
        if not isinstance(values, list):
            raise ExpressionError(
                f"Not a list of values in JSON: {values!r}", hint="Give the values as an array."
            )
        literals = [_literal_from_json(value, term, schema) for value in values]
        return set_predicate(operation, term, literals)
    if operation in LITERAL_OPERATIONS:
        literal = _literal_from_json(_member(raw, "value"), term, schema)
        return literal_predicate(operation, term, literal)
    return unary_predicate(operation, term)


def _term_from_json(raw: Any) -> Term:
    if isinstance(raw, dict) and raw.get("type") == "reference":
        raw = _member(raw, "term")
    if isinstance(raw, dict) and raw.get("type") == "transform":
        transform, column = _member(raw, "transform"), _term_from_json(_member(raw, "term"))
        if isinstance(transform, str) and isinstance(column, Reference):
            return UnboundTransform(parse_transform(transform), column)
    if not isinstance(raw, str):
        raise ExpressionError(
            f"Not the name of a column in JSON: {raw!r}",
            hint="Give the name as a string, or a reference or transform as an object.",
        )
    return Reference(raw)


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
    assert isinstance(field_type, PrimitiveType)  # noqa: S101 - binding rejects other columns
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


def _literal_from_json(value: Any, term: Term, schema: Schema | None) -> Any:
    name = term.name if isinstance(term, Reference) else term.reference.name
    if not isinstance(value, (bool, int, float, str)):
        raise ExpressionError(
            f"Not a value to compare {name!r} with in JSON: {value!r}",
            hint="Give a boolean, a number or a string.",
        )
    if isinstance(value, str) and schema is not None and schema.contains(name):
        if not isinstance(schema.find_type(name), (BinaryType, FixedType)):
            return value
        try:
            return bytes.fromhex(value)
        except ValueError as error:
            raise ExpressionError(
                f"Not the hexadecimal value of binary column {name!r} in JSON: {value!r}",
                hint="Write two hexadecimal digits per byte.",
            ) from error
    return value


def _member(raw: dict[str, Any], key: str) -> Any:
    if key not in raw:
        raise ExpressionError(
            f"Expression in JSON lacks {key!r}: {raw!r}", hint="Write it as to_json does."
        )
    return raw[key]
