"""The state of a migration as its journal tells it."""

from __future__ import annotations

import pytest

from icecomb.catalog.migrate.journal.journal import Step
from icecomb.catalog.migrate.reverting.finalizing import _state

DONE = (Step.SWAPPED, Step.CLEANED)


@pytest.mark.parametrize(
    ("steps", "outcome", "state"),
    [
        ((), "unfinished", "interrupted before the table was changed: run apply again"),
        ((Step.REVERTED,), "none", "given up before anything was changed"),
        ((*DONE, Step.REVERTED), "reverted", "reverted"),
        (DONE, "migrated", "migrated, not verified"),
        ((*DONE, Step.VERIFIED), "verified", "verified"),
        ((*DONE, Step.FINALIZED), "finalized", "finalized"),
        # a revert that was begun goes before all that was done
        ((*DONE, Step.VERIFIED, Step.REVERTING), "unfinished", "reverting: run revert again"),
    ],
)
def test_an_outcome_is_what_was_done_last(
    steps: tuple[Step, ...], outcome: str, state: str
) -> None:
    assert _state(steps, iceberg=False, overwritten=False) == (outcome, state)


def test_a_conversion_alone_is_not_finished_and_an_old_copy_is_wrong() -> None:
    outcome, state = _state((Step.SWAPPED,), iceberg=True, overwritten=False)
    assert (outcome, state) == ("unfinished", "an Iceberg table, not finished: run apply again")
    for steps, then in ((DONE, "run revert"), ((*DONE, Step.FINALIZED), "finalized")):
        outcome, state = _state(steps, iceberg=False, overwritten=True)
        assert (outcome, state.rpartition(": ")[2]) == ("blocked", then)
