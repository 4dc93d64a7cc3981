"""What commands print on stdout: the same facts as text or as JSON."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Protocol

from icecomb.catalog.cli.terminal import printable, printable_json, write_json, write_line
from icecomb.catalog.finding import Finding


class Output(Protocol):
    """One of the two forms of output."""

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """A list of rows."""

    def facts(self, facts: Mapping[str, Any]) -> None:
        """Named facts about one thing; nested lists and mappings are allowed."""

    def documents(self, documents: Iterable[Mapping[str, Any]]) -> None:
        """Facts about several things of a kind."""

    def lines(self, lines: Iterable[str]) -> None:
        """Text for people; nothing for programs."""


class TextOutput:
    """For people and for awk: columns two spaces apart, a header in capitals, no lines."""

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """See `Output.table`."""
        cells = [
            [printable(name.upper()) for name in columns],
            *([_cell(v) for v in row] for row in rows),
        ]
        widths = [max(len(row[at]) for row in cells) for at in range(len(columns))]
        for row in cells:
            padded = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            write_line("  ".join(padded).rstrip())

    def facts(self, facts: Mapping[str, Any]) -> None:
        """See `Output.facts`."""
        width = max((len(name) for name in facts), default=0)
        for name, value in facts.items():
            if isinstance(value, Mapping):
                write_line(f"{name}:")
                for key, inner in value.items():
                    write_line(f"  {key}: {_cell(inner)}")
            elif isinstance(value, list | tuple):
                write_line(f"{name}:")
                for inner in value:
                    write_line(f"  {_cell(inner)}")
            else:
                write_line(f"{(name + ':').ljust(width + 1)}  {_cell(value)}")

    def documents(self, documents: Iterable[Mapping[str, Any]]) -> None:
        """See `Output.documents`."""
        for at, facts in enumerate(documents):
            if at:
                write_line("")
            self.facts(facts)

    def lines(self, lines: Iterable[str]) -> None:
        """See `Output.lines`."""
        for line in lines:
            write_line(line)


class JsonOutput:
    """For programs: one JSON document."""

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """See `Output.table`."""
        self._print([dict(zip(columns, row, strict=True)) for row in rows])

    def facts(self, facts: Mapping[str, Any]) -> None:
        """See `Output.facts`."""
        self._print(facts)

    def documents(self, documents: Iterable[Mapping[str, Any]]) -> None:
        """See `Output.documents`."""
        self._print(list(documents))

    def lines(self, lines: Iterable[str]) -> None:
        """See `Output.lines`."""

    def _print(self, value: Any) -> None:
        write_json(json.dumps(_jsonable(value), ensure_ascii=False, indent=2, default=str))


def finding_lines(findings: Iterable[Finding]) -> Iterator[str]:
    """The findings of a plan for people."""
    for finding in findings:
        yield f"{finding.severity}: {finding.message}"
        yield f"  {finding.remedy}"
        yield from (f"  - {place}" for place in finding.places)
        if finding.count > len(finding.places):
            yield f"  - and {finding.count - len(finding.places)} more"


def moment(timestamp_ms: int) -> str:
    """Milliseconds since the epoch as people read them, in UTC."""
    found = dt.datetime.fromtimestamp(timestamp_ms / 1000, dt.timezone.utc)
    return found.isoformat(sep=" ", timespec="seconds")


def _cell(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, Mapping | list):
        return printable_json(json.dumps(_jsonable(value), ensure_ascii=False, default=str))
    # A backslash of the value's own is told from one that was put before an escaped character.
    return printable(str(value).replace("\\", "\\\\"))


def _jsonable(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _jsonable(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_jsonable(inner) for inner in value]
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
