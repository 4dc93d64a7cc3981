"""The output of `icecomb migrate` on its results: for one table, or for many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from icecomb.catalog.cli.application import BLOCKED, ERROR, OK, UNKNOWN_COMMIT, Application
from icecomb.catalog.migrate.batch import BatchOutcome, StepStatus

if TYPE_CHECKING:
    from icecomb.catalog.migrate.verifying.comparison import Comparison

_CODES = {
    StepStatus.UNKNOWN: UNKNOWN_COMMIT,
    StepStatus.FAILED: ERROR,
    StepStatus.BLOCKED: BLOCKED,
    StepStatus.NOT_BEGUN: ERROR,
    StepStatus.DONE: OK,
}


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
