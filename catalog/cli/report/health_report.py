"""The output of `icecomb health`: for people, as CSV, and for Prometheus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from icecomb.catalog.cli.output.output import moment
from icecomb.catalog.cli.output.terminal import write_line
from icecomb.catalog.report.finding import Severity
from icecomb.format.printable_text import printable

if TYPE_CHECKING:
    from icecomb.catalog.cli.application import Application
    from icecomb.catalog.cli.output.output import Output
    from icecomb.catalog.health.table_health import HealthFinding, TableFacts, TableHealth

_DETAILED: Final = 20
_LONGEST: Final = 120
"""Longer names are cut in the list, so that the columns after them stay visible."""
_SHOWN: Final = ("files", "size", "snapshots")
_FINDING: Final = ("severity", "code", "message", "command")
COUNTS: Final = {
    "files": "Data files of the current snapshot.",
    "size": "Bytes of these.",
    "rows": "Rows of these, deleted ones included.",
    "position_delete_files": "Files of position deletes.",
    "equality_delete_files": "Files of equality deletes.",
    "partitions": "Partitions with files.",
    "manifests": "Manifests of the current snapshot with live files.",
    "snapshots": "Snapshots that are not expired.",
    "metadata_bytes": "Bytes of the metadata file.",
}
"""The numbers of a table, by their names in `TableFacts`."""
_METRICS: Final = {name: f"table_{name}" for name in COUNTS} | {"size": "table_bytes"}


def show_tables(
    application: Application, tables: Sequence[TableHealth], options: Sequence[str]
) -> None:
    """Print tables, the worst first; CSV has a line per finding, or one without findings.

    Args:
        options: Global options that printed commands need.
    """
    output = application.output
    if application.json:
        output.documents(one.to_json(options) for one in tables)
    elif application.text:
        _show_text(output, tables, options)
    else:
        lines = (line for one in tables for line in _findings(one, options))
        output.table(["table", *COUNTS, *_FINDING, "error"], lines)


def _show_text(output: Output, tables: Sequence[TableHealth], options: Sequence[str]) -> None:
    """Print one table in full; of many a line each, and the findings of the worst."""
    if len(tables) == 1:
        output.facts(_facts(tables[0]))
        output.lines(_details(tables[0], options))
        return
    output.table(
        ["table", "files", "bytes", "snapshots", "findings"],
        [
            [
                one.table if len(one.table) <= _LONGEST else f"{one.table[:_LONGEST]}…",
                *(value if one.facts else "-" for value in _numbers(one, _SHOWN)),
                "unreadable" if one.error else ",".join(f.code for f in one.findings) or "-",
            ]
            for one in tables
        ],
    )
    ill = [one for one in tables if one.findings or one.error]
    for one in ill[:_DETAILED]:
        output.lines(["", one.table, *_details(one, options)])
    if len(ill) > _DETAILED:
        output.lines(["", f"and {len(ill) - _DETAILED:,} more, which --output csv lists"])
    output.lines(["", ": ".join(summary(tables))])


def _findings(one: TableHealth, options: Sequence[str]) -> Iterator[list[Any]]:
    cells = [one.table, *_numbers(one, COUNTS)]
    for found in one.findings:
        command = found.command_with(options)
        yield [*cells, found.severity, found.code, found.message, command, None]
    if not one.findings:
        yield [*cells, *(None for _ in _FINDING), one.error]


def show_prometheus(tables: Sequence[TableHealth]) -> None:
    """Print gauges in the text format of Prometheus, a sample per table or finding."""
    read = [one for one in tables if one.facts is not None]
    _metric(
        "table_readable",
        "Whether the table's metadata could be read.",
        ((_labels(table=one.table), int(one.error is None)) for one in tables),
    )
    for name, text in COUNTS.items():
        _metric(
            _METRICS[name],
            text,
            ((_labels(table=one.table), getattr(one.facts, name)) for one in read),
        )
    _metric("table_health_findings", "Findings of this code.", _finding_samples(read))


def _finding_samples(tables: Iterable[TableHealth]) -> Iterator[tuple[str, int]]:
    for one in tables:
        counts = Counter((found.code, found.severity.value) for found in one.findings)
        for (code, severity), count in counts.items():
            yield _labels(table=one.table, code=code, severity=severity), count


def _metric(name: str, text: str, samples: Iterable[tuple[str, int]]) -> None:
    write_line(f"# HELP icecomb_{name} {text}")
    write_line(f"# TYPE icecomb_{name} gauge")
    for labels, value in samples:
        write_line(f"icecomb_{name}{{{labels}}} {value}")


def _labels(**values: str) -> str:
    return ",".join(f'{name}="{_label(value)}"' for name, value in values.items())


def _label(value: str) -> str:
    r"""Escape backslash, quote and new line in a label's value, as the format requires.

    Other control characters are shown as `\x1b`, whose backslash is escaped then.
    """
    lines = value.split("\n")
    return "\\n".join(printable(line).replace("\\", "\\\\").replace('"', '\\"') for line in lines)


def _facts(one: TableHealth) -> dict[str, Any]:
    if one.facts is None:
        return {"table": one.table, "error": one.error, "hint": one.hint}
    facts = one.facts
    growth = facts.metadata_growth
    return {
        "table": one.table,
        "format version": facts.format_version,
        "committed": None if facts.committed_ms is None else moment(facts.committed_ms),
        "files": facts.files,
        "bytes": facts.size,
        "rows": facts.rows,
        "partitions": facts.partitions,
        "delete files": facts.position_delete_files + facts.equality_delete_files,
        "manifests": facts.manifests,
        "snapshots": facts.snapshots,
        "metadata file": _metadata(facts, growth),
    }


def _metadata(facts: TableFacts, growth: int | None) -> str:
    return f"{facts.metadata_bytes:,} bytes" + (f", {growth:+,} a day" if growth else "")


def _details(one: TableHealth, options: Sequence[str]) -> Iterator[str]:
    if one.error is not None:
        yield f"  unreadable: {one.error}"
        if one.hint:
            yield f"    hint: {one.hint}"
    elif not one.findings:
        yield "  nothing found"
    for found in one.findings:
        yield from _finding_lines(found, options)


def _finding_lines(found: HealthFinding, options: Sequence[str]) -> Iterator[str]:
    yield f"  {found.severity} {found.code}: {found.message}"
    command = found.command_with(options)
    if command is not None:
        yield f"    {command}"


def _numbers(one: TableHealth, names: Iterable[str]) -> list[Any]:
    return [None if one.facts is None else getattr(one.facts, name) for name in names]


def summary(tables: Sequence[TableHealth]) -> tuple[str, str]:
    """Return the number of tables, and that of their problems and warnings."""
    found = [f.severity for one in tables for f in one.findings]
    unread = sum(one.error is not None for one in tables)
    parts = [
        _counted(found.count(Severity.PROBLEM), "problem"),
        _counted(found.count(Severity.WARNING), "warning"),
        *([f"{unread:,} could not be read"] if unread else ()),
    ]
    return _counted(len(tables), "table"), ", ".join(parts)


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
