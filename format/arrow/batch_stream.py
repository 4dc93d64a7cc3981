"""Streams of batches from several producers to one consumer, in bounded memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from functools import partial
from queue import Empty, Full, Queue
from threading import Event, Lock, Thread
from typing import Final, Generic, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa

from icecomb.format.cancellation import Cancellation, cancellable, stoppable

S = TypeVar("S")
T = TypeVar("T")

Producer: TypeAlias = Callable[[], Iterable[T]]

_DEPTH = 2
_POLL_SECONDS = 0.1


def stream(
    producers: Iterable[Producer[T]], workers: int, *, ordered: bool = True, depth: int = _DEPTH
) -> Iterator[T]:
    """Yield the items of producers, which threads produce ahead; close it to stop the threads.

    At most `workers` producers are open, each at most `depth` items ahead (0: any number); with one
    worker, they run in the calling thread.
    """
    if workers <= 1:
        for produce in producers:
            yield from produce()
        return
    with stoppable() as wanted:
        yield from (_ordered if ordered else _unordered)(iter(producers), workers, depth, wanted)


def in_order(work: Callable[[S], T], items: Iterable[S], workers: int) -> Iterator[T]:
    """Yield the results of a function for items in order, which threads compute ahead.

    At most one more result than there are workers is held; closing the iterator begins no more
    work, and waits for none.
    """
    if workers <= 1:
        yield from map(work, items)
        return
    with thread_pool(workers, awaited=False) as pool:
        yield from pooled(pool, work, items, workers)


@contextmanager
def thread_pool(count: int, *, awaited: bool = True) -> Iterator[ThreadPoolExecutor]:
    """Provide threads for `pooled`; work that was not begun at the end of the block is dropped.

    Args:
        awaited: Whether the end of the block waits for work that was begun.
    """
    pool = ThreadPoolExecutor(count, "icecomb-ahead")
    try:
        yield pool
    finally:
        pool.shutdown(wait=awaited, cancel_futures=True)


def pooled(
    pool: Executor, work: Callable[[S], T], items: Iterable[S], ahead: int | None = None
) -> Iterator[T]:
    """Yield the results of a function for items in order, computed by the threads of a pool.

    Args:
        pool: The threads; they have the context variables of the consumer.
        work: Function that computes one result.
        items: Items, iterated as needed.
        ahead: The number of items ahead of the consumer; None for all.
    """
    running: deque[Future[T]] = deque()
    for item in items:
        running.append(pool.submit(copy_context().run, work, item))
        if ahead is not None and len(running) > ahead:
            yield running.popleft().result()
    while running:
        yield running.popleft().result()


class _Lane(Generic[T]):
    """A bounded queue of items that ends with `None`, filled by threads."""

    def __init__(self, stop: Event, depth: int) -> None:
        self._stop = stop
        self._queue: Queue[tuple[T] | BaseException | None] = Queue(depth)

    def fill(self, items: Iterable[T], wanted: Cancellation) -> None:
        """Put items until they end, fail or are no longer wanted."""
        try:
            with cancellable(wanted):
                for item in items:
                    if not self._put((item,)):
                        return
        except BaseException as problem:  # noqa: BLE001 - raised again in the consumer's thread
            self._put(problem)
        else:
            self._put(None)

    def next(self) -> tuple[T] | None:
        """Return the next item in a tuple, or None at the end."""
        while True:
            try:
                item = self._queue.get(timeout=_POLL_SECONDS)
            except Empty:
                continue
            if isinstance(item, BaseException):
                raise item
            return item

    def _put(self, item: tuple[T] | BaseException | None) -> bool:
        while not self._stop.is_set():
            try:
                self._queue.put(item, timeout=_POLL_SECONDS)
            except Full:
                continue
            return True
        return False


def _ordered(
    source: Iterator[Producer[T]], workers: int, depth: int, wanted: Cancellation
) -> Iterator[T]:
    stop = Event()
    lanes: deque[tuple[_Lane[T], Thread]] = deque()

    def start() -> None:
        produce = next(source, None)
        if produce is not None:
            lane: _Lane[T] = _Lane(stop, depth)
            work = partial(copy_context().run, lane.fill, _items(produce), wanted)
            thread = Thread(target=work, daemon=True)
            thread.start()
            lanes.append((lane, thread))

    try:
        for _ in range(workers):
            start()
        while lanes:
            lane, thread = lanes[0]
            while (item := lane.next()) is not None:
                yield item[0]
            thread.join()
            lanes.popleft()
            start()
    finally:
        stop.set()
        wanted.cancel()
        for _, thread in lanes:
            thread.join()


def _unordered(
    source: Iterator[Producer[T]], workers: int, depth: int, wanted: Cancellation
) -> Iterator[T]:
    stop = Event()
    taking = Lock()
    lane: _Lane[T] = _Lane(stop, workers * depth)

    def take() -> Iterator[T]:
        while not stop.is_set():
            with taking:
                produce = next(source, None)
            if produce is None:
                return
            yield from produce()

    threads = [
        Thread(target=partial(copy_context().run, lane.fill, take(), wanted), daemon=True)
        for _ in range(workers)
    ]
    try:
        for thread in threads:
            thread.start()
        for _ in threads:
            while (item := lane.next()) is not None:
                yield item[0]
    finally:
        stop.set()
        wanted.cancel()
        for thread in threads:
            thread.join()


def _items(produce: Producer[T]) -> Iterator[T]:
    yield from produce()


class RowStream:
    """A stream of batches, read once, each with its own schema, unlike a `RecordBatchReader`."""

    def __init__(self, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
        self.schema = schema
        self._batches = iter(batches)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self._batches


GivenRows: TypeAlias = pa.Table | pa.RecordBatchReader | RowStream
"""Rows given to an operation; a stream of either kind is read once."""


_LONG_RUN: Final = 32
"""The least number of selected rows for each octet of a mask with both kinds of rows."""


def filtered(batch: pa.RecordBatch, mask: pa.BooleanArray) -> pa.RecordBatch:
    """Return the rows that a mask without nulls selects; a batch without columns keeps its rows."""
    if not batch.num_columns:
        return pa.record_batch([pa.nulls(mask.true_count)], ["_"]).select([])
    if not _in_long_runs(mask):
        return batch.filter(mask)
    # Arrow filters a batch by the numbers of its rows, but an array by the runs of its mask
    arrays = [array.filter(mask) for array in batch.columns]
    return pa.RecordBatch.from_arrays(arrays, schema=batch.schema)


def _in_long_runs(mask: pa.BooleanArray) -> bool:
    octets = np.frombuffer(mask.buffers()[1], np.uint8)
    octets = octets[mask.offset // 8 : (mask.offset + len(mask) + 7) // 8]
    # 255 wraps around to 0: only octets with both kinds of rows are more than 1
    both = np.count_nonzero(octets + np.uint8(1) > 1)
    return bool(both * _LONG_RUN <= mask.true_count)
