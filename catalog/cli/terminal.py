r"""What reaches a terminal: every line that commands print goes through here.

Rows, properties, lock holders and messages are other people's text. A terminal obeys some of it:
control sequences move the cursor, rename the window or fill the clipboard, and marks of direction
show a name as another one. Such characters are shown escaped, as in ``\x1b``.
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
    "\xad\u180e\u200b\u2028\u2029\u2060-\u2065\u206a-\u206f\ufeff\ufff9-\ufffb"  # not to be seen
    "\ud800-\udfff"  # halves of characters, which no terminal can be sent
    "\U000e0000-\U000e0fff"  # tags
    "]"
)
_JSON_LAYOUT: Final = "\n"


def printable(text: str) -> str:
    """A text as one line that nothing obeys; joiners of scripts and emoji stay."""
    return text if text.isprintable() else _OBEYED.sub(_escaped, text)


def printable_json(text: str) -> str:
    """The same for a JSON document, which stays the same document."""
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
    """Print our own words, of several lines, to stderr."""
    click.echo(text, err=True)


def _escaped(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()
