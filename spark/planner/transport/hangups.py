"""Cancellation of requests whose connection is closed by the other end."""

from __future__ import annotations

import selectors
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from icecomb.format.cancellation import Cancellation


class Hangups:
    """A thread that watches connections on which nothing is received in the meantime."""

    def __init__(self) -> None:
        # epoll and kqueue also report connections that are added while a thread waits
        self._selector = selectors.DefaultSelector()
        self._lock = threading.Lock()
        self._started = False

    @contextmanager
    def watching(self, connection: socket.socket, cancellation: Cancellation) -> Iterator[None]:
        """Cancel as soon as the other end closes the connection, or ends its side of it."""
        with self._lock:
            self._selector.register(connection, selectors.EVENT_READ, cancellation)
            if not self._started:
                self._started = True
                threading.Thread(target=self._watch, name="planner-hangups", daemon=True).start()
        try:
            yield
        finally:
            # a connection that was closed is not registered any more
            with self._lock, suppress(KeyError):
                self._selector.unregister(connection)

    def _watch(self) -> None:
        while True:
            for key, _ in self._selector.select():
                with self._lock:
                    self._check(key)

    def _check(self, key: selectors.SelectorKey) -> None:
        known = self._selector.get_map().get(key.fd)
        # its request may have been answered since, and its descriptor reused
        if known is None or known.data is not key.data:
            return
        connection: Any = key.fileobj
        try:
            ended = not connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            # the reported data was read meanwhile: the end may still come
            return
        except OSError:
            ended = True
        self._selector.unregister(connection)
        if ended:
            key.data.cancel()
