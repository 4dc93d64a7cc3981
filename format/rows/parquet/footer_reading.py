"""Reading of the footers of Parquet files, whose sizes anybody can state.

A sparse file of a few blocks may state one of a gigabyte, and each thread would read it.
"""

from __future__ import annotations

import threading
from contextlib import nullcontext
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from icecomb.format.errors import CorruptFileError
from icecomb.format.input_limit import FOOTER

_END_BYTES: Final = 8
LARGE_BYTES: Final = 16 << 20
_LARGE: Final = threading.Lock()
"""Held while a large footer is read: all threads together hold the bytes of one."""


def check_footer_size(source: pa.NativeFile, location: str) -> int:
    """Return the length of a footer in bytes as its file states it, if it may be read.

    Raises:
        CorruptFileError: If it is larger than the limit `FOOTER`.
    """
    start = max(source.size() - _END_BYTES, 0)
    length = int.from_bytes(source.read_at(_END_BYTES, start)[:4], "little")
    if length > FOOTER.value << 20 and length <= start:
        raise CorruptFileError(
            f"Parquet file {location} states a footer of {length} bytes, more than the limit "
            f"({FOOTER})",
            hint="If the file is sound, set that environment variable to more.",
            path=location,
        )
    return length


def read_footer(source: pa.NativeFile, location: str) -> pq.FileMetaData:
    """Read a footer, which `check_footer_size` lets pass."""
    is_large = check_footer_size(source, location) > LARGE_BYTES
    with _LARGE if is_large else nullcontext():
        return pq.read_metadata(source)
