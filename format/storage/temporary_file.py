"""Temporary files on this machine, for what does not fit into memory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from icecomb.format.errors import FileIOError


@contextmanager
def keeping(what: str) -> Iterator[None]:
    """Name the contents of a temporary file in the system's errors; see `cannot_keep`."""
    try:
        yield
    except OSError as error:
        raise cannot_keep(what, error) from error


def cannot_keep(what: str, error: OSError) -> FileIOError:
    """Return the error for a full or unwritable temporary folder; `what` names the contents."""
    return FileIOError(
        f"Cannot keep {what} in {tempfile.tempdir or 'a temporary folder'}: {error.strerror}",
        hint="Free space there, or set TMPDIR to a folder with free space.",
    )
