"""The output of `icecomb migrate plan` for one table, or for very many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from icecomb.catalog.cli.application import BLOCKED, OK, Application
from icecomb.catalog.cli.output.output import Output, finding_lines
from icecomb.catalog.cli.output.progress import duration
from icecomb.catalog.report.finding import Finding, Severity

if TYPE_CHECKING:
    from icecomb.catalog.migrate.planning.migration_plan import MigrationPlan

_COUNTS: Final = ("partitions", "files", "bytes", "rows", "seconds")
_FINDING: Final = ("severity", "code", "finding", "places", "remedy")
_SERIOUS: Final = (Severity.BLOCKER, Severity.WARNING)
_SHOWN: Final = 10


@dataclass(frozen=True, slots=True)
class _Row:
    """The part of a plan that is kept until all are made: not its files."""

    table: str
    verdict: str
    counts: tuple[Any, ...]
    findings: tuple[Finding, ...]

    @property
    def cells(self) -> list[Any]:
        return [self.table, self.verdict, *("" if n is None else n for n in self.counts)]


def show_plan(output: Output, plan: MigrationPlan) -> None:
    """Print everything about one table, for people."""
    seconds = "unknown" if plan.seconds is None else f"about {duration(plan.seconds)}"
    output.facts(
        {
            "table": plan.table,
            "location": plan.location,
            "verdict": plan.verdict,
            "partitions": plan.partitions,
            "files": len(plan.files),
            "bytes": plan.size,
            "rows": plan.rows if plan.rows is not None else "unknown",
            "apply takes": seconds,
            "columns": [f"{f.name}  {f.field_type}" for f in plan.schema.columns],
            "partitioned by": [field.name for field in plan.spec.fields],
        }
    )
    output.lines(finding_lines(plan.findings))


def show_plans(application: Application, plans: Iterable[MigrationPlan]) -> int:
    """Print plans of many tables in the requested form; return exit code 3 if one is blocked.

    Text has a line per table, and then the obstacles with the number of their tables. CSV has a
    line per finding, printed as soon as it is known, or one line for a table without findings.
    """
    blocked = False

    def counted() -> Iterator[MigrationPlan]:
        nonlocal blocked
        for plan in plans:
            blocked |= bool(plan.blockers)
            yield plan

    if application.json:
        application.output.documents(plan.to_json() for plan in counted())
    elif application.text:
        _show_rows(application.output, [_row(plan) for plan in counted()])
    else:
        lines = (line for plan in counted() for line in _findings(_row(plan)))
        application.output.table(["table", "verdict", *_COUNTS, *_FINDING], lines)
    return BLOCKED if blocked else OK


def _show_rows(output: Output, rows: Sequence[_Row]) -> None:
    output.table(
        ["table", "verdict", *_COUNTS, "blockers", "warnings"],
        [
            [
                *row.cells,
                *(
                    ",".join(f.code for f in row.findings if f.severity is kind) or "-"
                    for kind in _SERIOUS
                ),
            ]
            for row in rows
        ],
    )
    output.lines(_grouped(rows))
    output.lines(["", _total(rows)])


def _findings(row: _Row) -> Iterator[list[Any]]:
    for f in row.findings:
        yield [*row.cells, f.severity, f.code, f.message, "; ".join(f.places), f.remedy]
    if not row.findings:
        yield [*row.cells, *(None for _ in _FINDING)]


def _row(plan: MigrationPlan) -> _Row:
    facts = plan.to_json()
    return _Row(
        plan.table, plan.verdict, tuple(facts[name] for name in _COUNTS), tuple(plan.findings)
    )


def _grouped(rows: Sequence[_Row]) -> Iterator[str]:
    for kind in _SERIOUS:
        found: dict[str, list[tuple[str, Finding]]] = {}
        for row in rows:
            for finding in row.findings:
                if finding.severity is kind:
                    found.setdefault(finding.code, []).append((row.table, finding))
        for code, pairs in sorted(found.items(), key=lambda pair: -len(pair[1])):
            yield ""
            yield f"{kind} {code}: {len(pairs):,} tables"
            for remedy in dict.fromkeys(finding.remedy for _, finding in pairs):
                yield f"  {remedy}"
            yield from (f"  - {table}: {finding.message}" for table, finding in pairs[:_SHOWN])
            if len(pairs) > _SHOWN:
                yield f"  - and {len(pairs) - _SHOWN:,} more, which --output csv lists"


def _total(rows: Sequence[_Row]) -> str:
    verdicts = Counter(row.verdict for row in rows)
    at = {name: place for place, name in enumerate(_COUNTS)}
    files, size = (sum(row.counts[at[name]] for row in rows) for name in ("files", "bytes"))
    text = f"{len(rows):,} tables: " + ", ".join(f"{n:,} {word}" for word, n in verdicts.items())
    text += f"; {files:,} files of {size:,} bytes"
    known = [row.counts[at["seconds"]] for row in rows if row.verdict == "ready"]
    if known and None not in known:
        text += f"; applying the ready ones one by one takes about {duration(sum(known))}"
    return text
