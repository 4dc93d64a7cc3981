"""The output of `icecomb migrate` on plans and results: for one table, or for very many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from icecomb.catalog.cli.application import BLOCKED, ERROR, OK, UNKNOWN_COMMIT, Application
from icecomb.catalog.cli.output.output import Output, finding_lines
from icecomb.catalog.cli.output.progress import duration
from icecomb.catalog.migrate.batch import BatchOutcome, StepStatus
from icecomb.catalog.report.finding import Finding, Severity

if TYPE_CHECKING:
    from icecomb.catalog.migrate.planning.migration_plan import MigrationPlan
    from icecomb.catalog.migrate.verifying.comparison import Comparison

_CODES = {
    StepStatus.UNKNOWN: UNKNOWN_COMMIT,
    StepStatus.FAILED: ERROR,
    StepStatus.BLOCKED: BLOCKED,
    StepStatus.NOT_BEGUN: ERROR,
    StepStatus.DONE: OK,
}
_COUNTS: Final = ("partitions", "files", "bytes", "rows", "seconds")
_FINDING: Final = ("severity", "code", "finding", "places", "remedy")
_SERIOUS: Final = (Severity.BLOCKER, Severity.WARNING)
_SHOWN: Final = 10


def show_outcomes(application: Application, outcomes: Iterable[BatchOutcome]) -> int:
    """Print a line per table and counts by outcome; return the worst exit code (4, 1, 3, 0)."""
    found = list(outcomes)
    counted = Counter(one.status for one in found)
    worst_first = sorted(found, key=lambda one: list(StepStatus).index(one.status))
    counts = Counter(map(str, worst_first))
    if application.json:
        tables = [one.to_json() for one in found]
        application.output.facts({"summary": counts, "tables": tables})
        return next((_CODES[status] for status in StepStatus if counted[status]), OK)
    columns = ["table", "outcome", "seconds", "detail"]
    rows = [[one.table, str(one), f"{one.seconds:.1f}", one.detail] for one in found]
    if not application.text:
        hinted = [[*row, one.hint] for row, one in zip(rows, found, strict=True)]
        application.output.table([*columns, "hint"], hinted)
    else:
        application.output.table(columns, rows)
        hints = dict.fromkeys(one.hint for one in found if one.hint)
        application.output.lines([f"  hint: {hint}" for hint in hints])
        said = ", ".join(f"{count:,} {word}" for word, count in counts.items())
        application.output.lines(["", f"{len(found):,} tables: {said}"])
    return next((_CODES[status] for status in StepStatus if counted[status]), OK)


def show_comparison(application: Application, found: Comparison) -> None:
    """Print the result of comparing one table."""
    if application.json:
        application.output.facts(found.to_json())
        return
    output = application.output
    if not application.text:
        output.table(["what", "name", "figure", "hive", "iceberg"], _figures(found))
        return
    output.table(
        ["partition", "rows in Hive", "rows in Iceberg"],
        [[name or "(all)", *counts] for name, counts in found.partitions.items()],
    )
    output.lines([""])
    output.table(
        ["column", "nulls in Hive", "nulls in Iceberg", "min", "max"],
        [
            [name, digest.nulls, found.iceberg.columns[name].nulls, digest.least, digest.greatest]
            for name, digest in found.hive.columns.items()
            if name in found.iceberg.columns
        ],
    )
    output.lines(["", *found.differences])
    more = found.difference_count - len(found.differences)
    if more > 0:
        output.lines([f"and {more} more"])
    output.lines([verdict_of(found)])


def _figures(found: Comparison) -> Iterator[list[Any]]:
    """Yield everything that was compared, as one list."""
    yield ["table", None, "rows", found.hive.rows, found.iceberg.rows]
    for name, counts in found.partitions.items():
        yield ["partition", name, "rows", *counts]
    for name, digest in found.hive.columns.items():
        other = found.iceberg.columns[name].to_json()
        for figure, value in digest.to_json().items():
            yield ["column", name, figure, value, other[figure]]
    yield from (["difference", one, None, None, None] for one in found.differences)


def verdict_of(found: Comparison) -> str:
    """Summarize a comparison in a few words."""
    more = "" if found.finished else "; the migration is not finished: run apply again"
    if found.difference_count:
        return f"{found.difference_count} differences{more}"
    read = f"{found.values:,} values of {found.hive.rows:,} rows in {found.files:,} files"
    return f"equal: {read}{more}"


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
