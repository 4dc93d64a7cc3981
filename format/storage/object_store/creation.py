"""Creation of objects exactly once, even if requests or responses are lost.

A repeated conditional write may meet its own first success, so a refusal proves nothing. After a
lost response the object is therefore read: it is this writer's or another's. A delayed request does
no harm once its key is taken; if there is no object in the end, the error says that it may still
appear.

A proxy may silently repeat a request. For an object written by one request, equal bytes then prove
nothing: a caller that needs to know must write bytes that nobody else can have written.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeVar

from icecomb.format.cancellation import pause
from icecomb.format.errors import (
    FileAlreadyExistsError,
    FileIOError,
    IcecombError,
    NoSuchFileError,
)
from icecomb.format.storage.file_system import state_unknown
from icecomb.format.storage.object_store.client import (
    AnswerLostError,
    Completion,
    MarkedCompletion,
    ObjectClient,
    StoreBusyError,
)

T = TypeVar("T")

FIRST_S: Final = 0.1
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
    """Create an object of these bytes, or replace one.

    FileAlreadyExistsError means that another writer's object has the key; FileStateUnknownError
    that it does not exist but a request may still be in flight.
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
    """Create an object from data already in the store; see `put_once`."""
    _repeated(made.complete, made.is_done, location, attempts, late=True, has_mark=True)


def copy_once(made: MarkedCompletion, location: str, attempts: int) -> None:
    """Create a copy of an object, see `put_once`, and look at it: the other may be deleted then.

    AnswerLostError is raised if the copy that was reported is not there.
    """
    complete_once(made, location, attempts)
    if not made.is_done():
        raise not_copied(location)


def not_copied(location: str) -> AnswerLostError:
    """Return the error for a copy that the store reported, but does not have."""
    return AnswerLostError(
        f"Cannot copy to {location}: the copy that the store reported is not there",
        hint="Another server, or a proxy between this machine and the store, answers: check "
        "both files, and try again.",
        path=location,
    )


def answered(ask: Callable[[], T], attempts: int) -> T:
    """Return the response to a request that is safe to repeat, sent by `ask`.

    It is repeated if the store is busy or its response is lost.
    """
    for attempt in range(1, attempts):
        with suppress(StoreBusyError, AnswerLostError):
            return ask()
        wait_before(attempt)
    return ask()


def wait_before(attempt: int) -> None:
    """Pause for a random time that grows with each attempt; the first attempt is 0."""
    pause(random.uniform(0, min(FIRST_S * 2**attempt, _LONGEST_S)))  # noqa: S311


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
        except (FileAlreadyExistsError, NoSuchFileError) as error:  # noqa: PERF203 - tried again
            # an upload whose completion was lost or repeated may be gone already
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
            # refused or canceled now, but an earlier request may have succeeded
            problem = error
            break
        else:
            return
    if lost is None or not late:
        if has_mark and problem is not None:
            # a request duplicated in transit may be refused the second time for any reason
            with suppress(IcecombError):
                if is_ours():
                    return
        raise problem or FileIOError(
            f"Cannot create {location}: no attempt is allowed",
            hint="Set io.object-store.max-attempts to 1 or more.",
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
    """Return whether the object exists with these bytes."""
    try:
        if client.status(key, location).size != len(data):
            return False
        return client.read(key, location) == data
    except NoSuchFileError:
        return False
