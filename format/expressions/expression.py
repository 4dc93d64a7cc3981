"""Predicates on the columns of a table, as values: built, combined and simplified without a schema.

    (GreaterThanOrEqual("day", "2024-01-01") & In("id", [1, 2])) | IsNull("name")

A predicate is true, false or unknown for a row, as in SQL: a comparison with null is unknown, and
a row is selected only where the whole expression is true. So `NotEqualTo`, `NotIn` and
`NotStartsWith` do not select nulls; `IsNull`, `NotNull`, `IsNaN` and `NotNaN` are never unknown
(null is not NaN). A NaN satisfies `NotEqualTo` and `NotIn` and no other comparison, as in PyIceberg
and pyarrow: `d > 10` does not select it. Spark, for which NaN is the greatest number, asks for it
expressly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, TypeVar

from icecomb.format.argument import hint_of_pyiceberg
from icecomb.format.errors import ExpressionError
from icecomb.format.expressions.given_value import python_value
from icecomb.format.expressions.literal import literal_text
from icecomb.format.expressions.term import Reference, Term, as_term


class Operation(Enum):
    """What a predicate asks; the value is its name in the JSON form of expressions."""

    IS_NULL = "is-null"
    NOT_NULL = "not-null"
    IS_NAN = "is-nan"
    NOT_NAN = "not-nan"
    LT = "lt"
    LT_EQ = "lt-eq"
    GT = "gt"
    GT_EQ = "gt-eq"
    EQ = "eq"
    NOT_EQ = "not-eq"
    STARTS_WITH = "starts-with"
    NOT_STARTS_WITH = "not-starts-with"
    IN = "in"
    NOT_IN = "not-in"

    @property
    def negated(self) -> Operation:
        """The operation that is true exactly where this one is false."""
        return _NEGATED[self]


_OPPOSITES = (
    (Operation.IS_NULL, Operation.NOT_NULL),
    (Operation.IS_NAN, Operation.NOT_NAN),
    (Operation.LT, Operation.GT_EQ),
    (Operation.LT_EQ, Operation.GT),
    (Operation.EQ, Operation.NOT_EQ),
    (Operation.STARTS_WITH, Operation.NOT_STARTS_WITH),
    (Operation.IN, Operation.NOT_IN),
)
_NEGATED = {a: b for pair in _OPPOSITES for a, b in (pair, pair[::-1])}
_SYMBOLS = {
    Operation.LT: "<",
    Operation.LT_EQ: "<=",
    Operation.GT: ">",
    Operation.GT_EQ: ">=",
    Operation.EQ: "=",
    Operation.NOT_EQ: "!=",
    Operation.IN: "IN",
    Operation.NOT_IN: "NOT IN",
    Operation.STARTS_WITH: "STARTS WITH",
    Operation.NOT_STARTS_WITH: "NOT STARTS WITH",
    Operation.IS_NULL: "IS NULL",
    Operation.NOT_NULL: "IS NOT NULL",
    Operation.IS_NAN: "IS NAN",
    Operation.NOT_NAN: "IS NOT NAN",
}


_E = TypeVar("_E", bound="BooleanExpression")


class BooleanExpression:
    """The base of all expressions; `&`, `|` and `~` combine them."""

    __slots__ = ()

    def __and__(self, other: BooleanExpression) -> BooleanExpression:
        return And(self, _expression(other))

    def __or__(self, other: BooleanExpression) -> BooleanExpression:
        return Or(self, _expression(other))

    def __invert__(self) -> BooleanExpression:
        raise NotImplementedError

    def __bool__(self) -> bool:
        raise ExpressionError(
            f"An expression has no truth value of its own: {self}",
            hint="Combine expressions with & | ~ instead of and, or, not.",
        )


@dataclass(frozen=True, slots=True)
class AlwaysTrue(BooleanExpression):
    """Selects every row."""

    def __invert__(self) -> BooleanExpression:
        return AlwaysFalse()

    def __str__(self) -> str:
        return "true"


@dataclass(frozen=True, slots=True)
class AlwaysFalse(BooleanExpression):
    """Selects no row."""

    def __invert__(self) -> BooleanExpression:
        return AlwaysTrue()

    def __str__(self) -> str:
        return "false"


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Junction(BooleanExpression):
    """Several expressions as one, simplified when made: an `And` or an `Or`.

    `And(a, And(b, c))` is `And(a, b, c)`; a constant operand is left out or decides the result, so
    that what comes back may be another kind of expression.

    Attributes:
        operands: Two or more expressions, none of them of the same kind.
    """

    operands: tuple[BooleanExpression, ...]
    neutral: ClassVar[BooleanExpression]
    """What an operand may be without a difference: the junction of none."""

    def __new__(  # type: ignore[misc]
        cls, left: BooleanExpression, right: BooleanExpression, *rest: BooleanExpression
    ) -> BooleanExpression:
        """Join the operands."""
        return cls.of((left, right, *rest))

    def __getnewargs__(self) -> tuple[BooleanExpression, ...]:
        return self.operands

    @classmethod
    def of(cls, operands: Iterable[BooleanExpression]) -> BooleanExpression:
        """The junction of any number of operands."""
        neutral, decisive = type(cls.neutral), type(~cls.neutral)
        kept: dict[BooleanExpression, None] = {}
        for operand in operands:
            parts = operand.operands if isinstance(operand, cls) else (_expression(operand),)
            for part in parts:
                if isinstance(part, decisive):
                    return part
                if not isinstance(part, neutral):
                    kept[part] = None
        if len(kept) < 2:
            return next(iter(kept), cls.neutral)
        new = object.__new__(cls)
        object.__setattr__(new, "operands", tuple(kept))
        return new

    @property
    def left(self) -> BooleanExpression:
        """The first operand."""
        return self.operands[0]

    @property
    def right(self) -> BooleanExpression:
        """The junction of the other operands."""
        return self.of(self.operands[1:])

    def __invert__(self) -> BooleanExpression:
        opposite = Or if isinstance(self, And) else And
        return opposite.of(~operand for operand in self.operands)

    def __str__(self) -> str:
        return f"({f' {type(self).__name__.upper()} '.join(map(str, self.operands))})"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.operands))})"


@dataclass(frozen=True, slots=True, init=False, repr=False)
class And(Junction):
    """True where all operands are; see `Junction`."""

    neutral = AlwaysTrue()


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Or(Junction):
    """True where any operand is; see `Junction`."""

    neutral = AlwaysFalse()


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Not(BooleanExpression):
    """True where the child is false; a constant or another `Not` inside is resolved when made.

    Attributes:
        child: What is negated.
    """

    child: BooleanExpression

    def __new__(cls, child: BooleanExpression) -> BooleanExpression:  # type: ignore[misc]
        """Negate, or undo a negation."""
        child = _expression(child)
        if isinstance(child, (AlwaysTrue, AlwaysFalse)):
            return ~child
        if isinstance(child, Not):
            return child.child
        new = object.__new__(cls)
        object.__setattr__(new, "child", child)
        return new

    def __getnewargs__(self) -> tuple[BooleanExpression]:
        return (self.child,)

    def __invert__(self) -> BooleanExpression:
        return self.child

    def __str__(self) -> str:
        return f"NOT {self.child}"

    def __repr__(self) -> str:
        return f"Not({self.child!r})"


class UnboundPredicate(BooleanExpression):
    """A question about one column, or a transform of it, by name; binding gives it a type."""

    __slots__ = ()
    operation: ClassVar[Operation]
    term: Term


@dataclass(frozen=True, slots=True, repr=False)
class UnaryPredicate(UnboundPredicate):
    """A predicate without a literal.

    Args:
        term: The column, its name, or a transform of it.
    """

    term: Term

    def __init__(self, term: str | Term) -> None:
        object.__setattr__(self, "term", as_term(term))

    def __invert__(self) -> BooleanExpression:
        return unary_predicate(self.operation.negated, self.term)

    def __str__(self) -> str:
        return f"{self.term} {_SYMBOLS[self.operation]}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({_named(self.term)})"


@dataclass(frozen=True, slots=True, repr=False)
class LiteralPredicate(UnboundPredicate):
    """A comparison of a column with one value.

    Args:
        term: The column, its name, or a transform of it.
        literal: The value: bool, int, float, str, bytes, `Decimal`, `UUID`, date, time or datetime,
            also as a scalar of NumPy, pandas or Arrow; it is converted to the column's type when
            the predicate is bound.

    Raises:
        ExpressionError: The value is null or NaN, which no comparison finds.
    """

    term: Term
    literal: Any

    def __init__(self, term: str | Term, literal: Any) -> None:
        object.__setattr__(self, "term", as_term(term))
        object.__setattr__(self, "literal", _literal(literal))

    def __invert__(self) -> BooleanExpression:
        return literal_predicate(self.operation.negated, self.term, self.literal)

    def __str__(self) -> str:
        return f"{self.term} {_SYMBOLS[self.operation]} {literal_text(self.literal)}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({_named(self.term)}, {self.literal!r})"


@dataclass(frozen=True, slots=True, init=False, repr=False)
class SetPredicate(UnboundPredicate):
    """A comparison of a column with several values.

    Made with one value it is `EqualTo` or `NotEqualTo`, with none a constant.

    Attributes:
        term: The column, or a transform of it.
        literals: The values, two or more.
    """

    term: Term
    literals: frozenset[Any]

    def __new__(  # type: ignore[misc]
        cls, term: str | Term, literals: Iterable[Any]
    ) -> BooleanExpression:
        """Choose the simplest predicate that says this."""
        return set_predicate(cls.operation, term, literals)

    def __getnewargs__(self) -> tuple[Term, frozenset[Any]]:
        return self.term, self.literals

    def __invert__(self) -> BooleanExpression:
        return set_predicate(self.operation.negated, self.term, self.literals)

    def __str__(self) -> str:
        return f"{self.term} {_SYMBOLS[self.operation]} ({self._listed(literal_text)})"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({_named(self.term)}, [{self._listed(repr)}])"

    def _listed(self, text: Callable[[Any], str]) -> str:
        return ", ".join(sorted(map(text, self.literals)))


class IsNull(UnaryPredicate):
    """The value is null."""

    __slots__ = ()
    operation = Operation.IS_NULL


class NotNull(UnaryPredicate):
    """The value is not null."""

    __slots__ = ()
    operation = Operation.NOT_NULL


class IsNaN(UnaryPredicate):
    """The value is NaN."""

    __slots__ = ()
    operation = Operation.IS_NAN


class NotNaN(UnaryPredicate):
    """The value is anything but NaN; null counts as that."""

    __slots__ = ()
    operation = Operation.NOT_NAN


class LessThan(LiteralPredicate):
    """The value is less than the literal."""

    __slots__ = ()
    operation = Operation.LT


class LessThanOrEqual(LiteralPredicate):
    """The value is less than or equal to the literal."""

    __slots__ = ()
    operation = Operation.LT_EQ


class GreaterThan(LiteralPredicate):
    """The value is greater than the literal."""

    __slots__ = ()
    operation = Operation.GT


class GreaterThanOrEqual(LiteralPredicate):
    """The value is greater than or equal to the literal."""

    __slots__ = ()
    operation = Operation.GT_EQ


class EqualTo(LiteralPredicate):
    """The value equals the literal."""

    __slots__ = ()
    operation = Operation.EQ


class NotEqualTo(LiteralPredicate):
    """The value differs from the literal; null does not."""

    __slots__ = ()
    operation = Operation.NOT_EQ


class StartsWith(LiteralPredicate):
    """The text or binary value begins with the literal."""

    __slots__ = ()
    operation = Operation.STARTS_WITH


class NotStartsWith(LiteralPredicate):
    """The text or binary value does not begin with the literal; null does not match."""

    __slots__ = ()
    operation = Operation.NOT_STARTS_WITH


class In(SetPredicate):
    """The value equals one of the literals."""

    __slots__ = ()
    operation = Operation.IN


class NotIn(SetPredicate):
    """The value equals none of the literals; null does not match."""

    __slots__ = ()
    operation = Operation.NOT_IN


_UNARY: dict[Operation, type[UnaryPredicate]] = {
    c.operation: c for c in (IsNull, NotNull, IsNaN, NotNaN)
}
_LITERAL: dict[Operation, type[LiteralPredicate]] = {
    c.operation: c
    for c in (
        LessThan,
        LessThanOrEqual,
        GreaterThan,
        GreaterThanOrEqual,
        EqualTo,
        NotEqualTo,
        StartsWith,
        NotStartsWith,
    )
}
_SET: dict[Operation, type[SetPredicate]] = {Operation.IN: In, Operation.NOT_IN: NotIn}

UNARY_OPERATIONS = frozenset(_UNARY)
LITERAL_OPERATIONS = frozenset(_LITERAL)
SET_OPERATIONS = frozenset(_SET)


def unary_predicate(operation: Operation, term: str | Term) -> UnaryPredicate:
    """The predicate of a unary operation."""
    return _UNARY[operation](term)


def literal_predicate(operation: Operation, term: str | Term, literal: Any) -> LiteralPredicate:
    """The predicate of a comparison with one literal."""
    return _LITERAL[operation](term, literal)


def set_predicate(
    operation: Operation, term: str | Term, literals: Iterable[Any]
) -> BooleanExpression:
    """The predicate of a comparison with several literals; simpler when there are less than two.

    Raises:
        ExpressionError: A literal is null or NaN, or the literals are one string.
    """
    if isinstance(literals, (str, bytes)):
        raise ExpressionError(
            f"{_SYMBOLS[operation]} needs a list of values, not {literals!r}",
            hint=f"Write [{literals!r}] for a single value.",
        )
    asked = as_term(term)
    try:
        values = frozenset(map(_literal, literals))
    except TypeError as error:
        raise ExpressionError(
            f"{_SYMBOLS[operation]} needs a list of plain values: {error}",
            hint="Give a list, an array or a column.",
        ) from error
    if not values:
        return AlwaysFalse() if operation is Operation.IN else AlwaysTrue()
    if len(values) == 1:
        single = Operation.EQ if operation is Operation.IN else Operation.NOT_EQ
        return literal_predicate(single, asked, next(iter(values)))
    new = object.__new__(_SET[operation])
    object.__setattr__(new, "term", asked)
    object.__setattr__(new, "literals", values)
    return new


def conjunction(operands: Iterable[BooleanExpression]) -> BooleanExpression:
    """All of these; `AlwaysTrue` for none."""
    return And.of(operands)


def disjunction(operands: Iterable[BooleanExpression]) -> BooleanExpression:
    """Any of these; `AlwaysFalse` for none."""
    return Or.of(operands)


def replaced(
    expression: BooleanExpression, kind: type[_E], answer: Callable[[_E], BooleanExpression]
) -> BooleanExpression:
    """The same `And` and `Or` of other operands, simplified.

    Args:
        expression: The expression.
        kind: Which operands, at any depth, are replaced; others stay.
        answer: What stands in the place of one.
    """
    if isinstance(expression, Junction):
        return expression.of(replaced(operand, kind, answer) for operand in expression.operands)
    return answer(expression) if isinstance(expression, kind) else expression


def rewrite_not(expression: BooleanExpression) -> BooleanExpression:
    """The same expression without `Not`: negation is moved into the predicates."""
    return replaced(expression, Not, lambda e: rewrite_not(~rewrite_not(e.child)))


def _expression(value: object) -> BooleanExpression:
    if not isinstance(value, BooleanExpression):
        raise ExpressionError(
            f"Not an expression: {value!r}",
            hint=hint_of_pyiceberg(value, "the expression of the same name")
            or 'Predicates are objects like EqualTo("id", 1); parse SQL text with parse().',
        )
    return value


def _named(term: Term) -> str:
    return repr(term.name) if isinstance(term, Reference) else repr(term)


def _literal(given: Any) -> Any:
    value = python_value(given)
    if value is None:
        raise ExpressionError(
            "A comparison with null is never true", hint="Use IsNull or NotNull (IS NULL in SQL)."
        )
    if value != value:  # noqa: PLR0124 - only NaN differs from itself
        raise ExpressionError(
            "A comparison with NaN is never true", hint="Use IsNaN or NotNaN (isnan(x) in SQL)."
        )
    return value
