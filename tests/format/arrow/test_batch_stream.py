"""Batches made ahead by threads: their order, and whether they are still wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Event

import pytest

from icecomb.format.arrow.batch_stream import stream
from icecomb.format.cancellation import cancellable, check_wanted, stoppable
from icecomb.format.errors import OperationCanceledError

PRODUCERS = 20


def producer(number: int) -> Callable[[], Iterator[tuple[int, int]]]:
    return lambda: ((number, item) for item in range(number % 4))


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("workers", [1, 2, 5])
def test_every_item_comes_once_and_in_order_where_that_is_asked(
    workers: int, *, ordered: bool
) -> None:
    found = list(stream(map(producer, range(PRODUCERS)), workers, ordered=ordered))
    wanted = [item for number in range(PRODUCERS) for item in producer(number)()]
    assert (found if ordered else sorted(found)) == wanted


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("workers", [1, 2])
def test_what_is_not_wanted_any_more_ends_in_the_threads_that_make_it(
    workers: int, *, ordered: bool
) -> None:
    begun, ended = Event(), []

    def endless() -> Iterator[int]:
        begun.set()
        try:
            while True:
                check_wanted()
                yield 1
        finally:
            ended.append(1)

    with stoppable() as wanted, cancellable(wanted):
        items = stream((endless for _ in range(workers)), workers, ordered=ordered)
        next(items)
        assert begun.wait(60)
        wanted.cancel()
        with pytest.raises(OperationCanceledError):
            list(items)
    assert len(ended) == workers
