"""Temporary files on this machine, for what does not fit into memory."""

from __future__ import annotations

import tempfile

from icecomb.format.errors import FileIOError


def cannot_keep(what: str, error: OSError) -> FileIOError:
    """Return the error to raise if the temporary folder is full, or cannot be written to.

    Args:
        what: The contents of the file, for the message.
        error: The system's error.
    """
    return FileIOError(
        f"Cannot keep {what} in {tempfile.tempdir or 'a temporary folder'}: {error.strerror}",
        hint="free space there, or set TMPDIR to a folder with free space",
    )
