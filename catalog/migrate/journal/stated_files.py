"""The statuses of a plan's files in storage, kept in the journal for later comparisons.

<journal>/files-00000.parquet ...
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from io import BytesIO
from itertools import count
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from icecomb.catalog.migrate.journal.journal import Journal
from icecomb.format.errors import CorruptFileError, NoSuchFileError
from icecomb.format.rows.parquet.own_table import OwnTable
from icecomb.format.storage.file_system import FileStatus

_FILES: Final = pa.schema(
    [("path", pa.string()), ("size", pa.int64()), ("mtime", pa.int64()), ("id", pa.int64())]
)


_BATCH: Final = 10_000


def keep_files(journal: Journal, pages: Iterable[list[FileStatus]]) -> None:
    """Keep the statuses in storage of the files that are taken over."""
    for number, page in enumerate(pages):
        rows = [(one.location, one.size, one.mtime_ms, lasting_id(one)) for one in page]
        columns = zip(*rows, strict=True)
        arrays = [pa.array(one, kind) for one, kind in zip(columns, _FILES.types, strict=True)]
        out = BytesIO()
        pq.write_table(pa.Table.from_arrays(arrays, schema=_FILES), out, compression="zstd")
        journal.create(_name(number), out.getvalue())


def kept_files(journal: Journal) -> Iterator[list[FileStatus]]:
    """Yield pages of the files as they were planned; none for journals of older versions."""
    for number in count():
        location = f"{journal.location}/{_name(number)}"
        try:
            data = journal.read(_name(number))
        except NoSuchFileError:
            return
        try:
            page = list(_statuses(data))
        except ValueError as error:
            raise CorruptFileError(
                f"{location} is not what was written: {error}",
                hint="restore the journal from a backup",
                path=location,
            ) from error
        yield page


def _statuses(data: bytes) -> Iterator[FileStatus]:
    """Yield the statuses in a page.

    Raises:
        ValueError: If it is not what was written.
    """
    for batch in OwnTable(data, _FILES, nulls=False).batches(_BATCH):
        yield from map(FileStatus, *(column.to_pylist() for column in batch.columns))


def lasting_id(status: FileStatus) -> int:
    """Return the id of a file that is the same on every host, or 0."""
    # A local file's id depends on the number of its device, which differs between hosts, and on
    # the time when its permissions changed.
    return 0 if status.location.startswith(("/", "file:")) else status.file_id


def _name(number: int) -> str:
    return f"files-{number:05}.parquet"
