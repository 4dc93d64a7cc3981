"""Tokens of a statement."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, cast

from icecomb.format.errors import ValidationError

_TOKEN: Final = re.compile(
    r"""(?P<gap>\s+|--[^\r\n]*|/\*(?!\+).*?\*/)
    |(?P<number>-?\d+(?:[LSY](?!\w)|(?![\w.])))
    |(?P<decimal>-?(?:\d+\.\d*|\.\d+|\d+(?=E))(?:E[+-]?\d+)?(?:BD|D|F)?(?!\w))
    |(?P<word>\w+)
    |(?P<quoted>`(?:[^`]|``)*`)
    |(?P<string>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
    |(?P<symbol>.)""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)

Kind = Literal["number", "decimal", "word", "quoted", "string", "symbol", "end"]


class StatementError(ValidationError):
    """A statement cannot be read."""


@dataclass(frozen=True, slots=True)
class Token:
    """A word, number, string or symbol.

    Args:
        kind: The kind; ``quoted`` is a word in backquotes.
        text: The original text, without the quotes of quoted words and strings.
    """

    kind: Kind
    text: str

    def says(self, keyword: str) -> bool:
        """Return whether it is this keyword or symbol; quoted tokens never are."""
        return self.kind in {"word", "symbol"} and self.text.upper() == keyword

    @property
    def is_name(self) -> bool:
        """Whether it can be a name; no keyword of this grammar is reserved."""
        return self.kind in {"word", "quoted"}

    def __str__(self) -> str:
        return "the end" if self.kind == "end" else repr(self.text)


END: Final = Token("end", "")


def tokens(text: str) -> Iterator[Token]:
    """Yield the tokens of a text, without comments; `END` is the last."""
    for match in _TOKEN.finditer(text):
        kind, found = cast("Kind", match.lastgroup), match[0]
        if match["gap"]:
            continue
        if kind == "quoted":
            found = found[1:-1].replace("``", "`")
            if not found:
                raise StatementError("A name is empty: ``", hint="write a name between the quotes")
        elif kind == "string":
            found = _ESCAPE.sub(r"\1", found[1:-1])
        yield Token(kind, found)
    yield END
