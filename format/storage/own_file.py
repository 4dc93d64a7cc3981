"""Files under unique names, on storage whose connections may repeat requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icecomb.format.errors import FileAlreadyExistsError

if TYPE_CHECKING:
    from icecomb.format.storage.file_io import FileIO


def create_own(io: FileIO, location: str, data: bytes) -> None:
    """Create a file; treat an existing one with the same bytes as created by this call.

    A proxy in between may send a request twice, and the response to the second says that the file
    exists. If several writers use one name, equal bytes prove nothing: no other writer may use it,
    or equal bytes must be as good.
    """
    try:
        io.create(location, data)
    except FileAlreadyExistsError:
        if io.read(location) != data:
            raise
