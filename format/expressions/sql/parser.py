r"""Parser of SQL predicates: `"day >= '2024-01-01' and id in (1, 2)"`.

Supported are comparisons of a column with a constant (`= == != <> < <= > >= <=>`), `IN`,
`BETWEEN`, `LIKE` with a prefix pattern (`'a%'`; a literal `%` is `\%`), `IS [NOT] NULL`,
`IS [NOT] NAN`, `IS [NOT] TRUE`, `isnan(x)`, `starts_with(x, 'a')`, boolean columns by themselves,
`AND OR NOT` and parentheses. Constants are numbers, `'text'`, `true`, `X'cafe'`, and
`DATE '2024-01-31'`, `date('2024-01-31')` or `TIMESTAMP '...'`. Names may be quoted with double
quotes or backticks, and dots lead into structs.

A column may be replaced by a partition transform: `bucket(16, id)`, `truncate(4, s)`, and
`year(ts)`, `month(ts)`, `day(ts)`, `hour(ts)` in calendar units (2024, '2024-01', '2024-01-31',
'2024-01-31-12') or `years(ts)` and so on, counted from 1970 as in Iceberg's functions for Spark,
which may also be called by their names there: `lake.system.days(ts)`. A comparison of numbers,
`1 = 1`, holds for all rows or none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum, auto
from operator import eq, ge, gt, le, lt, ne
from typing import Any, Final

from icecomb.format.errors import ExpressionError, UnsupportedError
from icecomb.format.expressions.expression import (
    AlwaysFalse,
    AlwaysTrue,
    BooleanExpression,
    EqualTo,
    In,
    IsNaN,
    IsNull,
    NotNull,
    PredicateOperation,
    StartsWith,
    conjunction,
    disjunction,
    literal_predicate,
)
from icecomb.format.expressions.term import (
    Reference,
    Term,
    UnboundTransform,
    bucket,
    day,
    days,
    hour,
    hours,
    month,
    months,
    truncate,
    year,
    years,
)

_SHOWN: Final = 300
"""The most characters of a text that messages quote."""


class TokenKind(Enum):
    """The kind of a token."""

    WORD = auto()
    """A name without quotes, or a keyword."""
    NAME = auto()
    """A name in double quotes or backticks."""
    TEXT = auto()
    """A constant in single quotes."""
    BYTES = auto()
    """A constant like `X'cafe'`; its value is the digits."""
    NUMBER = auto()
    SIGN = auto()
    """An operator, a bracket, a comma or a dot."""
    END = auto()
    """The end of the text, after the last token."""


@dataclass(frozen=True, slots=True)
class Token:
    """A token of a predicate, without quotes, from index `start` to before `end`."""

    kind: TokenKind
    value: str
    start: int
    end: int

    def is_sign(self, *signs: str) -> bool:
        """Return whether it is one of these signs."""
        return self.kind is TokenKind.SIGN and self.value in signs

    def is_word(self, *words: str) -> bool:
        """Return whether it is one of these keywords, given in upper case."""
        return self.kind is TokenKind.WORD and self.value.upper() in words


_PATTERN = re.compile(
    r"""
    (?P<blank>  (?: \s | --[^\n]* | /\*.*?\*/ )+ )
  | (?P<bytes>  [xX]'(?:[^']|'')*' )
  | (?P<text>   '(?:[^']|'')*' )
  | (?P<name>   "(?:[^"]|"")+" | `(?:[^`]|``)+` )
  | (?P<number> (?: \d+(?:\.\d*)? | \.\d+ ) (?:[eE][+-]?\d+)? (?!\w) )
  | (?P<word>   [^\W\d][\w$]* )
  | (?P<sign>   <=> | <> | <= | >= | == | != | :: | \|\| | [-=<>()+*/%,.;&|^] )
    """,
    re.VERBOSE | re.DOTALL,
)


def tokens(text: str, *, of_spark: bool = False) -> Iterator[Token]:
    """Yield the tokens of a predicate, and `END`; with `of_spark`, as Spark reads it."""
    at = 0
    while at < len(text):
        found = _PATTERN.match(text, at)
        if found is None:
            problem = "a quote is not closed" if text[at] in "'\"`" else "unexpected text"
            raise unreadable(text, f"{problem} at {text[at : at + 20]!r}, column {at + 1}")
        group = str(found.lastgroup)
        if group != "blank":
            value = _unquoted(group, found.group())
            if of_spark and found.group()[0] == '"':
                group = "text"
            if of_spark and group == "text" and "\\" in value:
                raise unreadable(text, f"a backslash in a constant, column {at + 1}")
            yield Token(TokenKind[group.upper()], value, at, found.end())
        at = found.end()
    yield Token(TokenKind.END, "", at, at)


def unreadable(text: str, reason: str) -> ExpressionError:
    """Return the error for text that is not a predicate in SQL."""
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]} ..."
    return ExpressionError(
        f"Cannot read the predicate {shown!r}: {reason}",
        hint="Write it as in WHERE: `id > 5 AND name LIKE 'a%'`, text in single quotes.",
        predicate=text,
    )


def _unquoted(group: str, value: str) -> str:
    if group == "bytes":
        return value[2:-1]
    if group in {"text", "name"}:
        quote = value[0]
        return value[1:-1].replace(quote * 2, quote)
    return value


_HINT = (
    "Compare columns with constants: a = 1, a IN (1, 2), a BETWEEN 1 AND 2, a LIKE 'x%', "
    "a IS NULL, joined by AND, OR, NOT."
)
_COMPARISONS = {
    "=": PredicateOperation.EQ,
    "==": PredicateOperation.EQ,
    "!=": PredicateOperation.NOT_EQ,
    "<>": PredicateOperation.NOT_EQ,
    "<": PredicateOperation.LT,
    "<=": PredicateOperation.LT_EQ,
    ">": PredicateOperation.GT,
    ">=": PredicateOperation.GT_EQ,
}
_COMPARED: dict[PredicateOperation, Callable[[Any, Any], bool]] = {
    PredicateOperation.EQ: eq,
    PredicateOperation.NOT_EQ: ne,
    PredicateOperation.LT: lt,
    PredicateOperation.LT_EQ: le,
    PredicateOperation.GT: gt,
    PredicateOperation.GT_EQ: ge,
}
_MIRRORED = {
    PredicateOperation.LT: PredicateOperation.GT,
    PredicateOperation.LT_EQ: PredicateOperation.GT_EQ,
    PredicateOperation.GT: PredicateOperation.LT,
    PredicateOperation.GT_EQ: PredicateOperation.LT_EQ,
}
_ARITHMETIC = ("+", "-", "*", "/", "%", "||", "&", "|", "^")
_RESERVED = frozenset(("AND", "OR", "NOT", "IN", "IS", "LIKE", "BETWEEN", "ESCAPE", "SELECT"))
_TYPES_OF_TEXT = frozenset(
    (
        "DATE",
        "TIME",
        "TIMESTAMP",
        "TIMESTAMPTZ",
        "TIMESTAMP_NTZ",
        "TIMESTAMP_LTZ",
        "TIMESTAMP_NS",
        "TIMESTAMPTZ_NS",
        "DATETIME",
    )
)
_CASTS = frozenset((*_TYPES_OF_TEXT, "TO_DATE", "TO_TIMESTAMP"))
"""Functions that make values of text as a cast does: `date('2024-01-31')`."""
_INTEGERS = frozenset(("TINYINT", "SMALLINT", "INT", "INTEGER", "BIGINT", "LONG", "SHORT", "BYTE"))
_WITHOUT_VALUES = frozenset(("UNKNOWN", "VARIANT", "GEOMETRY", "GEOGRAPHY"))
"""The types with which no value can be compared."""
_UNITS: dict[str, Callable[[str], UnboundTransform]] = {
    "YEAR": year,
    "YEARS": years,
    "MONTH": month,
    "MONTHS": months,
    "DAY": day,
    "DAYS": days,
    "HOUR": hour,
    "HOURS": hours,
}
_WIDE: dict[str, Callable[[str, int], UnboundTransform]] = {"BUCKET": bucket, "TRUNCATE": truncate}
_OF_CATALOG = frozenset((*_WIDE, "YEARS", "MONTHS", "DAYS", "HOURS"))
"""Functions of Spark's catalogs, in their namespace `system`."""
_OTHER_MATCHES = ("ILIKE", "RLIKE", "REGEXP", "SIMILAR", "GLOB")
_ANY_COLUMN: Final = "c"
_NULL: Final = re.compile(r"|NULL|CAST\(\s*NULL\s+AS\s[^']+\)", re.IGNORECASE)
_TYPED_NUMBER: Final = re.compile(r"([+-]?[0-9.]+(?:E[+-]?[0-9]+)?)(?:[LSYDF]|BD)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Column:
    term: Term


@dataclass(frozen=True, slots=True)
class _Constant:
    value: Any


@dataclass(frozen=True, slots=True)
class _Calculation:
    """An expression to compute, which predicates cannot contain."""


_Operand = _Column | _Constant | _Calculation | BooleanExpression


@dataclass(slots=True)
class _Level:
    """The parts of a predicate read since a parenthesis was opened.

    Attributes:
        has_words: Whether AND, OR or NOT occurred, so that the operands are predicates.
        conjuncts: The operands of AND since the last OR.
    """

    start: Token
    negated: bool = False
    has_words: bool = False
    conjuncts: list[BooleanExpression] = field(default_factory=list)
    alternatives: list[BooleanExpression] = field(default_factory=list)


def parse(text: str, *, of_spark: bool = False) -> BooleanExpression:
    """Parse a predicate; with `of_spark`, double quotes enclose constants instead of names."""
    if not text.strip():
        raise ExpressionError("The predicate is empty", hint=_HINT)
    try:
        return _Parser(text, of_spark=of_spark).parse()
    except RecursionError:
        raise unreadable(text[:80], "its parentheses are nested too deeply") from None


class _Parser:
    """A recursive descent parser: methods by precedence, from OR down to names and constants."""

    def __init__(self, text: str, *, of_spark: bool) -> None:
        self._text = text
        self._tokens = list(tokens(text, of_spark=of_spark))
        self._at = 0

    def parse(self) -> BooleanExpression:
        operand = self._disjunction()
        if self._next.kind is not TokenKind.END:
            raise self._unexpected()
        return self._predicate(operand, self._tokens[0])

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    def _take(self) -> Token:
        token = self._next
        if token.kind is TokenKind.END:
            raise self._unexpected()
        self._at += 1
        return token

    def _take_word(self, *words: str) -> bool:
        found = self._next.is_word(*words)
        self._at += found
        return found

    def _take_sign(self, *signs: str) -> bool:
        found = self._next.is_sign(*signs)
        self._at += found
        return found

    def _expect_sign(self, sign: str) -> None:
        if not self._take_sign(sign):
            raise self._unexpected()

    def _disjunction(self) -> _Operand:
        """Read operands joined by `OR`, `AND`, `NOT`, in parentheses nested to any depth."""
        levels = [_Level(self._next)]
        while True:
            level = levels[-1]
            while self._take_word("NOT"):
                level.negated = not level.negated
                level.has_words = True
            level.start = self._next
            if self._take_sign("("):
                levels.append(_Level(self._next))
                continue
            operand = self._comparison(self._calculation(), level.start)
            while not self._goes_on(level, operand):
                if len(levels) == 1:
                    return self._closed(level, operand)
                self._expect_sign(")")
                operand = self._closed(levels.pop(), operand)
                level = levels[-1]
                operand = self._comparison(self._calculation(operand), level.start)

    def _goes_on(self, level: _Level, operand: _Operand) -> bool:
        """Return whether another operand follows, after AND or OR."""
        if not self._next.is_word("AND", "OR"):
            return False
        level.has_words = True
        level.conjuncts.append(self._operand(level, operand))
        if self._take().is_word("OR"):
            level.alternatives.append(conjunction(level.conjuncts))
            level.conjuncts = []
        return True

    def _closed(self, level: _Level, operand: _Operand) -> _Operand:
        """Return all that was read between two parentheses, or in the whole text."""
        if not level.has_words:
            return operand
        level.conjuncts.append(self._operand(level, operand))
        level.alternatives.append(conjunction(level.conjuncts))
        return disjunction(level.alternatives)

    def _operand(self, level: _Level, operand: _Operand) -> BooleanExpression:
        # negated at once, so that NOT (a IN ()) and the like stay simple
        found = _negated(self._predicate(operand, level.start), level.negated)
        level.negated = False
        return found

    def _comparison(self, left: _Operand, start: Token) -> _Operand:
        while True:
            operator = self._next
            if operator.kind is TokenKind.SIGN and operator.value in _COMPARISONS:
                self._at += 1
                left = self._compare(_COMPARISONS[operator.value], left, start)
            elif self._take_sign("<=>"):
                left = self._compare_null_safe(left, start)
            elif self._take_word("IS"):
                negated = self._take_word("NOT")
                left = _negated(self._is(self._column(left, start), start), negated)
            elif operator.is_word("NOT", "IN", "BETWEEN", "LIKE"):
                negated = self._take_word("NOT")
                left = _negated(self._membership(left, start), negated)
            elif operator.is_word(*_OTHER_MATCHES):
                raise self._no_predicate(start, self._tokens[-1])
            else:
                return left

    def _membership(self, left: _Operand, start: Token) -> BooleanExpression:
        word = self._take()
        if word.is_word("IN"):
            return In(self._column(left, start), self._constants(start))
        if word.is_word("BETWEEN"):
            name, low = self._column(left, start), self._constant()
            if not self._take_word("AND"):
                raise self._unexpected()
            at_least = literal_predicate(PredicateOperation.GT_EQ, name, low)
            return at_least & literal_predicate(PredicateOperation.LT_EQ, name, self._constant())
        if word.is_word("LIKE"):
            return self._like(self._column(left, start), start)
        if word.is_word(*_OTHER_MATCHES):
            raise self._no_predicate(start, self._tokens[-1])
        self._at -= 1
        raise self._unexpected()

    def _compare(
        self, operation: PredicateOperation, left: _Operand, start: Token
    ) -> BooleanExpression:
        if not isinstance(left, _Constant):
            return literal_predicate(operation, self._column(left, start), self._constant())
        right_start, right = self._next, self._calculation()
        value = self._value(left, start)
        if _is_number(left) and _is_number(right):
            other = self._value(right, right_start)
            return AlwaysTrue() if _COMPARED[operation](value, other) else AlwaysFalse()
        operation = _MIRRORED.get(operation, operation)
        return literal_predicate(operation, self._column(right, right_start), value)

    def _compare_null_safe(self, left: _Operand, start: Token) -> BooleanExpression:
        right_start = self._next
        right = self._calculation()
        if isinstance(left, _Constant):
            left, right, start, right_start = right, left, right_start, start
        name = self._column(left, start)
        if isinstance(right, _Constant) and right.value is None:
            return IsNull(name)
        return NotNull(name) & EqualTo(name, self._value(right, right_start))

    def _is(self, name: Term, start: Token) -> BooleanExpression:
        if self._take_word("NULL"):
            return IsNull(name)
        if self._take_word("NAN"):
            return IsNaN(name)
        if self._next.is_word("TRUE", "FALSE"):
            return NotNull(name) & EqualTo(name, self._take().is_word("TRUE"))
        raise self._no_predicate(start, self._next)

    def _constants(self, start: Token) -> list[Any]:
        self._expect_sign("(")
        if self._next.is_word("SELECT", "WITH"):
            raise self._no_predicate(start, self._tokens[-1])
        values: list[Any] = []
        if not self._take_sign(")"):
            values.append(self._constant())
            while self._take_sign(","):
                values.append(self._constant())
            self._expect_sign(")")
        return values

    def _like(self, name: Term, start: Token) -> BooleanExpression:
        pattern = self._constant()
        escape = self._constant() if self._take_word("ESCAPE") else None
        is_text = isinstance(pattern, str) and isinstance(escape, str | None)
        if not is_text or (escape is not None and len(escape) != 1):
            raise self._no_predicate(start, self._tokens[self._at - 1])
        asked = self._span(start, self._tokens[self._at - 1])
        if (escape is None and "\\\\" in pattern) or (escape and ends_open(pattern, escape)):
            raise ExpressionError(
                f"The escape characters of a pattern have no clear meaning: {asked!r}",
                hint="Name the escape character, and double it where it is meant literally: "
                "LIKE 'a!!b%' ESCAPE '!'",
                predicate=self._text,
            )
        prefix, rest = like_prefix(pattern, escape)
        if not rest:
            return EqualTo(name, prefix)
        if rest.strip("%"):
            raise ExpressionError(
                f"Only patterns that are a prefix are supported, like 'abc%': {asked!r}",
                hint="For a literal % or _ write \\% or \\_.",
                predicate=self._text,
            )
        # also for '': NotNull is equivalent for text, but its negation selects null
        return StartsWith(name, prefix)

    def _calculation(self, first: _Operand | None = None) -> _Operand:
        operand = self._cast(first)
        while self._take_sign(*_ARITHMETIC):
            self._cast()
            operand = _Calculation()
        return operand

    def _cast(self, first: _Operand | None = None) -> _Operand:
        operand = self._primary() if first is None else first
        while self._take_sign("::"):
            operand = _cast(operand, self._type())
        return operand

    def _primary(self) -> _Operand:
        token = self._take()
        if token.kind is TokenKind.TEXT:
            return _Constant(token.value)
        if token.kind is TokenKind.NUMBER:
            return _Constant(_number(token.value))
        if token.kind is TokenKind.BYTES:
            return _Constant(self._bytes(token))
        if token.is_sign("("):
            operand = self._disjunction()
            self._expect_sign(")")
            return operand
        if token.is_sign("-", "+"):
            return self._signed(negative=token.value == "-")
        if token.kind is TokenKind.NAME:
            return self._name(token)
        if token.kind is TokenKind.WORD and token.value.upper() not in _RESERVED:
            return self._word(token)
        self._at -= 1
        raise self._unexpected()

    def _signed(self, *, negative: bool) -> _Operand:
        operand = self._cast()
        value = operand.value if isinstance(operand, _Constant) else None
        if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
            return _Calculation()
        return _Constant(-value if negative else value)

    def _word(self, token: Token) -> _Operand:
        if self._next.kind is TokenKind.TEXT and token.value.upper() in _TYPES_OF_TEXT:
            # The column decides the type: DATE '2024-01-31' means the same as the text
            return _cast(_Constant(self._take().value), token.value)
        if self._next.kind is TokenKind.TEXT:
            self._check_values(token)
        if token.is_word("NULL"):
            return _Constant(None)
        if token.is_word("TRUE", "FALSE"):
            return _Constant(token.is_word("TRUE"))
        if token.is_word("CASE"):
            raise self._no_predicate(token, self._tokens[-1])
        if self._next.is_sign("("):
            return self._function(token)
        return self._name(token)

    def _name(self, token: Token) -> _Operand:
        part, parts = token, [token.value]
        while self._take_sign("."):
            part = self._take()
            if part.kind not in {TokenKind.WORD, TokenKind.NAME}:
                self._at -= 1
                raise self._unexpected()
            parts.append(part.value)
        of_catalog = [each.lower() for each in parts[-2:-1]] == ["system"]
        if of_catalog and part.value.upper() in _OF_CATALOG and self._take_sign("("):
            return self._transform(part)
        return _Column(Reference(".".join(parts)))

    def _function(self, name: Token) -> _Operand:
        self._expect_sign("(")
        start = self._next
        if name.is_word("ISNAN", "IS_NAN"):
            column = self._column(self._calculation(), start)
            self._expect_sign(")")
            return IsNaN(column)
        if name.is_word("STARTS_WITH", "STARTSWITH"):
            column = self._column(self._calculation(), start)
            self._expect_sign(",")
            prefix = self._constant()
            self._expect_sign(")")
            return StartsWith(column, prefix)
        if name.value.upper() in _WIDE or name.value.upper() in _UNITS:
            return self._transform(name)
        if name.is_word("CAST"):
            operand = self._calculation()
            if not self._take_word("AS"):
                raise self._unexpected()
            kind = self._type()
            self._expect_sign(")")
            return _cast(operand, kind)
        if name.value.upper() in _CASTS and self._next.kind is TokenKind.TEXT:
            operand = self._calculation()
            if self._take_sign(")"):
                return _cast(operand, name.value)
        self._skip_arguments()
        return _Calculation()

    def _transform(self, name: Token) -> _Operand:
        """Read a partition transform: `bucket(16, id)`, also the other way around, or `day(ts)`."""
        arguments = [self._calculation()]
        while self._take_sign(","):
            arguments.append(self._calculation())
        self._expect_sign(")")
        columns = [a.term for a in arguments if isinstance(a, _Column)]
        numbers = [a.value for a in arguments if isinstance(a, _Constant)]
        word = name.value.upper()
        fits = len(columns) == 1 and len(arguments) == len(columns) + len(numbers)
        (column,) = columns if fits else (None,)
        if isinstance(column, Reference):
            if word in _UNITS and not numbers:
                return _Column(_UNITS[word](column.name))
            if word in _WIDE and len(numbers) == 1 and type(numbers[0]) is int:
                return _Column(_WIDE[word](column.name, numbers[0]))
        raise self._no_predicate(name, self._tokens[self._at - 1])

    def _type(self) -> str:
        token = self._take()
        if token.kind is not TokenKind.WORD:
            self._at -= 1
            raise self._unexpected()
        self._check_values(token)
        if self._take_sign("("):
            self._skip_arguments()
        return token.value

    def _check_values(self, token: Token) -> None:
        if token.value.upper() in _WITHOUT_VALUES:
            raise UnsupportedError(
                f"No column can be compared with a value of type {token.value}, in {self._text!r}",
                hint="Filter by other columns.",
                predicate=self._text,
            )

    def _skip_arguments(self) -> None:
        depth = 1
        while depth:
            token = self._take()
            depth += token.is_sign("(") - token.is_sign(")")

    def _predicate(self, operand: _Operand, start: Token) -> BooleanExpression:
        if isinstance(operand, BooleanExpression):
            return operand
        if isinstance(operand, _Column) and isinstance(operand.term, Reference):
            return EqualTo(operand.term, True)
        if isinstance(operand, _Constant) and isinstance(operand.value, bool):
            return AlwaysTrue() if operand.value else AlwaysFalse()
        raise self._no_predicate(start, self._tokens[self._at - 1])

    def _column(self, operand: _Operand, start: Token) -> Term:
        if isinstance(operand, _Column):
            return operand.term
        found = self._span(start, self._last_of_operand(start))
        raise ExpressionError(
            f"Expected a column, found {found!r} in {self._text!r}",
            hint=_HINT,
            predicate=self._text,
        )

    def _constant(self) -> Any:
        start = self._next
        return self._value(self._calculation(), start)

    def _value(self, operand: _Operand, start: Token) -> Any:
        if isinstance(operand, _Constant) and operand.value is not None:
            return operand.value
        if isinstance(operand, _Constant):
            raise ExpressionError(
                f"A comparison with NULL is never true, in {self._text!r}",
                hint="Use IS NULL, or leave NULL out of the list.",
                predicate=self._text,
            )
        what = "a column" if isinstance(operand, _Column) else "an expression"
        found = self._span(start, self._tokens[self._at - 1])
        raise ExpressionError(
            f"Expected a constant, found {what}: {found!r} in {self._text!r}",
            hint='Quote text with single quotes; "x" and `x` are names.',
            predicate=self._text,
        )

    def _bytes(self, token: Token) -> bytes:
        try:
            return bytes.fromhex(token.value)
        except ValueError as error:
            raise ExpressionError(
                f"Not hexadecimal: {self._span(token, token)!r} in {self._text!r}",
                hint="Write two hexadecimal digits per byte, as in X'cafe'.",
                predicate=self._text,
            ) from error

    def _last_of_operand(self, start: Token) -> Token:
        """Return the last token read, without the operator after the operand."""
        last = self._at - 1
        while last > 0 and self._tokens[last].start > start.start and self._is_operator(last):
            last -= 1
        return self._tokens[last]

    def _is_operator(self, at: int) -> bool:
        token = self._tokens[at]
        words = token.is_word("IS", "NOT", "IN", "BETWEEN", "LIKE")
        return words or token.is_sign("<=>", *_COMPARISONS)

    def _span(self, first: Token, last: Token) -> str:
        return self._text[first.start : last.end].strip()

    def _no_predicate(self, first: Token, last: Token) -> ExpressionError:
        return ExpressionError(
            f"Not a predicate on columns: {self._span(first, last)!r} in {self._text!r}",
            hint=_HINT,
            predicate=self._text,
        )

    def _unexpected(self) -> ExpressionError:
        token = self._next
        if token.kind is TokenKind.END:
            return unreadable(self._text, "it ends too early")
        found = self._text[token.start : token.end]
        return unreadable(self._text, f"unexpected {found!r}, column {token.start + 1}")


def _negated(expression: BooleanExpression, negated: bool) -> BooleanExpression:  # noqa: FBT001
    return ~expression if negated else expression


def _cast(operand: _Operand, kind: str) -> _Operand:
    """Return a constant where a cast to this type keeps its value: the column decides the type."""
    if not isinstance(operand, _Constant):
        return _Calculation()
    value, word = operand.value, kind.upper()
    is_time = word in {"DATE", "TO_DATE"} and isinstance(value, str) and ":" in value
    is_part = word in _INTEGERS and isinstance(value, float | Decimal) and value % 1 != 0
    return _Calculation() if is_time or is_part else operand


def _is_number(operand: _Operand) -> bool:
    value = operand.value if isinstance(operand, _Constant) else None
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _number(text: str) -> int | float | Decimal:
    try:
        return int(text)
    except ValueError:
        exact, number = Decimal(text), float(text)
        return number if Decimal(repr(number)) == exact else exact


def like_prefix(pattern: str, escape: str | None) -> tuple[str, str]:
    """Return the text before the first wildcard, and the rest.

    Without `ESCAPE` a backslash before a wildcard makes it literal, as in Spark, Hive and
    PyIceberg; elsewhere it is an ordinary character.
    """
    prefix, position = "", 0
    while position < len(pattern):
        character = pattern[position]
        following = pattern[position + 1 : position + 2]
        if (escape and character == escape) or (
            escape is None and character == "\\" and following and following in "%_"
        ):
            position += 1
            character = following
        elif character in "%_":
            break
        prefix += character
        position += 1
    return prefix, pattern[position:]


def ends_open(pattern: str, escape: str) -> bool:
    """Return whether the last character is an escape character that escapes nothing."""
    return pattern.replace(escape * 2, "").endswith(escape)


def constant_of(sql: str, path: str) -> Any:
    """Return the value of a DEFAULT clause; None for NULL, and without a clause."""
    if _NULL.fullmatch(sql.strip()):
        return None
    typed = _TYPED_NUMBER.fullmatch(sql.strip())
    try:
        found = parse(f"{_ANY_COLUMN} = ({typed[1] if typed else sql})", of_spark=True)
    except ExpressionError as error:
        raise _no_constant(sql, path) from error
    if not isinstance(found, EqualTo):
        raise _no_constant(sql, path)
    return found.literal


def _no_constant(sql: str, path: str) -> UnsupportedError:
    return UnsupportedError(
        f"Column {path} cannot have the default {sql}: an Iceberg table has constants as defaults",
        hint="Write a constant of the column's type, such as 5, 'x', DATE '2024-01-31' or X'cafe'",
        column=path,
    )
