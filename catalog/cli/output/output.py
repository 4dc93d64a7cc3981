"""The output of commands on stdout: the same facts as text, as JSON or as CSV."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
import math
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final, Protocol

from icecomb.catalog.cli.output.terminal import printable_json, write_json, write_line
from icecomb.catalog.report.finding import Finding
from icecomb.format.printable_text import printable
from icecomb.format.spec.values.temporal import human_date, iso_timestamp, iso_timestamp_ns
from icecomb.format.storage.temporary_file import cannot_keep

if TYPE_CHECKING:
    import pyarrow as pa


MEASURED: Final = 1000
"""Number of rows that set the widths of a list's columns; later rows are printed as read."""
_NARROWEST: Final = 8


_KEPT_BYTES: Final = 16 << 20
"""Bytes of a list kept in memory until it is complete; the rest is in a temporary file."""
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)


class Output(Protocol):
    """A form of output: a command prints one list, or facts about one thing or several.

    Further output for people depends on `Application.form`.
    """

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Print a list of rows, which may be larger than memory.

        People see rows as they are read, programs only a complete list: one that fails prints none.
        """

    def facts(self, facts: Mapping[str, Any]) -> None:
        """Print named facts about one thing; nested lists and mappings are allowed."""

    def documents(self, documents: Iterable[Mapping[str, Any]]) -> None:
        """Print facts about several things of a kind."""

    def lines(self, lines: Iterable[str]) -> None:
        """Print text for people; nothing for programs."""


class TextOutput:
    """Output for people and awk: columns two spaces apart, a header in capitals, no rules.

    On a terminal the widest columns are cut to fit its width; elsewhere nothing is cut.
    """

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        header = [column_cell(name.upper()) for name in columns]
        cells = ([column_cell(value) for value in row] for row in rows)
        first = [header, *islice(cells, MEASURED)]
        widths = [max(len(row[at]) for row in first) for at in range(len(columns))]
        total = terminal_width()
        if total is not None:
            widths = fitted(widths, total)
        for row in chain(first, cells):
            shown = row if total is None else map(cut, row, widths)
            padded = (cell.ljust(width) for cell, width in zip(shown, widths, strict=True))
            write_line("  ".join(padded).rstrip())

    def facts(self, facts: Mapping[str, Any]) -> None:
        width = max((len(name) for name in facts), default=0)
        for name, value in facts.items():
            if isinstance(value, Mapping):
                write_line(f"{name}:")
                for key, inner in value.items():
                    write_line(f"  {key}: {text_cell(inner)}")
            elif isinstance(value, list | tuple):
                write_line(f"{name}:")
                for inner in value:
                    write_line(f"  {text_cell(inner)}")
            else:
                write_line(f"{(name + ':').ljust(width + 1)}  {text_cell(value)}")

    def documents(self, documents: Iterable[Mapping[str, Any]]) -> None:
        for at, facts in enumerate(documents):
            if at:
                write_line("")
            self.facts(facts)

    def lines(self, lines: Iterable[str]) -> None:
        for line in lines:
            write_line(line)


def terminal_width() -> int | None:
    """Return the number of columns of the terminal; None if the output goes elsewhere."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def fitted(widths: Sequence[int], total: int) -> list[int]:
    """Return widths of columns, two apart, that fit into a total, by narrowing the widest.

    No column gets narrower than `_NARROWEST`, even if the total is too small for that.
    """
    found = list(widths)
    over = sum(found) + 2 * (len(found) - 1) - total
    while over > 0 and (widest := max(found)) > _NARROWEST:
        at = [place for place, width in enumerate(found) if width == widest]
        below = max((width for width in found if width < widest), default=0)
        step = max(1, min(widest - max(below, _NARROWEST), -(-over // len(at))))
        for place in at:
            found[place] -= step
        over -= step * len(at)
    return found


def cut(cell: str, width: int) -> str:
    """Cut a cell to a width, keeping the end of locations and the beginning of other text."""
    if len(cell) <= width:
        return cell
    return f"…{cell[1 - width :]}" if "/" in cell else f"{cell[: width - 1]}…"


class JsonOutput:
    """Output for programs: one JSON document."""

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        self.documents(dict(zip(columns, row, strict=True)) for row in rows)

    def facts(self, facts: Mapping[str, Any]) -> None:
        write_json(_document(facts))

    def documents(self, documents: Iterable[Mapping[str, Any]]) -> None:
        for piece in _complete(self._pieces(documents)):
            write_json(piece)

    def lines(self, lines: Iterable[str]) -> None:
        """Implement `Output.lines`: print nothing."""

    @staticmethod
    def _pieces(documents: Iterable[Mapping[str, Any]]) -> Iterator[str]:
        before = None
        for facts in documents:
            yield "[" if before is None else f"{before},"
            before = "  " + _document(facts).replace("\n", "\n  ")
        yield from ("[]",) if before is None else (before, "]")


class CsvOutput:
    """Output for programs and spreadsheets: a header, and one line for each row or thing.

    Cells are those of `icecomb.catalog.cli.output.output.csv_cell`; nested values are JSON.
    """

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        for line in _complete(map(self._line, chain([columns], rows))):
            write_line(line)

    def facts(self, facts: Mapping[str, Any]) -> None:
        self.table(list(facts), [list(facts.values())])

    def documents(self, documents: Iterable[Mapping[str, Any]]) -> None:
        """Implement `Output.documents`; cells of missing facts are empty."""
        found = list(documents)
        names = list(dict.fromkeys(chain.from_iterable(found)))
        self.table(names, ([facts.get(name) for name in names] for facts in found))

    def lines(self, lines: Iterable[str]) -> None:
        """Implement `Output.lines`: print nothing."""

    @staticmethod
    def _line(row: Sequence[Any]) -> str:
        line = io.StringIO()
        csv.writer(line, lineterminator="").writerow([csv_cell(value) for value in row])
        return line.getvalue()


FORMS: Final[Mapping[str, type[Output]]] = {
    "text": TextOutput,
    "json": JsonOutput,
    "csv": CsvOutput,
}
"""The forms by name."""


def _complete(pieces: Iterable[str]) -> Iterator[str]:
    """Yield the same texts once the last exists: a program gets all of them or none."""
    with tempfile.SpooledTemporaryFile(_KEPT_BYTES, prefix="icecomb-output-") as kept:
        for piece in pieces:
            text = piece.encode("utf-8", "surrogatepass")
            try:
                kept.write(len(text).to_bytes(8, "little") + text)
            except OSError as error:
                raise cannot_keep("the output", error) from error
        kept.seek(0)
        while length := kept.read(8):
            yield kept.read(int.from_bytes(length, "little")).decode("utf-8", "surrogatepass")


def finding_lines(findings: Iterable[Finding]) -> Iterator[str]:
    """Yield the findings of a plan as lines for people."""
    for finding in findings:
        yield f"{finding.severity}: {finding.message}"
        yield f"  {finding.remedy}"
        yield from (f"  - {place}" for place in finding.places)
        if finding.count > len(finding.places):
            yield f"  - and {finding.count - len(finding.places)} more"


def exact_moment(at: dt.datetime | int) -> str:
    """Format a time (or milliseconds since the epoch) in UTC as options take it: in one word."""
    if isinstance(at, int):
        millis = at
        try:
            at = _EPOCH + dt.timedelta(milliseconds=millis)
        except OverflowError:
            return f"{iso_timestamp(millis * 1000)}+00:00"
    return at.astimezone(dt.timezone.utc).isoformat(timespec="milliseconds")


def moment(timestamp_ms: int) -> str:
    """Format milliseconds since the epoch for people, in UTC; as a number beyond year 9999."""
    try:
        found = _EPOCH + dt.timedelta(milliseconds=timestamp_ms)
    except OverflowError:
        return f"{timestamp_ms} ms"
    return found.isoformat(sep=" ", timespec="seconds")


def _document(facts: Mapping[str, Any]) -> str:
    return json.dumps(jsonable(facts), ensure_ascii=False, indent=2, default=str)


_SPACES: Final = re.compile("(?<= ) ")
_FORMULA: Final = re.compile(r"[=+\-@\uff1d\uff0b\uff0d\uff20].")
_NUMBER: Final = re.compile(r"[+-]\d+(\.\d+)?([eE][+-]?\d+)?")


def text_cell(value: Any) -> str:
    """Format a value for people."""
    if value is None:
        return "null"
    return _plain(value, str)


def column_cell(value: Any) -> str:
    r"""Format a value for a column; columns are separated by two spaces, so these are escaped."""
    return _SPACES.sub(lambda _: "\\x20", text_cell(value))


def csv_cell(value: Any) -> str:
    r"""Format a value for a CSV file; null is empty.

    A spreadsheet runs text that begins with ``=``, ``+``, ``-`` or ``@`` as a formula. The first
    character of such text, unless it is a number, is escaped: ``\x3d`` is ``=``.
    """
    if value is None:
        return ""
    text = _plain(value, _iso)
    if isinstance(value, str) and _FORMULA.match(text) and not _NUMBER.fullmatch(text):
        code = ord(text[0])
        return (f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}") + text[1:]
    return text


def jsonable(value: Any) -> Any:
    """Convert a value to JSON's types; numbers that JSON does not have become text."""
    if isinstance(value, Mapping):
        return {str(key): jsonable(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(inner) for inner in value]
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _plain(value: Any, otherwise: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, Mapping | list | tuple):
        return printable_json(json.dumps(jsonable(value), ensure_ascii=False, default=str))
    # Doubled, a backslash of the value differs from that of an escaped character.
    return printable(otherwise(value).replace("\\", "\\\\"))


def _iso(value: Any) -> str:
    return value.isoformat() if isinstance(value, dt.date | dt.time) else str(value)


def row_values(batch: pa.RecordBatch | pa.Table) -> list[dict[str, Any]]:
    """Convert rows to dicts; times that Python does not have are ISO 8601 text.

    Those are dates and times before year 1 and after 9999, and all times in nanoseconds.
    """
    if not any(_has_nanoseconds(field.type) for field in batch.schema):
        with suppress(OverflowError, ValueError):
            rows: list[dict[str, Any]] = batch.to_pylist()
            return rows
    columns = [[_value(scalar) for scalar in column] for column in batch.columns]
    names = batch.schema.names
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _has_nanoseconds(kind: pa.DataType) -> bool:
    import pyarrow as pa

    from icecomb.format.spec.arrow_schema import child_fields

    if pa.types.is_timestamp(kind):
        return bool(kind.unit == "ns")
    return any(_has_nanoseconds(field.type) for field in child_fields(kind))


def _value(scalar: Any) -> Any:
    import pyarrow as pa

    if not scalar.is_valid:
        return None
    if isinstance(scalar, pa.StructScalar):
        return {name: _value(child) for name, child in scalar.items()}
    if isinstance(scalar, pa.MapScalar):
        return [tuple(_value(entry).values()) for entry in scalar.values]
    if isinstance(scalar, pa.ListScalar):
        return [_value(item) for item in scalar.values]
    if pa.types.is_timestamp(scalar.type) and scalar.type.unit == "ns":
        return iso_timestamp_ns(scalar.value) + ("+00:00" if scalar.type.tz else "")
    try:
        return scalar.as_py()
    except (OverflowError, ValueError):
        if pa.types.is_date(scalar.type):
            return human_date(scalar.value)
        return iso_timestamp(scalar.value) + ("+00:00" if scalar.type.tz else "")
