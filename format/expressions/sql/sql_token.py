"""Tokens of a predicate in SQL text: words, names, constants and signs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from icecomb.format.errors import ExpressionError

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
