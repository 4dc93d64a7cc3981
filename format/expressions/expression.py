"""Predicates on the columns of a table, built, combined and simplified without a schema.

    (GreaterThanOrEqual("day", "2024-01-01") & In("id", [1, 2])) | IsNull("name")

A predicate is true, false or unknown for a row, as in SQL: a comparison with null is unknown, and
a row is selected only where the whole expression is true. So `NotEqualTo`, `NotIn` and
`NotStartsWith` do not select nulls; `IsNull`, `NotNull`, `IsNaN` and `NotNaN` are never unknown
(null is not NaN). A NaN satisfies `NotEqualTo` and `NotIn` and no other comparison, as in PyIceberg
and pyarrow: `d > 10` does not select it. Filters of Spark, where NaN is the greatest number, ask
for it explicitly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, Final, TypeVar

from icecomb.format.argument import hint_of_pyiceberg
from icecomb.format.errors import ExpressionError
from icecomb.format.expressions.literal import literal_text, python_value
from icecomb.format.expressions.term import Reference, Term, as_term


class PredicateOperation(Enum):
    """The operation of a predicate; the value is its name in the JSON form of expressions."""

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
    def negated(self) -> PredicateOperation:
        """The operation that is true exactly where this one is false."""
        return _NEGATED[self]


_OPPOSITES = (
    (PredicateOperation.IS_NULL, PredicateOperation.NOT_NULL),
    (PredicateOperation.IS_NAN, PredicateOperation.NOT_NAN),
    (PredicateOperation.LT, PredicateOperation.GT_EQ),
    (PredicateOperation.LT_EQ, PredicateOperation.GT),
    (PredicateOperation.EQ, PredicateOperation.NOT_EQ),
    (PredicateOperation.STARTS_WITH, PredicateOperation.NOT_STARTS_WITH),
    (PredicateOperation.IN, PredicateOperation.NOT_IN),
)
_NEGATED = {a: b for pair in _OPPOSITES for a, b in (pair, pair[::-1])}
_SYMBOLS = {
    PredicateOperation.LT: "<",
    PredicateOperation.LT_EQ: "<=",
    PredicateOperation.GT: ">",
    PredicateOperation.GT_EQ: ">=",
    PredicateOperation.EQ: "=",
    PredicateOperation.NOT_EQ: "!=",
    PredicateOperation.IN: "IN",
    PredicateOperation.NOT_IN: "NOT IN",
    PredicateOperation.STARTS_WITH: "STARTS WITH",
    PredicateOperation.NOT_STARTS_WITH: "NOT STARTS WITH",
    PredicateOperation.IS_NULL: "IS NULL",
    PredicateOperation.NOT_NULL: "IS NOT NULL",
    PredicateOperation.IS_NAN: "IS NAN",
    PredicateOperation.NOT_NAN: "IS NOT NAN",
}


_E = TypeVar("_E", bound="BooleanExpression")


class BooleanExpression:
    """The base class of all expressions; `&`, `|` and `~` combine them."""

    __slots__ = ()

    def __and__(self, other: BooleanExpression) -> BooleanExpression:
        return And(self, _expression(other))

    def __or__(self, other: BooleanExpression) -> BooleanExpression:
        return Or(self, _expression(other))

    def __invert__(self) -> BooleanExpression:
        raise NotImplementedError

    def __bool__(self) -> bool:
        raise ExpressionError(
            f"An expression has no truth value: {self}",
            hint="Combine expressions with & | ~ instead of and, or, not.",
        )


@dataclass(frozen=True, slots=True)
class AlwaysTrue(BooleanExpression):
    """The expression that selects every row."""

    def __invert__(self) -> BooleanExpression:
        return AlwaysFalse()

    def __str__(self) -> str:
        return "true"


@dataclass(frozen=True, slots=True)
class AlwaysFalse(BooleanExpression):
    """The expression that selects no row."""

    def __invert__(self) -> BooleanExpression:
        return AlwaysTrue()

    def __str__(self) -> str:
        return "false"


class _Unjoined(tuple["BooleanExpression", ...]):
    """The parts of a junction whose operands were not needed yet, so that it is flattened once."""

    __slots__ = ()


class Junction(BooleanExpression):
    """Several expressions joined by `And` or `Or`, simplified when created.

    `And(a, And(b, c))` is `And(a, b, c)`; a constant operand is dropped or decides the result, so
    that the result may be another kind of expression.
    """

    __slots__ = ("_hash", "_parts")
    _hash: int | None
    _parts: tuple[BooleanExpression, ...]
    neutral: ClassVar[BooleanExpression]
    """The operand that makes no difference: the junction of none."""

    def __new__(  # type: ignore[misc]
        cls, left: BooleanExpression, right: BooleanExpression, *rest: BooleanExpression
    ) -> BooleanExpression:
        """Join the operands."""
        return cls.of((left, right, *rest))

    @classmethod
    def of(cls, operands: Iterable[BooleanExpression]) -> BooleanExpression:
        """Return the junction of any number of operands."""
        neutral, decisive = type(cls.neutral), type(~cls.neutral)
        parts: list[BooleanExpression] = []
        is_chain = False
        for operand in operands:
            part = _expression(operand)
            if isinstance(part, decisive):
                return part
            if isinstance(part, cls):
                is_chain = True
            elif isinstance(part, (Junction, Not)):
                hash(part)  # cached: the hashes of all its parts are known already
            if not isinstance(part, neutral):
                parts.append(part)
        if is_chain and len(parts) > 1:
            return cls._made(_Unjoined(parts))
        kept = tuple(dict.fromkeys(parts))
        if len(kept) < 2:
            return next(iter(kept), cls.neutral)
        return cls._made(kept)

    @classmethod
    def _made(cls, parts: tuple[BooleanExpression, ...]) -> BooleanExpression:
        new = object.__new__(cls)
        new._hash, new._parts = None, parts
        return new

    @property
    def operands(self) -> tuple[BooleanExpression, ...]:
        """Two or more expressions, none of them of the same kind."""
        parts = self._parts
        if isinstance(parts, _Unjoined):
            joined: dict[BooleanExpression, None] = {}
            waiting = list(reversed(parts))
            while waiting:
                part = waiting.pop()
                if isinstance(part, Junction) and type(part) is type(self):
                    waiting.extend(reversed(part._parts))  # noqa: SLF001 - of this class
                else:
                    joined[part] = None
            self._parts = parts = tuple(joined)
        return parts

    @property
    def left(self) -> BooleanExpression:
        """The first operand."""
        return self.operands[0]

    @property
    def right(self) -> BooleanExpression:
        """The junction of the other operands."""
        return self.of(self.operands[1:])

    def __invert__(self) -> BooleanExpression:
        whole: BooleanExpression = self
        return folded(whole, operands_of, lambda e, found: _opposite(e).of(found) if found else ~e)

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((type(self), self.operands))
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Junction):
            return NotImplemented
        waiting: list[tuple[BooleanExpression, BooleanExpression]] = [(self, other)]
        while waiting:
            mine, theirs = waiting.pop()
            if mine is theirs:
                continue
            inside, there = parts_of(mine), parts_of(theirs)
            if type(mine) is not type(theirs) or len(inside) != len(there):
                return False
            if hash(mine) != hash(theirs) or (not inside and mine != theirs):
                return False
            waiting.extend(zip(inside, there, strict=True))
        return True

    def __reduce__(self) -> tuple[Any, ...]:
        listed: list[Any] = []

        def answered(e: BooleanExpression, found: list[bool]) -> bool:
            listed.append((type(e), len(found)) if found else e)
            return True

        whole: BooleanExpression = self
        folded(whole, parts_of, answered)
        return _from_list, (listed,)

    def __str__(self) -> str:
        return _text(self, str)

    def __repr__(self) -> str:
        return _text(self, repr)


class And(Junction):
    """The expression that is true where all operands are; see `Junction`."""

    __slots__ = ()
    neutral = AlwaysTrue()


class Or(Junction):
    """The expression that is true where any operand is; see `Junction`."""

    __slots__ = ()
    neutral = AlwaysFalse()


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Not(BooleanExpression):
    """The expression that is true where its child is false.

    A constant or another `Not` inside is resolved on creation.

    Attributes:
        child: The negated expression.
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
        return _text(self, str)

    def __repr__(self) -> str:
        return _text(self, repr)


class UnboundPredicate(BooleanExpression):
    """A predicate on one column, or on a transform of it, by name; binding gives it a type."""

    __slots__ = ()
    operation: ClassVar[PredicateOperation]
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
            or a scalar of NumPy, pandas or Arrow; binding converts it to the column's type.

    Raises:
        ExpressionError: If the value is null or NaN, with which no comparison is true.
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

    Created with one value it is `EqualTo` or `NotEqualTo`, with none a constant.

    Attributes:
        term: The column, or a transform of it.
        literals: The values, two or more.
    """

    term: Term
    literals: frozenset[Any]

    def __new__(  # type: ignore[misc]
        cls, term: str | Term, literals: Iterable[Any]
    ) -> BooleanExpression:
        """Create the simplest equivalent predicate."""
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
    """The predicate that the value is null."""

    __slots__ = ()
    operation = PredicateOperation.IS_NULL


class NotNull(UnaryPredicate):
    """The predicate that the value is not null."""

    __slots__ = ()
    operation = PredicateOperation.NOT_NULL


class IsNaN(UnaryPredicate):
    """The predicate that the value is NaN."""

    __slots__ = ()
    operation = PredicateOperation.IS_NAN


class NotNaN(UnaryPredicate):
    """The predicate that the value is not NaN; true for null."""

    __slots__ = ()
    operation = PredicateOperation.NOT_NAN


class LessThan(LiteralPredicate):
    """The predicate that the value is less than the literal."""

    __slots__ = ()
    operation = PredicateOperation.LT


class LessThanOrEqual(LiteralPredicate):
    """The predicate that the value is less than or equal to the literal."""

    __slots__ = ()
    operation = PredicateOperation.LT_EQ


class GreaterThan(LiteralPredicate):
    """The predicate that the value is greater than the literal."""

    __slots__ = ()
    operation = PredicateOperation.GT


class GreaterThanOrEqual(LiteralPredicate):
    """The predicate that the value is greater than or equal to the literal."""

    __slots__ = ()
    operation = PredicateOperation.GT_EQ


class EqualTo(LiteralPredicate):
    """The predicate that the value equals the literal."""

    __slots__ = ()
    operation = PredicateOperation.EQ


class NotEqualTo(LiteralPredicate):
    """The predicate that the value differs from the literal; null does not."""

    __slots__ = ()
    operation = PredicateOperation.NOT_EQ


class StartsWith(LiteralPredicate):
    """The predicate that text or bytes begin with the literal."""

    __slots__ = ()
    operation = PredicateOperation.STARTS_WITH


class NotStartsWith(LiteralPredicate):
    """The predicate that text or bytes do not begin with the literal; null does not match."""

    __slots__ = ()
    operation = PredicateOperation.NOT_STARTS_WITH


class In(SetPredicate):
    """The predicate that the value equals one of the literals."""

    __slots__ = ()
    operation = PredicateOperation.IN


class NotIn(SetPredicate):
    """The predicate that the value equals none of the literals; null does not match."""

    __slots__ = ()
    operation = PredicateOperation.NOT_IN


_UNARY: dict[PredicateOperation, type[UnaryPredicate]] = {
    c.operation: c for c in (IsNull, NotNull, IsNaN, NotNaN)
}
_LITERAL: dict[PredicateOperation, type[LiteralPredicate]] = {
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
_SET: dict[PredicateOperation, type[SetPredicate]] = {
    PredicateOperation.IN: In,
    PredicateOperation.NOT_IN: NotIn,
}

UNARY_OPERATIONS = frozenset(_UNARY)
LITERAL_OPERATIONS = frozenset(_LITERAL)


def unary_predicate(operation: PredicateOperation, term: str | Term) -> UnaryPredicate:
    """Return the predicate of a unary operation."""
    return _UNARY[operation](term)


def literal_predicate(
    operation: PredicateOperation, term: str | Term, literal: Any
) -> LiteralPredicate:
    """Return the predicate of a comparison with one literal."""
    return _LITERAL[operation](term, literal)


def set_predicate(
    operation: PredicateOperation, term: str | Term, literals: Iterable[Any]
) -> BooleanExpression:
    """Return the predicate of a comparison with several literals; simpler for less than two."""
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
        return AlwaysFalse() if operation is PredicateOperation.IN else AlwaysTrue()
    if len(values) == 1:
        single = (
            PredicateOperation.EQ
            if operation is PredicateOperation.IN
            else PredicateOperation.NOT_EQ
        )
        return literal_predicate(single, asked, next(iter(values)))
    new = object.__new__(_SET[operation])
    object.__setattr__(new, "term", asked)
    object.__setattr__(new, "literals", values)
    return new


def conjunction(operands: Iterable[BooleanExpression]) -> BooleanExpression:
    """Return the conjunction of expressions; `AlwaysTrue` for none."""
    return And.of(operands)


def disjunction(operands: Iterable[BooleanExpression]) -> BooleanExpression:
    """Return the disjunction of expressions; `AlwaysFalse` for none."""
    return Or.of(operands)


def replaced(
    expression: BooleanExpression, kind: type[_E], answer: Callable[[_E], BooleanExpression]
) -> BooleanExpression:
    """Replace operands of a class in `And` and `Or` at any depth, and simplify the result."""

    def answered(e: BooleanExpression, found: list[BooleanExpression]) -> BooleanExpression:
        if isinstance(e, Junction):
            return e.of(found)
        return answer(e) if isinstance(e, kind) else e

    def add(
        e: BooleanExpression, before: list[BooleanExpression], found: BooleanExpression
    ) -> bool:
        before.append(found)
        return isinstance(e, Junction) and isinstance(found, type(~e.neutral))

    return folded(expression, operands_of, answered, add)


def rewrite_not(expression: BooleanExpression) -> BooleanExpression:
    """Return the same expression without `Not`: negation is moved into the predicates."""

    def parts(asked: tuple[BooleanExpression, bool]) -> list[tuple[BooleanExpression, bool]]:
        e, wanted = asked
        if isinstance(e, Not):
            return [(e.child, not wanted)]
        return [(operand, wanted) for operand in operands_of(e)]

    def answered(
        asked: tuple[BooleanExpression, bool], found: list[BooleanExpression]
    ) -> BooleanExpression:
        e, wanted = asked
        if isinstance(e, Not):
            return found[0]
        if isinstance(e, Junction):
            return e.of(found) if wanted else _opposite(e).of(found)
        return e if wanted else ~e

    return folded((expression, True), parts, answered)


def operands_of(expression: BooleanExpression) -> tuple[BooleanExpression, ...]:
    """Return the operands of an `And` or `Or`; none for any other expression."""
    return expression.operands if isinstance(expression, Junction) else ()


def _opposite(junction: BooleanExpression) -> type[Junction]:
    return Or if isinstance(junction, And) else And


def parts_of(expression: BooleanExpression) -> tuple[BooleanExpression, ...]:
    """Return the parts of an `And`, `Or` or `Not`; none for a leaf."""
    return (expression.child,) if isinstance(expression, Not) else operands_of(expression)


def _from_list(listed: list[Any]) -> BooleanExpression:
    """Return the expression of a list in which parts precede the whole (postfix notation)."""
    made: list[BooleanExpression] = []
    for item in listed:
        if isinstance(item, tuple):
            kind, count = item
            parts = made[-count:]
            del made[-count:]
            made.append(Not(*parts) if kind is Not else kind.of(parts))
        else:
            made.append(item)
    (whole,) = made
    return whole


def _text(expression: BooleanExpression, text: Callable[[object], str]) -> str:
    """Return the text of an expression, `str` or `repr`, from those of its parts."""

    def answered(e: BooleanExpression, found: list[str]) -> str:
        if not found:
            return text(e)
        name = type(e).__name__
        if text is repr:
            return f"{name}({', '.join(found)})"
        return f"NOT {found[0]}" if isinstance(e, Not) else f"({f' {name.upper()} '.join(found)})"

    return folded(expression, parts_of, answered)


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


_N = TypeVar("_N")
_A = TypeVar("_A")
_END: Final = object()


def folded(
    root: _N,
    parts: Callable[[_N], Iterable[_N]],
    answer: Callable[[_N, list[_A]], _A],
    add: Callable[[_N, list[_A], _A], bool] | None = None,
) -> _A:
    """Compute a result for a tree, from its leaves up.

    `add` adds the result of a child to those before it; it returns True if they decide the node, so
    that no more children are evaluated. By default all are.
    """
    waiting: list[tuple[_N, Iterator[_N], list[_A]]] = [(root, iter(parts(root)), [])]
    while True:
        node, inside, answers = waiting[-1]
        part = next(inside, _END)
        if part is not _END:
            waiting.append((part, iter(parts(part)), []))  # type: ignore[arg-type]
            continue
        waiting.pop()
        found = answer(node, answers)
        if not waiting:
            return found
        around, _, before = waiting[-1]
        if add is None:
            before.append(found)
        elif add(around, before, found):
            waiting[-1] = around, iter(()), before
