"""Values kept in memory within a limit: the least recently used ones go first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from itertools import islice
from threading import Lock
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Lru(Generic[K, V]):
    """A thread-safe cache that drops the least recently used values above a limit.

    Args:
        limit: Maximum size of all values together.
        size: Function that returns the size of a value, called once; by default each counts as one.
        keeps_last: Whether the value that was kept last stays, whatever its size; a value above the
            limit is not kept otherwise.
        spares: Function that tells which keys go only after all others.
    """

    def __init__(
        self,
        limit: int,
        size: Callable[[V], int] = lambda _: 1,
        *,
        keeps_last: bool = False,
        spares: Callable[[K], bool] | None = None,
    ) -> None:
        self.limit = limit
        self._size = size
        self._keeps_last = keeps_last
        self._spares = spares
        self._kept: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._total = 0
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def find(self, key: K) -> V | None:
        """Return the value of a key, which counts as used; None if it is not kept."""
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                return None
            self._kept.move_to_end(key)
            return found[0]

    def keep(self, key: K, value: V) -> None:
        """Keep the value of a key, in place of an earlier one."""
        size = self._size(value)
        with self._lock:
            self._drop(key)
            if size > self.limit and not self._keeps_last:
                return
            self._kept[key] = value, size
            self._total += size
            while self._total > self.limit and len(self._kept) > 1:
                self._drop(self._first())

    def discard(self, unwanted: Callable[[K], bool] = lambda _: True) -> None:
        """Drop the values of some keys, by default of all."""
        with self._lock:
            for key in [key for key in self._kept if unwanted(key)]:
                self._drop(key)

    def _first(self) -> K:
        """Return the key to drop first; never the last one."""
        if self._spares is None:
            return next(iter(self._kept))
        return min(islice(self._kept, len(self._kept) - 1), key=self._spares)

    def _drop(self, key: K) -> None:
        dropped = self._kept.pop(key, None)
        if dropped is not None:
            self._total -= dropped[1]


class ReadOnce(Generic[K, V]):
    """A thread-safe cache whose values are read once, however many threads ask at the same time.

    Args:
        limit: Maximum size of all values together.
        size: As of `Lru`.
        keeps_last: As of `Lru`.
    """

    def __init__(
        self, limit: int, size: Callable[[V], int] = lambda _: 1, *, keeps_last: bool = False
    ) -> None:
        self._kept = Lru[K, "tuple[V]"](limit, lambda held: size(held[0]), keeps_last=keeps_last)
        self._reading: dict[K, Lock] = {}
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def of(self, key: K, read: Callable[[], V], fits: Callable[[V], bool] = lambda _: True) -> V:
        """Return the value of a key.

        Args:
            key: The key.
            read: Function that reads the value, called by one thread at a time for each key.
            fits: Function that tells whether a kept value is what is wanted; else it is read again.
        """
        with self._lock:
            reading = self._reading.setdefault(key, Lock())
        with reading:
            held = self._kept.find(key)
            if held is None or not fits(held[0]):
                held = (read(),)
                self._kept.keep(key, held)
            return held[0]
