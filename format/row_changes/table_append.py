"""Appending rows, or data files that hold them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from icecomb.format.operation.overwrite import MergeAppend
from icecomb.format.row_changes.write_target import WriteTarget, WrittenChange
from icecomb.format.rows.write.data_writer import write_data

if TYPE_CHECKING:
    from icecomb.format.arrow.row_stream import GivenRows
    from icecomb.format.manifests.manifest import DataFile


def append_rows(target: WriteTarget, data: GivenRows) -> WrittenChange:
    """Write rows to data files, and append these; a reader is consumed batch by batch."""
    append = MergeAppend(target.io, target.snapshot_properties, target.branch)
    return _added(target, append, write_data(target.io, target.metadata, data))


def append_files(
    target: WriteTarget, files: Sequence[DataFile], *, stage_only: bool = False
) -> WrittenChange:
    """Append data files that were written for this change.

    Args:
        files: The files, with the table's field ids and one of its partition specs.
        stage_only: Whether to leave the branch as it is.
    """
    append = MergeAppend(
        target.io, target.snapshot_properties, target.branch, stage_only=stage_only
    )
    return _added(target, append, files)


def _added(target: WriteTarget, append: MergeAppend, files: Sequence[DataFile]) -> WrittenChange:
    for file in files:
        append.append_data_file(file)
    return WrittenChange(append, target.written_with, files)
