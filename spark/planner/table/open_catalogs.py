"""Open catalogs, each with its connections and caches, closed when idle."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from icecomb.format.errors import ConfigurationError

if TYPE_CHECKING:
    from icecomb.catalog.catalog import Catalog
    from icecomb.catalog.configuration.configuration import Configuration

_SHORTEST_S: Final = 0.2
_LONGEST_S: Final = 60.0


@dataclass(slots=True)
class _Held:
    configuration: Configuration
    idle_s: float
    catalog: Catalog | None = None
    used: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)


class OpenCatalogs:
    """A thread-safe registry of catalogs by handle.

    A catalog unused for its ``client.pool.cache.eviction-interval-ms`` is released, like Iceberg
    Java's clients; the next request opens it again. A running request keeps its catalog: the
    connections close when nothing refers to it any more.

    """

    def __init__(self) -> None:
        self._listeners: list[Callable[[str], None]] = []
        self._held: dict[str, _Held] = {}
        self._lock = threading.Lock()
        self._watched = False

    def add(self, handle: str, configuration: Configuration) -> None:
        """Register a catalog, to be opened on first use."""
        from icecomb.catalog.configuration.catalog_property import IDLE

        idle_s = IDLE.of(configuration.properties) / 1000
        with self._lock:
            held = self._held.setdefault(handle, _Held(configuration, idle_s))
            # another session with the same settings may have newer locations
            held.configuration = configuration

    def __contains__(self, handle: str) -> bool:
        return handle in self._held

    def __getitem__(self, handle: str) -> Catalog:
        """Return the catalog, opening it if needed; `ConfigurationError` if not registered."""
        held = self._held.get(handle)
        if held is None:
            raise ConfigurationError(
                f"Catalog {handle} is not open in this planner", hint="run the statement again"
            )
        with held.lock:
            held.used = time.monotonic()
            if held.catalog is None:
                from icecomb.catalog.loading import catalog_of

                held.catalog = catalog_of(held.configuration)
                self._watch()
            return held.catalog

    def when_let_go(self, tell: Callable[[str], None]) -> None:
        """Call `tell` with the handle of each catalog that is released."""
        self._listeners.append(tell)

    def let_idle_go(self) -> float:
        """Release catalogs idle for their interval; return seconds until the next check."""
        soonest, some = _LONGEST_S, False
        for handle, held in [*self._held.items()]:
            with held.lock:
                if held.catalog is None:
                    continue
                left = held.used + held.idle_s - time.monotonic()
                if left > 0:
                    soonest = min(soonest, left)
                    continue
                held.catalog, some = None, True
            for tell in self._listeners:
                tell(handle)
        if some:
            # tables and their operations form cycles: collect them to close connections now
            gc.collect()
        return max(soonest, _SHORTEST_S)

    def _watch(self) -> None:
        with self._lock:
            if self._watched:
                return
            self._watched = True
        threading.Thread(
            target=_watch, args=(weakref.ref(self),), name="planner-idle-catalogs", daemon=True
        ).start()


def _watch(catalogs: weakref.ref[OpenCatalogs]) -> None:
    while (found := catalogs()) is not None:
        pause_s = found.let_idle_go()
        del found
        time.sleep(pause_s)
