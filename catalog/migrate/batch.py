"""The same step of a migration for many tables, each with its own outcome."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, TypeAlias

from icecomb.catalog.hive.thrift.failure import UnreachableError
from icecomb.catalog.migrate.applying.migration import MigrationBlockedError
from icecomb.catalog.migrate.planning.migration_plan import MigrationPlan
from icecomb.catalog.migrate.reverting.finalizing import UnverifiedError
from icecomb.catalog.migrate.reverting.reversal import RevertBlockedError, RevertPlan
from icecomb.catalog.report.progress import Progress, each
from icecomb.format.errors import CommitStateUnknownError, IcecombError


class StepStatus(str, Enum):
    """The status of a table after a step, the worst first."""

    UNKNOWN = "unknown"
    """An answer was lost: the same command finds out, and resumes."""
    FAILED = "failed"
    BLOCKED = "blocked"
    """Nothing was changed; or a comparison found differences."""
    NOT_BEGUN = "not begun"
    """Another table failed before this one was begun."""
    DONE = "done"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a step for one table.

    Attributes:
        facts: The result as JSON values.
        detail: The result in a few words.
        good: Whether the step succeeded; a comparison with differences did not.
        outcome: The outcome in a word of the step; empty for that of the status.
    """

    facts: Mapping[str, Any]
    detail: str
    good: bool = True
    outcome: str = ""


@dataclass(frozen=True, slots=True)
class BatchOutcome:
    """The outcome of a step for one table.

    Attributes:
        facts: The step's result as JSON values.
        detail: The result in a few words, or the error's message.
        hint: What to do about an error.
        name: The outcome in a word of the step; empty for that of the status.
    """

    table: str
    status: StepStatus
    seconds: float = 0.0
    facts: Mapping[str, Any] = field(default_factory=dict)
    detail: str = ""
    hint: str | None = None
    name: str = ""

    def __str__(self) -> str:
        return self.name or self.status.value

    def to_json(self) -> dict[str, Any]:
        """Return the outcome as JSON values."""
        return {
            "table": self.table,
            "outcome": str(self),
            "seconds": round(self.seconds, 1),
            "detail": self.detail,
            "hint": self.hint,
            "result": dict(self.facts),
        }


Work: TypeAlias = Callable[[tuple[str, str]], Result]


def run_batch(
    progress: Progress,
    what: str,
    tables: Sequence[tuple[str, str]],
    work: Work,
    jobs: int,
    *,
    stop_on_error: bool,
) -> Iterator[BatchOutcome]:
    """Run a step for many tables, several at a time, and yield the outcomes in their order.

    Args:
        stop_on_error: Whether to begin no more tables after the first that fails. None is begun
            either when the metastore cannot be reached any more.
    """
    stopped = threading.Event()

    def attempt(name: tuple[str, str]) -> BatchOutcome:
        table = ".".join(name)
        if stopped.is_set():
            return BatchOutcome(table, StepStatus.NOT_BEGUN)
        started = time.monotonic()
        outcome, lost = _outcome(table, name, work)
        if lost or (stop_on_error and outcome.status is not StepStatus.DONE):
            stopped.set()
        return replace(outcome, seconds=time.monotonic() - started)

    yield from each(progress, what, "tables", tables, attempt, jobs)


def _outcome(table: str, name: tuple[str, str], work: Work) -> tuple[BatchOutcome, bool]:
    """Return the outcome for a table, and whether the metastore is unreachable."""
    try:
        step = work(name)
    except (MigrationBlockedError, RevertBlockedError) as error:
        plan = error.plan
        facts = plan.to_json() if isinstance(plan, MigrationPlan | RevertPlan) else {}
        return BatchOutcome(table, StepStatus.BLOCKED, 0.0, facts, error.message, error.hint), False
    except UnverifiedError as error:
        return BatchOutcome(table, StepStatus.BLOCKED, detail=error.message, hint=error.hint), False
    except CommitStateUnknownError as error:
        return BatchOutcome(table, StepStatus.UNKNOWN, detail=error.message, hint=error.hint), False
    except IcecombError as error:
        lost = isinstance(error, UnreachableError)
        return BatchOutcome(table, StepStatus.FAILED, detail=error.message, hint=error.hint), lost
    except Exception as error:  # noqa: BLE001 - what is wrong with one is not with the others
        return BatchOutcome(
            table, StepStatus.FAILED, detail=f"{type(error).__name__}: {error}"
        ), False
    status = StepStatus.DONE if step.good else StepStatus.BLOCKED
    outcome = BatchOutcome(table, status, facts=step.facts, detail=step.detail, name=step.outcome)
    return outcome, False
