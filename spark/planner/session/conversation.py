"""The requests of a running procedure to the session that called it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future
from contextvars import copy_context
from queue import SimpleQueue
from typing import TYPE_CHECKING, TypeAlias, TypeVar

if TYPE_CHECKING:
    from icecomb.spark.planner.protocol.procedures import (
        SessionListing,
        SessionQuery,
        SessionSketches,
        SessionWork,
    )

    Asked: TypeAlias = SessionListing | SessionQuery | SessionSketches | SessionWork

T = TypeVar("T")


class Conversation:
    """The requests of a procedure while it runs."""

    def __init__(self) -> None:
        self._said: SimpleQueue[Asked | None] = SimpleQueue()

    def ask(self, work: Asked) -> None:
        """Ask the session to do something; completion is reported to the work itself."""
        self._said.put(work)

    def run(self, procedure: Callable[[], T]) -> Generator[Asked, None, T]:
        """Run a procedure in a thread of its own; yield its requests and return its result.

        A caller that stops waiting cancels the procedure, whose thread is bound to the same
        cancellation.
        """
        result: Future[T] = Future()

        def work() -> None:
            try:
                result.set_result(procedure())
            except BaseException as problem:  # noqa: BLE001 - raised where the answer is awaited
                result.set_exception(problem)
            finally:
                self._said.put(None)

        context = copy_context()
        threading.Thread(
            target=context.run, args=(work,), name="planner-procedure", daemon=True
        ).start()
        while (asked := self._said.get()) is not None:
            # requests of a procedure that has failed since are useless
            if not result.done():
                yield asked
        return result.result()
