"""Client for minimal stores: status, read, create without overwriting, list, delete."""

from __future__ import annotations

import tempfile
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from threading import Lock
from typing import Final

from icecomb.format.errors import NoSuchFileError
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
    """A client of a bucket in a store that accepts only whole objects.

    A large object is kept in a local file until it is sent, and then in memory; override
    `begin_upload`, `copy` and `pages` if the store can do better.
    """

    where: str = "a store of its own"
    """The address of the store, for `icecomb doctor`."""

    @abstractmethod
    def objects(self, prefix: str, location: str) -> Iterator[ObjectStatus]:
        """Yield all objects whose keys begin with a prefix, in any order.

        Args:
            prefix: The prefix.
            location: The location, for messages.
        """

    def close(self) -> None:
        """Do nothing: no connections are kept open."""

    def facts(self, location: str) -> StoreFacts:  # noqa: ARG002
        """Implement `ObjectClient.facts`."""
        return StoreFacts(self.where, "its own client", "its own settings")

    def begin_upload(self, key: str, location: str) -> PartUpload:
        """Implement `ObjectClient.begin_upload`; parts are kept until all have arrived."""
        return _WholeUpload(self, key, location)

    def copy(self, source: ObjectStatus, key: str, location: str) -> None:
        """Implement `ObjectClient.copy` through this machine."""
        upload = _WholeUpload(self, key, location)
        try:
            upload.send(1, self.read(source.key, location))
            complete_once(upload, location, _ATTEMPTS)
        finally:
            upload.abort()

    def pages(self, prefix: str, location: str, *, below: bool) -> Iterator[ObjectPage]:
        """Implement `ObjectClient.pages` by listing all objects with the prefix."""
        found = sorted(self.objects(prefix, location), key=lambda each: each.key.encode())
        folders: dict[str, None] = {}
        if not below:
            inside = [each.key[len(prefix) :].partition("/") for each in found]
            folders = {f"{prefix}{name}/": None for name, slash, _ in inside if slash}
            found = [each for each, (_, slash, _) in zip(found, inside, strict=True) if not slash]
        for start in range(0, max(len(found), 1), _A_PAGE):
            yield ObjectPage(found[start : start + _A_PAGE], () if start else tuple(folders))


class _WholeUpload(PartUpload):
    """An upload in parts to a store without multipart uploads."""

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
        with suppress(NoSuchFileError):
            return self._client.read(self._key, self._location) == self._data
        return False

    def abort(self) -> None:
        self._kept.close()
