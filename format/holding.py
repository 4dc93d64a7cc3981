"""What one block of code holds until it ends: places in queues, locks, connections.

An interrupt (Ctrl-C, an exception of a signal handler) can arrive anywhere, also where a `finally`
or an `__exit__` begins, before it has released anything. A generator that holds something, or an
`ExitStack`, then holds on for as long as somebody keeps the traceback, as interactive Python does.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from functools import partial
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from typing_extensions import Self

_SIGNALS: Final = tuple(signal.valid_signals())


class Holding:
    """Releases what a block holds when it ends; the block enters it twice.

    An interrupt at the inner exit leaves the outer one. Who acquires something adds its release
    before.
    """

    __slots__ = ("_block", "_releases", "_thread")

    def __init__(self) -> None:
        self._releases: list[Callable[[], object]] = []
        self._thread = threading.current_thread()
        self._block: CodeType | None = None

    def __enter__(self) -> Self:
        self._block = sys._getframe(1).f_code  # noqa: SLF001 - as `inspect.currentframe`
        return self

    def __exit__(self, *raised: object) -> None:
        self.release()

    def add(self, release: Callable[[], object]) -> None:
        """Add a release, called at the end of the block, last added first.

        It is called again if it was interrupted, so it may find nothing held; it raises nothing but
        interrupts.
        """
        self._releases.append(release)

    def release(self) -> None:
        """Release everything; what an earlier call left when it was interrupted, if so."""
        while self._releases:
            self._releases[-1]()
            self._releases.pop()

    @property
    def is_of_this_thread(self) -> bool:
        """Whether the block is, or was, this thread's."""
        return self._thread is threading.current_thread()

    def is_abandoned(self) -> bool:
        """Return whether the block has certainly ended without releasing everything."""
        if not self.is_of_this_thread:
            return not self._thread.is_alive()
        frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - as `inspect.currentframe`
        while frame is not None:
            # the frame itself is not kept: it would live on with all of its variables
            if frame.f_code is self._block and any(
                value is self for value in frame.f_locals.values()
            ):
                return False
            frame = frame.f_back
        return True


_HANDLERS: Final[set[CodeType]] = set()
"""Signal handlers seen so far: a handler may remove itself before it does anything else."""


def note_handlers() -> None:
    """Note the signal handlers there are, before what `is_interrupt` is asked about."""
    if threading.current_thread() is threading.main_thread():
        _HANDLERS.update(filter(None, (_code(each) for each in map(signal.getsignal, _SIGNALS))))


def is_interrupt(error: BaseException) -> bool:
    """Return whether a signal handler raised an error, which may be one of icecomb's own."""
    if threading.current_thread() is not threading.main_thread():
        return False
    note_handlers()
    at = error.__traceback__
    while at is not None:
        if at.tb_frame.f_code in _HANDLERS:
            return True
        at = at.tb_next
    return False


def _code(handler: Any) -> CodeType | None:
    """Return the code of a function, a method, a partial or an object that can be called."""
    if not callable(handler):
        return None
    while isinstance(handler, partial):
        handler = handler.func
    found = getattr(handler, "__code__", None) or getattr(type(handler).__call__, "__code__", None)
    return found if isinstance(found, CodeType) else None
