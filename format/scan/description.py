"""Descriptions of tables and scans for REPLs and notebooks, made only from metadata."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from icecomb.format.input_limit import whole_number
from icecomb.format.printable_text import printable
from icecomb.format.spec.values.temporal import utc_moment

if TYPE_CHECKING:
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.schema import Schema
    from icecomb.format.spec.snapshot import Snapshot
    from icecomb.format.spec.transform import Transform
    from icecomb.format.spec.types import NestedField

_MOST_COLUMNS = 50
_LONGEST = 120


@dataclass(frozen=True, slots=True)
class Description:
    """A title, pairs of a name and a value, and columns of the table or of the result."""

    title: str
    facts: Sequence[tuple[str, str]]
    columns: Schema

    def text(self) -> str:
        """Return the description as lines of text."""
        rows = [(name, kind) for name, kind, _ in _columns(self.columns)]
        width = max((len(name) for name, _ in self.facts), default=0)
        name_width = max((len(name) for name, _ in rows), default=0)
        lines = [self.title]
        lines += [f"  {name:<{width}}  {value}" for name, value in self.facts]
        lines += [f"  {'columns':<{width}}"]
        lines += [f"    {name:<{name_width}}  {kind}" for name, kind in rows]
        return "\n".join(printable(line).rstrip() for line in lines)

    def html(self) -> str:
        """Return the description as two HTML tables, with all text escaped."""
        facts = "".join(_row("th", name, value) for name, value in self.facts)
        columns = "".join(_row("td", *column) for column in _columns(self.columns))
        head = "<tr><th>column</th><th>type</th><th>comment</th></tr>"
        return (
            f"<b>{html.escape(self.title)}</b>"
            f"<table>{facts}</table><table><thead>{head}</thead><tbody>{columns}</tbody></table>"
        )


def table_facts(metadata: TableMetadata) -> list[tuple[str, str]]:
    """Return a table's location, format version, partitioning and sort order."""
    schema = metadata.schema()
    spec, order = metadata.spec(), metadata.sort_order()
    partitions = (f"{_applied(f.transform, f.source_id, schema)} as {f.name}" for f in spec.fields)
    keys = (
        f"{_applied(f.transform, f.source_id, schema)} {f.direction.value}" for f in order.fields
    )
    return [
        ("location", metadata.location),
        ("format", f"version {metadata.format_version}"),
        ("partitioned by", _listed(partitions)),
        ("sorted by", _listed(keys)),
    ]


def snapshot_facts(snapshot: Snapshot | None) -> list[tuple[str, str]]:
    """Return a snapshot's id, and the counts of rows and files in its summary."""
    if snapshot is None:
        return [("snapshot", "none: the table is empty")]
    time = utc_moment(snapshot.timestamp_ms)
    facts = [("snapshot", f"{snapshot.snapshot_id} of {time} ({snapshot.operation or 'unknown'})")]
    summary = snapshot.summary
    if "total-records" in summary:
        deleted = [
            f"{_number(summary[key])} {name}"
            for key, name in (
                ("total-position-deletes", "position deletes"),
                ("total-equality-deletes", "equality deletes"),
            )
            if _some(summary, key)
        ]
        facts.append(("rows", _with(_number(summary["total-records"]), "less up to ", deleted)))
    if "total-data-files" in summary:
        more = []
        if _some(summary, "total-delete-files"):
            more.append(f"{_number(summary['total-delete-files'])} delete files")
        if _some(summary, "total-files-size"):
            more.append(_size(summary["total-files-size"]))
        facts.append(("files", _with(_number(summary["total-data-files"]), "and ", more)))
    return facts


def _columns(schema: Schema) -> list[tuple[str, str, str]]:
    rows = [(f.name, _kind(f), _cut(f.doc or "")) for f in schema.fields[:_MOST_COLUMNS]]
    left = len(schema.fields) - _MOST_COLUMNS
    return [*rows, ("...", f"{left} more", "")] if left > 0 else rows


def _kind(field: NestedField) -> str:
    need = " not null" if field.required else ""
    return _cut(str(field.field_type)) + need + _cut(field.default_text)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _applied(transform: Transform, source_id: int, schema: Schema) -> str:
    column = schema.find_column_name(source_id) or f"dropped column {source_id}"
    return f"{transform}({column})"


def _listed(texts: Iterable[str]) -> str:
    return ", ".join(texts) or "nothing"


def _with(first: str, word: str, more: Sequence[str]) -> str:
    return f"{first}, {word}{', '.join(more)}" if more else first


def _some(summary: Mapping[str, str], key: str) -> bool:
    return summary.get(key, "0") != "0"


def _number(text: str) -> str:
    """Format a count of a summary; any writer's text is accepted, as it may not be a number."""
    number = whole_number(text)
    return text if number is None else f"{number:,}"


def _size(text: str) -> str:
    number = whole_number(text)
    if number is None:
        return text
    size, units = float(number), ["bytes", "kB", "MB", "GB", "TB"]
    while size >= 1000 and len(units) > 1:
        size /= 1000
        units.pop(0)
    return f"{size:.3g} {units[0]}"


def _row(kind: str, first: str, *others: str) -> str:
    cells = "".join(f"<td>{html.escape(text)}</td>" for text in others)
    return f'<tr><{kind} style="text-align: left">{html.escape(first)}</{kind}>{cells}</tr>'
