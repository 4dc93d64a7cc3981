"""The page of `icecomb health --html`: one file that needs no network and no script.

Names of tables, partitions and messages are other people's text: the template escapes all of it,
invisible characters are shown as a terminal shows them, and the page's security policy forbids
loading or running anything.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from icecomb.catalog.cli.output.output import moment
from icecomb.catalog.cli.report.health_chart import drawn, size_text
from icecomb.catalog.cli.report.health_report import summary
from icecomb.format.optional_library import optional_library
from icecomb.format.printable_text import printable

if TYPE_CHECKING:
    from jinja2 import Template

    from icecomb.catalog.health.table_health import TableHealth

_DETAILED: Final = 100
"""Number of tables shown in full; each takes about 10 KB."""
_SHORT: Final = 120


def template() -> Template:
    """Return the template of the page."""
    jinja2 = optional_library("jinja2", "icecomb health --html needs jinja2", "icecomb[health]")
    made = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    made.filters |= {
        "shown": printable,
        "short": _short,
        "size": size_text,
        "growth": _growth,
        "drawn": lambda charts: list(drawn(charts)),
    }
    text = Path(__file__).with_suffix(".html").read_text("utf-8")
    found: Template = made.from_string(text)
    return found


def check_writable(page: str) -> None:
    """Refuse a file that could not be written later, as its folder does not exist."""
    folder = Path(page).absolute().parent
    if not folder.is_dir():
        raise click.UsageError(f"--html {page}: there is no folder {folder}")


def write(
    page: Template, place: str, tables: Sequence[TableHealth], options: Sequence[str]
) -> None:
    """Write the page; a file of this name is replaced once the page is complete.

    The tables come with the worst first; `options` are global ones that printed commands need.
    """
    count, state = summary(tables)
    text = page.render(
        tables=tables,
        options=options,
        detailed=_DETAILED,
        when=moment(int(time.time() * 1000)),
        count=count,
        state=state,
    )
    # a link of this name is replaced, not followed: who made it may not be who runs this
    target = Path(place).absolute()
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        draft = Path(scratch) / "page.html"
        draft.write_text(text, encoding="utf-8", newline="\n")
        draft.replace(target)


def _growth(size: int) -> str:
    return f"{'+' if size >= 0 else '-'}{size_text(abs(size))}"


def _short(text: str) -> str:
    shown = printable(text)
    return shown if len(shown) <= _SHORT else f"{shown[:_SHORT]}…"
