"""Output to the terminal: every line that commands print goes through here, as `printable`."""

from __future__ import annotations

import json
from typing import Final, TextIO

import click

from icecomb.format.printable_text import OBEYED, printable

_JSON_LAYOUT: Final = "\n"


def printable_json(text: str) -> str:
    """Escape a JSON document as `printable` does a text; it stays the same document."""
    return OBEYED.sub(
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
