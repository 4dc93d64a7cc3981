"""Objects are created once, whatever becomes of requests and answers.

A conditional write that is repeated may meet its own first success, and then a refusal proves
nothing. So after an answer was lost the object is looked at: ours, or another writer's. A request
that arrives late does no harm once its key is taken; if nothing is there in the end, the error says
that it may appear yet.

A proxy may repeat a request without a word. Of an object that was put at once equal bytes prove
nothing then: whoever needs to know compares what nobody else can have written.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeVar

from icecomb.format.cancellation import pause
from icecomb.format.errors import (
    FileExistsAlreadyError,
    FileIOError,
    FileMissingError,
    IcecombError,
)
from icecomb.format.storage.file_system import state_unknown
from icecomb.format.storage.object_store.client import (
    AnswerLostError,
    Completion,
    ObjectClient,
    StoreBusyError,
)

T = TypeVar("T")

_FIRST_S: Final = 0.1
_LONGEST_S: Final = 8.0


def put_once(
    client: ObjectClient,
    key: str,
    location: str,
    data: bytes | bytearray,
    attempts: int,
    *,
    replace: bool = False,
) -> None:
    """Create an object of these bytes.

    Args:
        client: Of its bucket.
        key: Its name.
        location: For messages.
        data: All of it.
        attempts: How often it is tried.
        replace: Take the place of one that is there.

    Raises:
        FileExistsAlreadyError: another's object has the key.
        FileStateUnknownError: it is not there, but a request may still be on its way.
        FileIOError: the store refuses it.
    """

    def is_ours() -> bool:
        return _holds(client, key, location, data)

    _repeated(
        lambda: client.put(key, location, data, replace=replace),
        is_ours,
        location,
        attempts,
        late=not replace,
        has_mark=False,
    )


def complete_once(made: Completion, location: str, attempts: int) -> None:
    """Make an object of what is in the store by now; see `put_once`."""
    _repeated(made.complete, made.is_done, location, attempts, late=True, has_mark=True)


def answered(ask: Callable[[], T], attempts: int) -> T:
    """What a question answers that does no harm when it is asked again.

    Args:
        ask: Asks once.
        attempts: How often, if the store is busy or its answer is lost.
    """
    for attempt in range(1, attempts):
        with suppress(StoreBusyError, AnswerLostError):
            return ask()
        wait_before(attempt)
    return ask()


def wait_before(attempt: int) -> None:
    """Pause, some time or other, longer with each attempt; the first one is 0."""
    pause(random.uniform(0, min(_FIRST_S * 2**attempt, _LONGEST_S)))  # noqa: S311


def _repeated(
    create: Callable[[], None],
    is_ours: Callable[[], bool],
    location: str,
    attempts: int,
    *,
    late: bool,
    has_mark: bool,
) -> None:
    problem: IcecombError | None = None
    lost: AnswerLostError | None = None
    for attempt in range(attempts):
        try:
            if problem is not None:
                wait_before(attempt)
            create()
        except (FileExistsAlreadyError, FileMissingError) as error:  # noqa: PERF203 - tried again
            # of an upload whose completion was lost, or repeated, nothing is left to complete
            if not late or (lost is None and not has_mark):
                raise
            if _settled(is_ours, lost or error, location):
                return
            raise
        except StoreBusyError as error:
            problem = error
        except AnswerLostError as error:
            problem = lost = error
        except IcecombError as error:
            # it is refused now, or not wanted any more: the earlier request may have come through
            problem = error
            break
        else:
            return
    if lost is None or not late:
        if has_mark and problem is not None:
            # what was sent twice on the way may be refused the second time, whatever the reason
            with suppress(IcecombError):
                if is_ours():
                    return
        raise problem or FileIOError(
            f"Cannot create {location}: no attempt is allowed",
            hint="let io.object-store.max-attempts be 1 or more",
            path=location,
        )
    if _settled(is_ours, lost, location):
        return
    raise state_unknown(location, lost) from problem


def _settled(is_ours: Callable[[], bool], lost: IcecombError, location: str) -> bool:
    try:
        return is_ours()
    except IcecombError as error:
        raise state_unknown(location, lost) from error


def _holds(client: ObjectClient, key: str, location: str, data: bytes | bytearray) -> bool:
    """Whether the object is there with these bytes."""
    try:
        if client.status(key, location).size != len(data):
            return False
        return client.read(key, location) == data
    except FileMissingError:
        return False
