r"""Output to the terminal: every line that commands print goes through here.

Rows, properties, lock holders and messages are other people's text. Terminals obey some of it:
control sequences move the cursor, rename the window or fill the clipboard, and direction marks
make one name look like another. Such characters are shown escaped, as in ``\x1b``.
"""

from __future__ import annotations

import json
import re
from typing import Final, TextIO

import click

_OBEYED: Final = re.compile(
    "["
    "\x00-\x1f\x7f-\x9f"  # C0 with escape, delete, C1 with the one-byte form of ESC [
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # marks, embeddings and isolates of direction
    "\xad\u180e\u200b\u2028\u2029\u2060-\u2065\u206a-\u206f\ufeff\ufff9-\ufffb"  # invisible
    "\ud800-\udfff"  # surrogates, which cannot be encoded
    "\U000e0000-\U000e0fff"  # tags
    "]"
)
_JSON_LAYOUT: Final = "\n"


def printable(text: str) -> str:
    """Escape a text to one line without control characters; joiners of scripts and emoji stay."""
    return text if text.isprintable() else _OBEYED.sub(_escaped, text)


def printable_json(text: str) -> str:
    """Escape a JSON document in the same way; it stays the same document."""
    return _OBEYED.sub(
        lambda found: found[0] if found[0] == _JSON_LAYOUT else json.dumps(found[0])[1:-1], text
    )


def write_line(text: str, stream: TextIO | None = None) -> None:
    """Print one line, to stdout unless ``stream`` is another."""
    click.echo(printable(text), file=stream)


def write_json(text: str) -> None:
    """Print a JSON document to stdout."""
    click.echo(printable_json(text))


def write_help(text: str) -> None:
    """Print icecomb's own text, of several lines, to stderr."""
    click.echo(text, err=True)


def _escaped(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()
