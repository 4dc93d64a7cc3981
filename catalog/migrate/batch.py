"""The same step of a migration for many tables: what became of each, whatever became of others."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, TypeAlias

from icecomb.catalog.hive.thrift.failure import UnreachableError
from icecomb.catalog.migrate.applying import MigrationBlockedError
from icecomb.catalog.migrate.finalizing import UnverifiedError
from icecomb.catalog.migrate.migration_plan import MigrationPlan
from icecomb.catalog.migrate.reverting import RevertBlockedError, RevertPlan
from icecomb.catalog.progress import Progress, each
from icecomb.format.errors import CommitStateUnknownError, IcecombError


class Fate(str, Enum):
    """What became of a table, the worst first."""

    UNKNOWN = "unknown"
    """An answer was lost: the same command finds out, and goes on."""
    FAILED = "failed"
    BLOCKED = "blocked"
    """Nothing was changed; or, of a comparison, there are differences."""
    NOT_BEGUN = "not begun"
    """Another one failed before its turn came."""
    DONE = "done"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class Result:
    """What a step says of one table.

    Attributes:
        facts: For programs.
        detail: The same in a few words.
        good: Whether it did what was asked for; a comparison with differences did not.
    """

    facts: Mapping[str, Any]
    detail: str
    good: bool = True


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one table.

    Attributes:
        table: "db.table".
        fate: In a word.
        seconds: How long it took.
        facts: What the step says, for programs.
        detail: In a few words, or the error's message.
        hint: What to do about it.
    """

    table: str
    fate: Fate
    seconds: float = 0.0
    facts: Mapping[str, Any] = field(default_factory=dict)
    detail: str = ""
    hint: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The outcome for programs."""
        return {
            "table": self.table,
            "outcome": self.fate.value,
            "seconds": round(self.seconds, 1),
            "detail": self.detail,
            "hint": self.hint,
            "result": dict(self.facts),
        }


Work: TypeAlias = Callable[[tuple[str, str]], Result]


def run_batch(
    progress: Progress,
    what: str,
    places: Sequence[tuple[str, str]],
    work: Work,
    jobs: int,
    *,
    stop_on_error: bool,
) -> Iterator[Outcome]:
    """Do a step with many tables, several at a time; outcomes come in their order.

    Args:
        progress: Told of each table.
        what: The step, for people.
        places: Database and name of each table.
        work: Does it with one of them.
        jobs: How many at a time.
        stop_on_error: Begin with no more tables once one did not do well. They are not begun either
            when the metastore cannot be reached any more.
    """
    stopped = threading.Event()

    def attempt(place: tuple[str, str]) -> Outcome:
        table = ".".join(place)
        if stopped.is_set():
            return Outcome(table, Fate.NOT_BEGUN)
        started = time.monotonic()
        outcome, lost = _outcome(table, place, work)
        if lost or (stop_on_error and outcome.fate is not Fate.DONE):
            stopped.set()
        return replace(outcome, seconds=time.monotonic() - started)

    yield from each(progress, what, "tables", places, attempt, jobs)


def _outcome(table: str, place: tuple[str, str], work: Work) -> tuple[Outcome, bool]:
    """What became of a table, and whether the metastore is gone."""
    try:
        step = work(place)
    except (MigrationBlockedError, RevertBlockedError) as error:
        plan = error.plan
        facts = plan.to_json() if isinstance(plan, MigrationPlan | RevertPlan) else {}
        return Outcome(table, Fate.BLOCKED, 0.0, facts, error.message, error.hint), False
    except UnverifiedError as error:
        return Outcome(table, Fate.BLOCKED, detail=error.message, hint=error.hint), False
    except CommitStateUnknownError as error:
        return Outcome(table, Fate.UNKNOWN, detail=error.message, hint=error.hint), False
    except IcecombError as error:
        lost = isinstance(error, UnreachableError)
        return Outcome(table, Fate.FAILED, detail=error.message, hint=error.hint), lost
    except Exception as error:  # noqa: BLE001 - what is wrong with one is not with the others
        return Outcome(table, Fate.FAILED, detail=f"{type(error).__name__}: {error}"), False
    fate = Fate.DONE if step.good else Fate.BLOCKED
    return Outcome(table, fate, facts=step.facts, detail=step.detail), False
