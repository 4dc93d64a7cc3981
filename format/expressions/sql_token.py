"""The words, names, constants and signs of a predicate in SQL text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from icecomb.format.errors import ExpressionError

_SHOWN: Final = 300
"""So much of a text is shown in messages, in characters."""


class TokenKind(Enum):
    """What a token is."""

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
    """Behind the last token."""


@dataclass(frozen=True, slots=True)
class Token:
    """One token.

    Attributes:
        kind: What it is.
        value: Its text, without quotes.
        start: Where it begins in the predicate.
        end: Where it ends.
    """

    kind: TokenKind
    value: str
    start: int
    end: int

    def is_sign(self, *signs: str) -> bool:
        """Whether it is one of these signs."""
        return self.kind is TokenKind.SIGN and self.value in signs

    def is_word(self, *words: str) -> bool:
        """Whether it is one of these keywords, given in upper case."""
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
    r"""The tokens of a predicate, and `END`.

    Args:
        text: The predicate.
        of_spark: Whether it means what it means to Spark, where double quotes are around constants,
            and a backslash in these escapes the next character.

    Raises:
        ExpressionError: A character has no meaning there, or a quote is not closed.
    """
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
    """The error of text that is no predicate in SQL."""
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
