"""The page of `icecomb health --html`: one file that needs no network and no script.

Names of tables and messages are other people's text: all of it is escaped, invisible characters are
shown as a terminal shows them, and the page's security policy forbids loading or running anything.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from icecomb.catalog.cli.output.output import moment
from icecomb.catalog.cli.report.health_report import COUNTS, summary
from icecomb.format.printable_text import printable
from icecomb.format.storage.local import LocalFileSystem

if TYPE_CHECKING:
    from icecomb.catalog.health.table_health import TableHealth

_DETAILED: Final = 100
"""Number of tables shown in full."""
_SHORT: Final = 120
_HEAD: Final = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Health of {count}</title>
<style>
body {{ margin: 0 auto; max-width: 72rem; padding: 1rem; font: 15px/1.5 system-ui, sans-serif; }}
table {{ border-collapse: collapse; width: 100%; }}
th, td {{ text-align: left; padding: .3rem .5rem; border-bottom: 1px solid; vertical-align: top; }}
h2, td, li, code {{ overflow-wrap: anywhere; }}
code {{ display: block; white-space: pre-wrap; user-select: all; }}
</style>
</head>
<body>
<h1>Health of {count}</h1>
<p>{when}. {state}. The worst table comes first.
Commands that delete are dry runs without --yes.</p>
<table>
<thead><tr><th>Table</th><th>Files</th><th>Bytes</th><th>Findings</th></tr></thead>
<tbody>"""


def check_page(page: str) -> None:
    """Refuse a file that could not be written later."""
    target = Path(page).absolute()
    folder = target.parent
    if not folder.is_dir():
        raise click.UsageError(f"--html {page}: there is no folder {folder}")
    LocalFileSystem().check_writable(str(folder))
    with suppress(FileNotFoundError):
        above, found = folder.stat(), target.lstat()
        # with the sticky bit only the owners of file and folder may replace it
        owners = {found.st_uid, above.st_uid, 0}
        if above.st_mode & stat.S_ISVTX and not {os.geteuid()} & owners:
            raise click.UsageError(
                f"--html {page}: it belongs to user {found.st_uid}, and only its owner may replace "
                f"it in {folder}; name another file"
            )


def write(place: str, tables: Sequence[TableHealth], options: Sequence[str]) -> None:
    """Write the page; a file of this name is replaced once the page is complete.

    The tables come with the worst first; `options` are global ones that printed commands need.
    """
    text = "\n".join(_lines(tables, options)) + "\n"
    # a link of this name is replaced, not followed: who made it may not be who runs this
    target = str(Path(place).absolute())
    with LocalFileSystem().prepare(target, text.encode("utf-8"), replace=True) as publish:
        publish()


def _lines(tables: Sequence[TableHealth], options: Sequence[str]) -> Iterator[str]:
    count, state = summary(tables)
    yield _HEAD.format(count=count, state=state, when=moment(int(time.time() * 1000)))
    for number, one in enumerate(tables):
        yield _row(number, one)
    yield "</tbody>\n</table>"
    for number, one in enumerate(tables[:_DETAILED]):
        yield from _section(number, one, options)
    if len(tables) > _DETAILED:
        yield (
            f"<p>{len(tables) - _DETAILED:,} more tables appear only in the list above; --output "
            "json has all of them.</p>"
        )
    yield "</body>\n</html>"


def _row(number: int, one: TableHealth) -> str:
    name = printable(one.table)
    name = escape(name if len(name) <= _SHORT else f"{name[:_SHORT]}…")
    if number < _DETAILED:
        name = f'<a href="#t{number}">{name}</a>'
    facts = ("-", "-") if one.facts is None else (f"{one.facts.files:,}", f"{one.facts.size:,}")
    codes = "unreadable" if one.error else ", ".join(f.code for f in one.findings)
    cells = (name, *facts, escape(codes))
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def _section(number: int, one: TableHealth, options: Sequence[str]) -> Iterator[str]:
    yield f'<section id="t{number}">\n<h2>{_shown(one.table)}</h2>\n<ul>'
    if one.error is not None:
        hint = f"<br>{_shown(one.hint)}" if one.hint else ""
        yield f"<li><b>unreadable</b> {_shown(one.error)}{hint}</li>"
    if one.facts is not None:
        numbers = [f"{name.replace('_', ' ')} {getattr(one.facts, name):,}" for name in COUNTS]
        yield f"<li>{', '.join(numbers)}</li>"
    for found in one.findings:
        command = found.command_with(options)
        line = "" if command is None else f"<code>{_shown(command)}</code>"
        said = f"<b>{found.severity.value} {_shown(found.code)}</b> {_shown(found.message)}"
        yield f"<li>{said}{line}</li>"
    yield "</ul>\n</section>"


def _shown(text: str) -> str:
    return escape(printable(text))
