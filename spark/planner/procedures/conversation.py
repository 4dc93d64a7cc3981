"""A procedure that runs, and what it asks the session that called it to do meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextvars import copy_context
from queue import SimpleQueue
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

if TYPE_CHECKING:
    from icecomb.spark.planner.protocol import SessionQuery, SessionWork

    Asked: TypeAlias = SessionQuery | SessionWork

T = TypeVar("T")


class Conversation:
    """What a procedure says while it runs."""

    def __init__(self) -> None:
        self._said: SimpleQueue[Asked | None] = SimpleQueue()

    def ask(self, work: Asked) -> None:
        """Ask the session to do something; it says elsewhere when it is done."""
        self._said.put(work)

    def run(self, procedure: Callable[[], T]) -> Generator[Asked, None, T]:
        """Run a procedure in a thread of its own; gives what it asks for, then its result.

        Whoever stops waiting for the procedure cancels it, as its thread is bound to the same
        cancellation.
        """
        running = _Running(procedure, self._said)
        context = copy_context()
        threading.Thread(
            target=context.run, args=(running,), name="planner-procedure", daemon=True
        ).start()
        while (work := self._said.get()) is not None:
            yield work
        return running.result()


class _Running(Generic[T]):
    """A procedure, and what becomes of it."""

    def __init__(self, procedure: Callable[[], T], said: SimpleQueue[Asked | None]) -> None:
        self._procedure = procedure
        self._said = said
        self._results: list[T] = []
        self._problem: BaseException | None = None

    def __call__(self) -> None:
        try:
            self._results.append(self._procedure())
        except BaseException as problem:  # noqa: BLE001 - raised again where the answer is awaited
            self._problem = problem
        finally:
            self._said.put(None)

    def result(self) -> T:
        if self._problem is not None:
            raise self._problem
        return self._results[0]
