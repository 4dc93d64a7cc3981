"""The durations of equal calls, from which that of very many is estimated."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Final, TypeVar

_T = TypeVar("_T")
_QUARTER: Final = 4
_KEPT: Final = 1_000


class WarmUp:
    """The first call of a kind in this process, which loads modules and opens connections."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._is_done = False

    @contextmanager
    def awaited(self) -> Iterator[bool]:
        """Wait for the first call; yield whether it is to be made in the block."""
        if self._is_done:
            yield False
            return
        with self._lock:
            is_first = not self._is_done
            if is_first:
                try:
                    yield True
                finally:
                    self._is_done = True
        if not is_first:
            yield False


class Pace:
    """The durations of one table's calls, without the first one in the process.

    Args:
        warm_up: The first call of the kind.
        clock: Returns seconds.
    """

    def __init__(self, warm_up: WarmUp, clock: Callable[[], float] = time.monotonic) -> None:
        self._warm_up = warm_up
        self._clock = clock
        self._durations: deque[float] = deque(maxlen=_KEPT)

    def timed(self, call: Callable[[], _T]) -> _T:
        """Make a call."""
        with self._warm_up.awaited() as is_first:
            if is_first:
                return call()
        begun = self._clock()
        result = call()
        self._durations.append(self._clock() - begun)
        return result

    def seconds(self, calls: float, threads: int) -> float:
        """Estimate the duration of calls made by some threads; 0 if none was timed.

        A quarter of the calls are faster than the one that counts: others waited for threads that
        looked at other tables.
        """
        if not self._durations:
            return 0.0
        durations = sorted(self._durations)
        return durations[len(durations) // _QUARTER] * calls / threads
