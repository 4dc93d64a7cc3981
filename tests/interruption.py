"""Interrupts at chosen points of a call: what a Ctrl-C, a signal handler or a full memory can do anywhere."""

from __future__ import annotations

import contextlib
import dis
import gc
import sys
from collections.abc import Callable, Collection
from functools import cache
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

import icecomb.catalog
import icecomb.format

if TYPE_CHECKING:
    from typing_extensions import Self

_COUNTED = (*icecomb.format.__path__, *icecomb.catalog.__path__, contextlib.__file__)


class Interruption:
    """Does something at one of the points of a call: where its lines and functions begin and end.

    Args:
        do: Called at the point; an exception that it raises is raised there.
        at: The number of the point; -1 to count them only.
        within: Names of files; only their points count, where any are named.

    Attributes:
        points: Number of the points that were passed.
        where: Where it was done.
    """

    def __init__(self, do: Callable[[], object], at: int, within: Collection[str] = ()) -> None:
        self._do = do
        self._at = at
        self._within = within
        self.points = 0
        self.where = ""

    def __enter__(self) -> Self:
        self._before = sys.gettrace()
        sys.settrace(self._called)
        return self

    def __exit__(self, *raised: object) -> None:
        sys.settrace(self._before)

    def _called(self, frame: FrameType, event: str, _: Any) -> Any:
        name = frame.f_code.co_filename
        if not name.startswith(_COUNTED) or (
            self._within and not name.endswith(tuple(self._within))
        ):
            return None
        return self._passed(frame, event, None)

    def _passed(self, frame: FrameType, event: str, _: Any) -> Any:
        if event == "exception" or frame.f_lasti in _impossible(frame.f_code):
            return self._passed
        if self.points == self._at:
            sys.settrace(None)
            self.where = f"{frame.f_code.co_filename}:{frame.f_lineno} {event}"
            self.points += 1
            self._do()
            return None
        self.points += 1
        return self._passed


@cache
def _impossible(code: CodeType) -> frozenset[int]:
    """Return the places of a function where Python handles no signal, though a trace function sees them.

    It does so when a function begins and after a call. Between a block of `with` and the call of its `__exit__` it does
    not: a lock, whose `__exit__` is not written in Python, is released for certain. One that is written in Python begins
    with a point of its own. Nor where a line does nothing, as `try:`, for which Python has no handler at all.
    """
    steps = list(dis.get_instructions(code))
    found = {each.offset for each in steps if each.opname == "NOP"}
    for place in range(len(steps) - 3):
        nones = steps[place : place + 3]
        after = steps[place + 3].opname in {"PRECALL", "CALL"}
        if after and all((each.opname, each.argval) == ("LOAD_CONST", None) for each in nones):
            first = place
            while first and steps[first - 1].opname in {"NOP", "SWAP"}:
                first -= 1
            found.update(each.offset for each in steps[first : place + 3])
    return frozenset(found)


def points(call: Callable[[], object], within: Collection[str] = ()) -> int:
    """Return how many points a call has."""
    with Interruption(lambda: None, -1, within) as counting:
        call()
    return counting.points


def interrupted(
    call: Callable[[], object],
    at: int,
    within: Collection[str] = (),
    do: Callable[[], object] | None = None,
) -> tuple[BaseException | None, str]:
    """Return how a call ends that is interrupted at a point, with the traceback, and where that was."""

    def interrupt() -> None:
        raise KeyboardInterrupt

    interruption = Interruption(do or interrupt, at, within)
    # finalizers of what other tests left would be interrupted, whose errors nobody can catch
    gc.disable()
    try:
        with interruption:
            call()
    except BaseException as error:  # noqa: BLE001 - whatever it is, its traceback is kept
        return error, interruption.where
    finally:
        gc.enable()
    return None, interruption.where
