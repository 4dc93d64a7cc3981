"""Whether a store does what file-system tables rest on: it replaces no object by a new one."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from icecomb.format.errors import FileExistsAlreadyError, IcecombError
from icecomb.format.storage.object_store.client import ObjectClient
from icecomb.format.storage.object_store.creation import put_once

PROBE: str = "_icecomb_probe-"
"""How the names of its objects begin: engines pass over what begins with an underscore."""


@contextmanager
def probe_object(
    client: ObjectClient, folder: str, location: str, attempts: int
) -> Iterator[tuple[str, str]]:
    """An object of our own: its key and location. It is deleted at the end, if that is allowed.

    Args:
        client: Of the bucket.
        folder: The key of a folder, without a slash at its end; empty for the bucket.
        location: The same as a location, likewise.
        attempts: See `put_once`.

    Raises:
        FileIOError: it cannot be created.
    """
    name = f"{PROBE}{uuid.uuid4().hex}"
    key, place = (f"{folder}/{name}" if folder else name), f"{location}/{name}"
    with suppress(FileExistsAlreadyError):  # sent twice on the way: nobody else has this name
        put_once(client, key, place, b"icecomb", attempts)
    try:
        yield key, place
    finally:
        with suppress(IcecombError):
            client.delete([key], place)


def replaces_nothing(client: ObjectClient, key: str, location: str, attempts: int) -> bool:
    """Whether the store refuses to create an object whose key is taken.

    Stores that do not know `If-None-Match: *` replace it, or refuse the request.

    Args:
        client: Of the bucket.
        key: Of an object of our own.
        location: Of it.
        attempts: See `put_once`.

    Raises:
        FileIOError: it cannot be told.
    """
    try:
        put_once(client, key, location, b"another", attempts)
    except FileExistsAlreadyError:
        return True
    return False
