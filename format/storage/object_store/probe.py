"""Probe of a guarantee that file-system tables need: a store never overwrites an object."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from icecomb.format.errors import FileAlreadyExistsError, IcecombError
from icecomb.format.storage.object_store.client import ObjectClient
from icecomb.format.storage.object_store.creation import put_once

PROBE: str = "_icecomb_probe-"
"""Prefix of the probe's objects: engines ignore names that begin with an underscore."""


@contextmanager
def probe_object(
    client: ObjectClient, folder: str, location: str, attempts: int
) -> Iterator[tuple[str, str]]:
    """Create a test object, yield its key and location, and delete it if that is allowed.

    The folder has no final slash, and its key is empty for the bucket.
    """
    name = f"{PROBE}{uuid.uuid4().hex}"
    key, place = (f"{folder}/{name}" if folder else name), f"{location}/{name}"
    with suppress(FileAlreadyExistsError):  # sent twice on the way: nobody else has this name
        put_once(client, key, place, b"icecomb", attempts)
    try:
        yield key, place
    finally:
        with suppress(IcecombError):
            client.delete([key], place)


def replaces_nothing(client: ObjectClient, key: str, location: str, attempts: int) -> bool:
    """Return whether the store refuses to create an object whose key is taken.

    Stores that do not support `If-None-Match: *` replace it, or refuse the request.
    """
    try:
        put_once(client, key, location, b"another", attempts)
    except FileAlreadyExistsError:
        return True
    return False
