"""Files of names that only their writer has drawn, on storage behind what may repeat requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icecomb.format.errors import FileExistsAlreadyError

if TYPE_CHECKING:
    from icecomb.format.storage.file_io import FileIO


def create_own(io: FileIO, location: str, data: bytes) -> None:
    """Create a file; one that is there already with these very bytes is ours.

    Something between here and a store may send a request twice, and the answer to the second says
    that the file exists. Where several write one name, equal bytes prove nothing.

    Args:
        io: Where it goes.
        location: Its name, which nobody else draws; or equal bytes of others are as good.
        data: All of it.

    Raises:
        FileExistsAlreadyError: Another's file has the name; it is left as it is.
    """
    try:
        io.create(location, data)
    except FileExistsAlreadyError:
        if io.read(location) != data:
            raise
