"""The least a store must be able to do: look, read, create without replacing, list, delete."""

from __future__ import annotations

import tempfile
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from threading import Lock
from typing import Final

from icecomb.format.errors import FileMissingError
from icecomb.format.storage.object_store.client import (
    PART,
    ObjectClient,
    ObjectPage,
    ObjectStatus,
    PartUpload,
    StoreFacts,
)
from icecomb.format.storage.object_store.creation import complete_once

_A_PAGE: Final = 1000
_ATTEMPTS: Final = 4


class SimpleObjectClient(ObjectClient):
    """A bucket of a store that takes objects whole.

    What is large is kept in a file of this machine until it is sent, and then in memory; override
    `begin_upload`, `copy` and `pages` where the store can do better.
    """

    where: str = "a store of its own"
    """For `icecomb doctor`: the address of the store."""

    @abstractmethod
    def objects(self, prefix: str, location: str) -> Iterator[ObjectStatus]:
        """All objects whose keys begin with a text, in any order.

        Args:
            prefix: The text.
            location: For messages.
        """

    def close(self) -> None:
        """See `ObjectClient.close`: nothing is kept open."""

    def facts(self, location: str) -> StoreFacts:  # noqa: ARG002
        """See `ObjectClient.facts`."""
        return StoreFacts(self.where, "its own client", "its own settings")

    def begin_upload(self, key: str, location: str) -> PartUpload:
        """See `ObjectClient.begin_upload`: parts are kept until all are there."""
        return _WholeUpload(self, key, location)

    def copy(self, source: ObjectStatus, key: str, location: str) -> None:
        """See `ObjectClient.copy`: by way of this machine."""
        upload = _WholeUpload(self, key, location)
        try:
            upload.send(1, self.read(source.key, location))
            complete_once(upload, location, _ATTEMPTS)
        finally:
            upload.abort()

    def pages(self, prefix: str, location: str, *, below: bool) -> Iterator[ObjectPage]:
        """See `ObjectClient.pages`: all that is below is listed, too."""
        found = sorted(self.objects(prefix, location), key=lambda each: each.key.encode())
        folders: dict[str, None] = {}
        if not below:
            inside = [each.key[len(prefix) :].partition("/") for each in found]
            folders = {f"{prefix}{name}/": None for name, slash, _ in inside if slash}
            found = [each for each, (_, slash, _) in zip(found, inside, strict=True) if not slash]
        for start in range(0, max(len(found), 1), _A_PAGE):
            yield ObjectPage(found[start : start + _A_PAGE], () if start else tuple(folders))


class _WholeUpload(PartUpload):
    """An upload to a store that knows none."""

    def __init__(self, client: SimpleObjectClient, key: str, location: str) -> None:
        self._client = client
        self._key = key
        self._location = location
        self._lock = Lock()
        self._kept = tempfile.TemporaryFile()  # noqa: SIM115 - `abort` and `complete` close it
        self._data = b""

    def send(self, number: int, data: bytes | bytearray) -> None:
        with self._lock:
            self._kept.seek((number - 1) * PART)
            self._kept.write(data)

    def complete(self) -> None:
        if not self._kept.closed:
            self._kept.seek(0)
            self._data = self._kept.read()
            self._kept.close()
        self._client.put(self._key, self._location, self._data, replace=False)

    def is_done(self) -> bool:
        with suppress(FileMissingError):
            return self._client.read(self._key, self._location) == self._data
        return False

    def abort(self) -> None:
        self._kept.close()
