"""Deletion of many files at a time, with a list of failures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from icecomb.catalog.report.progress import SILENT, each
from icecomb.format.errors import FileIOError

if TYPE_CHECKING:
    from icecomb.format.storage.file_io import FileIO

_BATCH: Final = 200


def delete_files(io: FileIO, locations: Sequence[str], threads: int | None = None) -> list[str]:
    """Delete files that exist, and return those that could not be deleted.

    Args:
        threads: Number of batches at once; by default one: a batch is deleted in bulk.
    """
    batches = [locations[at : at + _BATCH] for at in range(0, len(locations), _BATCH)]

    def delete(batch: Sequence[str]) -> Sequence[str]:
        try:
            io.delete(batch)
        except FileIOError as error:
            failed = error.context.get("failed")
            return failed if isinstance(failed, tuple) else batch
        return ()

    results = each(SILENT, "delete", "batches", batches, delete, threads or 1)
    return [location for failed in results for location in failed]
