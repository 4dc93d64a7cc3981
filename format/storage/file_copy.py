"""Copies of files, through this process: source and target may be on different storage."""

from __future__ import annotations

import shutil
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from icecomb.format.errors import FileIOError, IcecombError

if TYPE_CHECKING:
    from icecomb.format.storage.file_io import FileIO

_PIECE_BYTES: Final = 1 << 20


def copy_file(io: FileIO, location: str, target: str) -> None:
    """Copy a file; the target has its name when it is whole.

    FileAlreadyExistsError is raised if there is a file at the target. Links of other users are not
    followed.
    """
    size = io.size(location)
    with io.open_to_copy(location) as source, io.create_stream(target) as out:
        shutil.copyfileobj(source, out, _PIECE_BYTES)
    if (copied := io.size(target)) != size:
        with suppress(IcecombError):
            io.delete(target)
        raise FileIOError(
            f"{location} was copied to {target} with {copied} of its {size} bytes",
            hint="Check the free space. The file stays where it was.",
            path=location,
        )


def have_same_bytes(io: FileIO, location: str, other: str) -> bool:
    """Return whether two files have the same bytes.

    Args:
        io: File system that holds both.
        location: The location of one file.
        other: The location of the other file.
    """
    if io.size(location) != io.size(other):
        return False
    with io.open_input(location) as one, io.open_input(other) as two:
        while piece := one.read(_PIECE_BYTES):
            if piece != two.read(_PIECE_BYTES):
                return False
    return True
